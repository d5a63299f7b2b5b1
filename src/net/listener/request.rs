//! hyper's request becomes actix's: two generations of the `http` crate lie between them.

use actix_http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use actix_http::{BoxedPayloadStream, Method, Payload, Request, Uri, Version};
use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;

use super::request_body::{BodyStream, Rest};

/// Why a head that hyper accepted is not passed on; the client gets 400.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadError {
    #[error("the request's {0} cannot be represented")]
    Part(&'static str),
    #[error("the request does not say for which host it is")]
    NoHost,
    #[error("the request says more than once for which host it is")]
    SeveralHosts,
    #[error("the request is for a host that cannot be")]
    MalformedHost,
}

impl HeadError {
    /// The body of the answer, in the words of Go's server.
    pub(super) fn text(&self) -> &'static str {
        match self {
            HeadError::Part(_) | HeadError::SeveralHosts => "400 Bad Request",
            HeadError::NoHost => "400 Bad Request: missing required Host header",
            HeadError::MalformedHost => "400 Bad Request: malformed Host header",
        }
    }
}

/// Makes the application's request. The target is always in origin form (`/path?query`): a target's authority
/// (HTTP/2's `:authority`, HTTP/1.1's absolute form) becomes the `Host` header, so handlers look in one place. With it
/// comes what the application will have left of the body.
pub(super) fn from_hyper(head: http::request::Parts, body: Incoming) -> Result<(Request, Option<Rest>), HeadError> {
    check_host(&head)?;
    let (payload, rest) = if body.is_end_stream() {
        (Payload::None, None)
    } else {
        let (stream, rest) = BodyStream::new(body, expects_continue(&head.headers));
        let payload: BoxedPayloadStream = Box::pin(stream);
        (Payload::Stream { payload }, Some(rest))
    };
    let mut request = Request::with_payload(payload);
    let into = request.head_mut();
    into.method = method(&head.method)?;
    into.version = version(head.version);
    into.uri = target(&head.uri)?;
    headers(&head.headers, &mut into.headers)?;
    if let Some(authority) = head.uri.authority() {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| HeadError::Part("host"))?;
        into.headers.insert(HOST, host);
    }
    Ok((request, rest))
}

/// A proxy in front may have read another one of several hosts than we would.
fn check_host(head: &http::request::Parts) -> Result<(), HeadError> {
    let mut hosts = head.headers.get_all(http::header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if head.version == http::Version::HTTP_11 => Err(HeadError::NoHost),
        (Some(_), Some(_)) => Err(HeadError::SeveralHosts),
        (Some(host), None) if !host.as_bytes().iter().all(|byte| is_of_host(*byte)) => Err(HeadError::MalformedHost),
        _ => Ok(()),
    }
}

/// Whether a host may have the byte in it, by RFC 3986.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&()*+,-.:;='[]_~".contains(&byte)
}

fn method(method: &http::Method) -> Result<Method, HeadError> {
    Ok(match *method {
        http::Method::GET => Method::GET,
        http::Method::PUT => Method::PUT,
        http::Method::POST => Method::POST,
        http::Method::PATCH => Method::PATCH,
        http::Method::DELETE => Method::DELETE,
        _ => Method::from_bytes(method.as_str().as_bytes()).map_err(|_| HeadError::Part("method"))?,
    })
}

fn version(version: http::Version) -> Version {
    match version {
        http::Version::HTTP_10 => Version::HTTP_10,
        http::Version::HTTP_2 => Version::HTTP_2,
        _ => Version::HTTP_11,
    }
}

fn target(uri: &http::Uri) -> Result<Uri, HeadError> {
    let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    Uri::from_maybe_shared(Bytes::copy_from_slice(target.as_bytes())).map_err(|_| HeadError::Part("target"))
}

fn headers(from: &http::HeaderMap, into: &mut HeaderMap) -> Result<(), HeadError> {
    for (name, value) in from {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|_| HeadError::Part("header name"))?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| HeadError::Part("header value"))?;
        into.append(name, value);
    }
    Ok(())
}

/// Whether the client sends the body only when told to.
fn expects_continue(headers: &http::HeaderMap) -> bool {
    let expected = headers.get(http::header::EXPECT);
    expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_keep_path_and_query_and_lose_the_authority() {
        for (given, expected) in [
            ("/api/v1/pods?watch=1&x=%2F", "/api/v1/pods?watch=1&x=%2F"),
            ("https://host:6443/api?a", "/api?a"),
            ("https://host", "/"),
            ("*", "*"),
            ("host:443", "/"),
        ] {
            assert_eq!(target(&given.parse().unwrap()).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn one_host_is_named() {
        use http::Version;
        for (version, hosts, expected) in [
            (Version::HTTP_11, &["a:443"][..], Ok(())),
            (Version::HTTP_11, &["[::1]:443"], Ok(())),
            (Version::HTTP_11, &[""], Ok(())),
            (Version::HTTP_11, &[], Err(HeadError::NoHost)),
            (Version::HTTP_10, &[], Ok(())),
            (Version::HTTP_2, &[], Ok(())),
            (Version::HTTP_2, &["a", "b"], Err(HeadError::SeveralHosts)),
            (Version::HTTP_10, &["a", "a"], Err(HeadError::SeveralHosts)),
            (Version::HTTP_11, &["a/b"], Err(HeadError::MalformedHost)),
            (Version::HTTP_11, &["a b"], Err(HeadError::MalformedHost)),
            (Version::HTTP_11, &["a@b"], Err(HeadError::MalformedHost)),
        ] {
            let mut request = http::Request::builder().version(version);
            for host in hosts {
                request = request.header("host", *host);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(check_host(&head), expected, "{version:?} {hosts:?}");
        }
    }

    #[test]
    fn every_value_of_a_repeated_header_is_kept_in_order() {
        let mut from = http::HeaderMap::new();
        from.append("impersonate-group", http::HeaderValue::from_static("a"));
        from.append("impersonate-group", http::HeaderValue::from_bytes(b"\xc3\xa4").unwrap());
        let mut into = HeaderMap::new();
        headers(&from, &mut into).unwrap();
        let values: Vec<_> = into.get_all("Impersonate-Group").map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [b"a".as_slice(), b"\xc3\xa4"]);
    }
}
