//! Turns of tasks on one thread.

use std::future::poll_fn;
use std::task::Poll;

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
