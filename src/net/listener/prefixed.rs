//! A byte stream with some bytes put back in front: those read to tell HTTP/2 from HTTP/1.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::forward::forward_writes;

/// What an HTTP/2 client sends first.
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `inner`, with `front` to be read first.
pub(super) struct Prefixed<T> {
    front: Bytes,
    inner: T,
}

impl<T: AsyncRead + Unpin> Prefixed<T> {
    /// Reads just enough to know whether the client speaks HTTP/2, and puts it back.
    pub(super) async fn detect_http2(mut inner: T) -> io::Result<(Self, bool)> {
        let mut read = [0; HTTP2_PREFACE.len()];
        let mut filled = 0;
        while filled < read.len() && HTTP2_PREFACE.starts_with(&read[..filled]) {
            match inner.read(&mut read[filled..]).await? {
                0 => break,
                count => filled += count,
            }
        }
        let http2 = read == *HTTP2_PREFACE;
        Ok((
            Prefixed {
                front: Bytes::copy_from_slice(&read[..filled]),
                inner,
            },
            http2,
        ))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Prefixed<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.front.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, into);
        }
        let count = self.front.len().min(into.remaining());
        into.put_slice(&self.front[..count]);
        self.front.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Prefixed<T> {
    forward_writes!(and_shutdown);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_read_is_read_again() {
        let table: [(&[u8], bool); 5] = [
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nframes", true),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", false),
            (b"GET / HTTP/1.1\r\n\r\n", false),
            (b"PR", false),
            (b"", false),
        ];
        for (sent, expected) in table {
            let (mut stream, http2) = Prefixed::detect_http2(sent).await.unwrap();
            let mut again = Vec::new();
            stream.read_to_end(&mut again).await.unwrap();
            assert_eq!((http2, again.as_slice()), (expected, sent));
        }
    }
}
