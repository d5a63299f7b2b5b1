//! Cooperative scheduling of the tasks of one thread: whoever works for long lets the others in, and what comes in over
//! the network.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// How long a task works before the others of its thread have their turn. Several that have more to do share it. A
/// small request beside them waits up to three times: to be read, to be answered, to be sent.
const TURN: Duration = Duration::from_micros(250);
/// What each of many such tasks gets done in a turn at least.
const LEAST: Duration = Duration::from_micros(100);

thread_local! {
    /// Tasks of this thread whose work has taken longer than a turn.
    static LONG: Cell<u32> = const { Cell::new(0) };
}

/// Turns have no length.
static EVERYWHERE: AtomicBool = AtomicBool::new(false);

/// From now on all work of this process lets others in everywhere where it could: for tests of what may happen there.
pub fn yield_everywhere() {
    EVERYWHERE.store(true, Ordering::Relaxed);
}

/// How long a turn is.
fn turn() -> Duration {
    match EVERYWHERE.load(Ordering::Relaxed) {
        true => Duration::ZERO,
        false => TURN,
    }
}

/// Work that may be long, done a slice at a time.
pub struct Slices {
    until: Instant,
    /// It has taken longer than a turn, and counts among those that share one.
    long: bool,
    /// It has stepped back.
    rests: bool,
}

impl Slices {
    /// Work that begins now.
    pub fn begin() -> Slices {
        Slices {
            until: Instant::now() + turn(),
            long: false,
            rests: false,
        }
    }

    /// To be called between small pieces of the work, each far below a millisecond.
    pub async fn between(&mut self) {
        poll_fn(|cx| self.poll_between(cx)).await;
    }

    /// The same. Pending when the turn is over: then the task is woken after the network was looked at.
    pub fn poll_between(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        if std::mem::take(&mut self.rests) {
            self.until = now + share();
            return Poll::Ready(());
        }
        if now < self.until {
            return Poll::Ready(());
        }
        self.rests = true;
        if !std::mem::replace(&mut self.long, true) {
            LONG.set(LONG.get() + 1);
        }
        pin!(tokio::task::yield_now()).poll(cx)
    }

    /// Until when a piece of work may go on that can be cut anywhere.
    pub fn end_of_piece(&self) -> Instant {
        self.until.max(Instant::now() + LEAST)
    }
}

/// What of a turn each task gets.
fn share() -> Duration {
    match turn() {
        Duration::ZERO => Duration::ZERO,
        turn => (turn / LONG.get().max(1)).max(LEAST),
    }
}

impl Drop for Slices {
    fn drop(&mut self) {
        if self.long {
            LONG.set(LONG.get().saturating_sub(1));
        }
    }
}

/// Work that is long and can't be cut, on a thread made for such work. Nobody can stop it once it has begun.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    /// As many at a time as there are processors.
    static PLACES: LazyLock<Semaphore> =
        LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));
    // Never closed.
    let _place = PLACES.acquire().await;
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        // The thread that asked is ending too.
        Err(_) => std::future::pending().await,
    }
}

/// Lets all tasks of this thread that are ready now come first.
pub async fn let_others_in() {
    let mut passed = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
