//! Turns of tasks on one thread: whoever works for long lets the others in, and what comes in over the network.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long tasks that work for long do so, all together, before the others of their thread have their turn.
const TURN: Duration = match cfg!(test) {
    // Everywhere where they could have it.
    true => Duration::ZERO,
    false => Duration::from_millis(1),
};
/// What each of many such tasks gets done in a turn at least.
const LEAST: Duration = Duration::from_micros(250);

thread_local! {
    /// The turn of this thread's long tasks.
    static NOW: Cell<Turn> = const { Cell::new(Turn { number: 0, until: None }) };
}

#[derive(Clone, Copy)]
struct Turn {
    number: u64,
    /// `None`: none has begun.
    until: Option<Instant>,
}

/// Work that may be long, done a slice at a time.
#[derive(Default)]
pub(crate) struct Slices {
    /// The turn in which it stepped back.
    rested: Option<u64>,
}

impl Slices {
    /// Work that begins now.
    pub fn begin() -> Slices {
        Slices::default()
    }

    /// To be called between small pieces of the work, each far below a millisecond.
    pub async fn between(&mut self) {
        poll_fn(|cx| self.poll_between(cx)).await;
    }

    /// The same. Pending when the turn is over: then the task is woken after the network was looked at.
    pub fn poll_between(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (turn, now) = (NOW.get(), Instant::now());
        let begin = |number| {
            NOW.set(Turn {
                number,
                until: Some(now + TURN),
            });
        };
        match (self.rested.take(), turn.until) {
            (_, None) => begin(turn.number),
            (None, Some(until)) if now >= until => {
                self.rested = Some(turn.number);
                // Ready at once outside of a runtime, where nobody else waits.
                return pin!(tokio::task::yield_now()).poll(cx);
            }
            // The first one back begins the next turn; the others have what is left of it.
            (Some(number), _) if number == turn.number => begin(number + 1),
            _ => {}
        }
        Poll::Ready(())
    }

    /// Until when a piece of work may go on that can be cut anywhere.
    pub fn end_of_piece() -> Instant {
        let least = Instant::now() + LEAST;
        NOW.get().until.map_or(least, |until| until.max(least))
    }
}

/// Lets all tasks of this thread that are ready now come first.
pub(crate) async fn let_others_in() {
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
