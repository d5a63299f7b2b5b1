//! A connection whose client may not dawdle over a request's head ("slowloris").
//!
//! hyper's own timer also runs while a connection is idle, and that it may be for longer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::forward::forward_writes;

/// Fails to read when a head that has begun takes longer than it may.
pub(super) struct HeadTimed<T> {
    inner: T,
    /// Even while no request is under way, so that what is read is a head.
    turns: Arc<AtomicU64>,
    /// The turn in which the last bytes came.
    turn: u64,
    /// Some of this turn's head is there.
    begun: bool,
    /// Runs once there is something to wait for.
    timer: Option<Pin<Box<Sleep>>>,
    limit: Duration,
}

impl<T> HeadTimed<T> {
    pub(super) fn new(inner: T, turns: Arc<AtomicU64>, limit: Duration) -> Self {
        HeadTimed {
            inner,
            turns,
            turn: 0,
            begun: false,
            timer: None,
            limit,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for HeadTimed<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let turn = self.turns.load(Ordering::Relaxed);
        if turn != self.turn {
            (self.turn, self.begun, self.timer) = (turn, false, None);
        }
        if turn % 2 == 1 {
            return Pin::new(&mut self.inner).poll_read(cx, into);
        }
        let before = into.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, into);
        if polled.is_ready() {
            self.begun |= into.filled().len() > before;
            return polled;
        }
        if self.begun {
            let limit = self.limit;
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        Poll::Pending
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for HeadTimed<T> {
    forward_writes!(and_shutdown);
}
