//! Turns of tasks on one thread.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long a task works before other requests of its thread have their turn.
const SLICE: Duration = match cfg!(test) {
    // Everywhere where they could have it.
    true => Duration::ZERO,
    false => Duration::from_millis(1),
};

/// Work that may be long, done a slice at a time.
pub(crate) struct Slices {
    until: Instant,
}

impl Slices {
    /// The first slice begins now.
    pub fn begin() -> Slices {
        Slices {
            until: Instant::now() + SLICE,
        }
    }

    /// To be called between small pieces of the work: when the slice is over, other tasks, and what came in over the
    /// network, come first.
    pub async fn between(&mut self) {
        if Instant::now() >= self.until {
            tokio::task::yield_now().await;
            *self = Slices::begin();
        }
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
