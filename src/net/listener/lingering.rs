//! Lingering close: the end of a connection whose client was still sending when it was answered.
//!
//! Closing a socket with unread bytes resets the connection, and a reset makes the client's system drop what it has
//! received and not yet read: the answer. So the sending side is closed first, and what comes is thrown away for a
//! while.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::forward::forward_writes;

/// How long the client may go on sending: Go's server gives it a quarter of that, which one on a busy machine can miss.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes that are thrown away between two looks at other connections of the worker.
const AT_ONCE: usize = 256 << 10;

/// A connection that ends slowly where a body was left unread.
pub(super) struct Lingering<T> {
    inner: T,
    /// The client has more to send than anybody will read.
    unread: Arc<AtomicBool>,
    /// Runs once the sending side is closed.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T> Lingering<T> {
    pub(super) fn new(inner: T, unread: Arc<AtomicBool>) -> Self {
        Lingering {
            inner,
            unread,
            timer: None,
        }
    }
}

impl<T: AsyncRead + Unpin> Lingering<T> {
    /// Ready when the client has closed its side, too, or the time is over.
    fn poll_thrown_away(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut room = [0; 8 << 10];
        let mut thrown_away = 0;
        while thrown_away < AT_ONCE {
            let mut room = ReadBuf::new(&mut room);
            match ready!(Pin::new(&mut self.inner).poll_read(cx, &mut room)) {
                Ok(()) if !room.filled().is_empty() => thrown_away += room.filled().len(),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<T> {
    forward_writes!();

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.timer.is_none() {
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
        }
        if self.unread.load(Ordering::Relaxed) {
            ready!(self.poll_thrown_away(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Lingering<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}
