//! Paced reads: a client that sends without end lets others in. HTTP/2 works off whatever has come before it returns,
//! and a frame of a few bytes may be work for every stream of its connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::forward::forward_writes;

/// How long a connection works off what has come before the others of its thread have their turn.
const TURN: Duration = Duration::from_millis(1);

/// A connection that is read from for a turn at a time.
pub(super) struct Paced<T> {
    inner: T,
    /// When this turn began to read; `None`: nothing was read in it.
    began: Option<Instant>,
}

impl<T> Paced<T> {
    pub(super) fn new(inner: T) -> Self {
        Paced { inner, began: None }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Paced<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.began.is_some_and(|began| began.elapsed() >= TURN) {
            self.began = None;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.inner).poll_read(cx, into);
        match polled {
            Poll::Ready(_) => drop(self.began.get_or_insert_with(Instant::now)),
            Poll::Pending => self.began = None,
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Paced<T> {
    forward_writes!(and_shutdown);
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn who_sends_without_end_is_read_from_a_turn_at_a_time() {
        let mut paced = Paced::new(tokio::io::repeat(b'x'));
        let (mut cx, mut room) = (Context::from_waker(Waker::noop()), [0; 64]);
        let mut turns = 0;
        while turns < 3 {
            let begun = Instant::now();
            let read = |paced: &mut Paced<_>, cx: &mut Context<'_>, room: &mut [u8]| {
                Pin::new(paced).poll_read(cx, &mut ReadBuf::new(room)).is_ready()
            };
            assert!(read(&mut paced, &mut cx, &mut room), "each turn reads something");
            while read(&mut paced, &mut cx, &mut room) {}
            assert!(begun.elapsed() >= TURN);
            turns += 1;
        }
    }
}
