//! Calls: one request and its answer.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) timeout: Option<Duration>,
    pub(super) max_answer_bytes: Option<usize>,
}

impl Call {
    /// `url` is absolute: `https://host:port/path?query`.
    pub fn new(method: Method, url: impl Into<String>) -> Call {
        Call {
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: None,
            max_answer_bytes: None,
        }
    }

    pub fn get(url: impl Into<String>) -> Call {
        Call::new(Method::GET, url)
    }

    pub fn post(url: impl Into<String>, content_type: &'static str, body: impl Into<Bytes>) -> Call {
        Call::sending(Method::POST, url, content_type, body)
    }

    /// A request of any method with a body.
    pub fn sending(method: Method, url: impl Into<String>, content_type: &'static str, body: impl Into<Bytes>) -> Call {
        let call = Call::new(method, url);
        Call {
            body: body.into(),
            ..call.header(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type))
        }
    }

    /// Sends this header too, in place of one of the same name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Call {
        self.headers.insert(name, value);
        self
    }

    /// Another time for all of it than the client's, from the name's resolution to the last byte of the answer.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Call {
        Call {
            timeout: Some(timeout),
            ..self
        }
    }

    /// Another bound of the answer's body than the client's.
    #[must_use]
    pub fn max_answer_bytes(self, bytes: usize) -> Call {
        Call {
            max_answer_bytes: Some(bytes),
            ..self
        }
    }
}

/// What came back. Any status but a redirect is an answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// Whether the status is one of 200 to 206.
    pub fn is_success(&self) -> bool {
        (200..=206).contains(&self.status)
    }
}
