//! Request bodies: streams for the application, and what it leaves of them on HTTP/1.1.
//!
//! An application that refuses a request does not read its body. The next request comes behind that body, and a socket
//! that is closed while it comes is reset, so that its client may lose the answer. As in Go's server a short rest is
//! read before the answer is sent; after a longer one the connection ends ([`super::lingering`]).

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_http::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Bytes of a rest that are read, at most.
const SHORT_BYTES: u64 = 256 << 10;
/// How long a client may take to send them.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the stream and its rest share.
#[derive(Default)]
struct Shared {
    left: Cell<Option<Incoming>>,
    /// The client waits to be told to send the body, and has not been.
    held_back: Cell<bool>,
}

/// A request's body as actix wants it. Trailers are read over.
pub(super) struct BodyStream {
    body: Option<Incoming>,
    shared: Rc<Shared>,
}

/// What the application has not read of a body, once it has let go of it.
pub(super) struct Rest(Rc<Shared>);

impl BodyStream {
    /// The stream of `body`; `held_back` if its client sends it only when asked for (`Expect: 100-continue`).
    pub(super) fn new(body: Incoming, held_back: bool) -> (BodyStream, Rest) {
        let shared = Rc::new(Shared::default());
        shared.held_back.set(held_back);
        let rest = Rest(Rc::clone(&shared));
        let body = Some(body);
        (BodyStream { body, shared }, rest)
    }
}

impl Stream for BodyStream {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.held_back.set(false);
        while let Some(body) = &mut self.body {
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Poll::Ready(Some(Ok(data))),
                    Err(_trailers) => continue,
                },
                Some(Err(error)) => {
                    let error = PayloadError::Incomplete(Some(io::Error::other(error)));
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.body = None,
            }
        }
        Poll::Ready(None)
    }
}

impl Drop for BodyStream {
    fn drop(&mut self) {
        self.shared
            .left
            .set(self.body.take().filter(|body| !body.is_end_stream()));
    }
}

impl Rest {
    /// Reads the rest if it is short and comes soon. Says whether the client still has something to send.
    pub(super) async fn read(self) -> bool {
        let Some(body) = self.0.left.take() else {
            return false;
        };
        if self.0.held_back.get() || body.size_hint().lower() > SHORT_BYTES {
            return true;
        }
        let read = tokio::time::timeout(PATIENCE, read_short(body)).await;
        !read.unwrap_or(false)
    }
}

/// Reads a body to its end, unless that is too far. Says whether it was read.
async fn read_short(mut body: Incoming) -> bool {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        length += frame.data_ref().map_or(0, |data| data.len() as u64);
        if length > SHORT_BYTES {
            return false;
        }
    }
    true
}
