//! Leaving HTTP: after a 101 answer the connection's bytes belong to the handler, whatever the protocol's name.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::accept::Admission;

/// A client's wish to speak another protocol (`Connection: Upgrade`, `Upgrade: <name>`), with GET, POST or any method.
///
/// The handler takes it, spawns a task that awaits [`accepted`](Upgrade::accepted), and answers 101 with the
/// protocol's headers (`Upgrade`; the listener adds `Connection`). Any other answer refuses: `accepted` then fails.
pub struct Upgrade {
    /// The protocol names the client offers, as it wrote them: `SPDY/3.1`, `websocket`.
    pub protocol: String,
    pub(super) pending: OnUpgrade,
    pub(super) admission: Arc<Admission>,
}

impl Upgrade {
    /// Takes the wish out of a request; `None` when the client has none, or it was taken.
    pub fn take(request: &impl HttpMessage) -> Option<Self> {
        request.extensions_mut().remove::<Self>()
    }

    /// Waits until the 101 answer is written and gives the raw connection.
    ///
    /// # Errors
    /// When the answer was another one, or the client went away.
    pub async fn accepted(self) -> io::Result<Upgraded> {
        let upgraded = self.pending.await.map_err(io::Error::other)?;
        Ok(Upgraded {
            stream: TokioIo::new(upgraded),
            _admission: self.admission,
        })
    }
}

/// A connection that left HTTP. Dropping it closes it. It counts as a connection, so a stopping server waits for it:
/// its owner watches [`Shutdown`](super::Shutdown).
pub struct Upgraded {
    stream: TokioIo<hyper::upgrade::Upgraded>,
    _admission: Arc<Admission>,
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
