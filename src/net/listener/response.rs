//! actix's answer becomes hyper's.

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_http::ConnectionType;
use actix_http::body::{BodySize, MessageBody};
use actix_http::{Response, StatusCode};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::answer::{Answer, AnswerDeadline};

/// Bytes of an answer that are handed over at once, at most: a client that does not read holds no more than that beside
/// the answer itself.
const PART: usize = 256 << 10;

/// What the listener must know of a request to write its answer.
pub(super) struct Asked {
    pub(super) head: bool,
    pub(super) http2: bool,
    /// How long an answer that is not made while it is sent may take to be read.
    pub(super) timeout: Duration,
}

/// Turns an answer over. The second value says that the connection shall end after it.
pub(super) fn into_hyper<B: MessageBody + 'static>(
    response: Response<B>,
    asked: &Asked,
    under_way: Rc<Answer>,
) -> (http::Response<AnswerBody<B>>, bool) {
    let (head, body) = response.into_parts();
    let deadline = head.extensions().get::<AnswerDeadline>().cloned();
    let mut answer = http::Response::new(());
    *answer.status_mut() =
        http::StatusCode::from_u16(head.status().as_u16()).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let size = body.size();
    copy_headers(&head, size, answer.headers_mut());
    let close = connection_header(&head, asked, answer.headers_mut());
    let body = if asked.head {
        if let BodySize::Sized(length) = size {
            answer.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        AnswerBody::empty(under_way)
    } else {
        AnswerBody::new(body, size, under_way)
    };
    match body.is_whole() {
        true => body.under_way.begins_whole(Instant::now() + asked.timeout),
        false => body.under_way.begins(deadline),
    }
    (answer.map(|()| body), close)
}

/// A plain answer of the listener itself.
pub(super) fn refusal<B: MessageBody + 'static>(
    status: http::StatusCode,
    text: &'static str,
    under_way: Rc<Answer>,
) -> http::Response<AnswerBody<B>> {
    let mut answer = http::Response::new(AnswerBody::whole(Bytes::from_static(text.as_bytes()), under_way));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}

fn copy_headers(head: &Response<()>, size: BodySize, into: &mut http::HeaderMap) {
    into.reserve(head.headers().len());
    for (name, value) in head.headers() {
        let Ok(name) = HeaderName::from_bytes(name.as_str().as_bytes()) else {
            continue;
        };
        // The body's own size is the truth; hyper frames the message by it.
        if name == TRANSFER_ENCODING || (name == CONTENT_LENGTH && !matches!(size, BodySize::None)) {
            continue;
        }
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            into.append(name, value);
        }
    }
}

/// Settles the `Connection` header. `Connection: close` on HTTP/2, where no such header exists, means GOAWAY, as in
/// Go's server, which kube-apiserver's filters rely on.
fn connection_header(head: &Response<()>, asked: &Asked, into: &mut http::HeaderMap) -> bool {
    let says_close = into
        .get(CONNECTION)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
        || !head.keep_alive();
    if head.status() == StatusCode::SWITCHING_PROTOCOLS {
        into.entry(CONNECTION).or_insert(HeaderValue::from_static("Upgrade"));
        return false;
    }
    let says_close = says_close && head.head().connection_type() != ConnectionType::Upgrade;
    if asked.http2 {
        into.remove(CONNECTION);
    } else if says_close {
        into.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    says_close
}

/// An answer's body, and with it the request's place among those under way.
pub(super) struct AnswerBody<B> {
    kind: Kind<B>,
    under_way: Rc<Answer>,
}

enum Kind<B> {
    Empty,
    Whole(Bytes),
    Stream { body: Pin<Box<B>>, length: Option<u64> },
}

impl<B: MessageBody + 'static> AnswerBody<B> {
    fn new(body: B, size: BodySize, under_way: Rc<Answer>) -> Self {
        let length = match size {
            BodySize::None | BodySize::Sized(0) => return Self::empty(under_way),
            BodySize::Sized(length) => Some(length),
            BodySize::Stream => None,
        };
        let kind = match body.try_into_bytes() {
            Ok(bytes) => Kind::Whole(bytes),
            Err(body) => Kind::Stream {
                body: Box::pin(body),
                length,
            },
        };
        AnswerBody { kind, under_way }
    }

    /// Whether nothing is left to be made.
    fn is_whole(&self) -> bool {
        matches!(self.kind, Kind::Whole(_))
    }

    fn empty(under_way: Rc<Answer>) -> Self {
        AnswerBody {
            kind: Kind::Empty,
            under_way,
        }
    }

    fn whole(bytes: Bytes, under_way: Rc<Answer>) -> Self {
        AnswerBody {
            kind: Kind::Whole(bytes),
            under_way,
        }
    }
}

impl<B: MessageBody + 'static> Kind<B> {
    /// The next part. After a panic or an error the body is replaced by nothing and is not asked again.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, AnswerError>>> {
        match std::mem::replace(self, Kind::Empty) {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(mut bytes) => {
                let part = bytes.split_to(bytes.len().min(PART));
                if !bytes.is_empty() {
                    *self = Kind::Whole(bytes);
                }
                Poll::Ready(Some(Ok(part)))
            }
            Kind::Stream { mut body, length } => {
                let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll_next(cx)));
                let next = match polled {
                    Ok(Poll::Pending) => {
                        *self = Kind::Stream { body, length };
                        return Poll::Pending;
                    }
                    Ok(Poll::Ready(next)) => next,
                    Err(panic) => return Poll::Ready(Some(Err(AnswerError::Panic(panic_text(panic.as_ref()))))),
                };
                match next {
                    Some(Ok(bytes)) => {
                        let length = length.map(|length| length.saturating_sub(bytes.len() as u64));
                        *self = Kind::Stream { body, length };
                        Poll::Ready(Some(Ok(bytes)))
                    }
                    Some(Err(error)) => {
                        let error: Box<dyn Error> = error.into();
                        Poll::Ready(Some(Err(AnswerError::Body(error.to_string()))))
                    }
                    None => Poll::Ready(None),
                }
            }
        }
    }
}

/// Why an answer ended early; the client sees a reset stream or a cut connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("the answer's body failed: {0}")]
    Body(String),
    #[error("the answer's body panicked: {0}")]
    Panic(String),
}

impl<B: MessageBody + 'static> http_body::Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.kind.poll_next(cx);
        self.under_way.asked(next.is_ready());
        next.map(|part| part.map(|part| part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream {
                length: Some(length), ..
            } => SizeHint::with_exact(*length),
            Kind::Stream { length: None, .. } => SizeHint::default(),
        }
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no text)").to_owned()
}
