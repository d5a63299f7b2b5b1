//! Lets scripts of allowed origins read answers (CORS). Browsers ask before they send; that question needs no identity.

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use regex::Regex;

use super::Next;
use crate::request::Request;
use crate::state::ServerState;

/// What scripts may do, in kube-apiserver's words.
const ALLOWED: [(HeaderName, HeaderValue); 4] = [
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
             If-Modified-Since",
        ),
    ),
    (header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Date")),
    (
        header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
        HeaderValue::from_static("true"),
    ),
];

pub async fn cors(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let origins = &state.requests.allowed_origins;
    if origins.is_empty() {
        return next(request).await;
    }
    among(origins, request, next).await
}

async fn among(origins: &[Regex], request: &mut Request, next: impl Next) -> HttpResponse {
    let Some(origin) = allowed(origins, &request.headers) else {
        return next(request).await;
    };
    let mut response = match *request.http.method() {
        Method::OPTIONS => HttpResponse::NoContent().finish(),
        _ => next(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in ALLOWED {
        headers.insert(name, value);
    }
    response
}

/// The origin, if it is one of those.
fn allowed(origins: &[Regex], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let text = origin.to_str().ok()?;
    origins
        .iter()
        .any(|allowed| allowed.is_match(text))
        .then(|| origin.clone())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fine, header, request};
    use super::*;

    async fn answer(method: &str, origin: &str) -> HttpResponse {
        let origins = [Regex::new(r"//example\.com(:|$)").unwrap()];
        let mut request = request(method, "/api/v1/pods", &[("origin", origin)]);
        among(&origins, &mut request, fine).await
    }

    #[tokio::test]
    async fn scripts_of_allowed_origins_may_read() {
        let response = answer("GET", "https://example.com:8080").await;
        for (name, value) in [
            ("access-control-allow-origin", "https://example.com:8080"),
            ("access-control-allow-credentials", "true"),
            ("access-control-expose-headers", "Date"),
            ("access-control-allow-methods", "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
            (
                "access-control-allow-headers",
                "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
            ),
        ] {
            assert_eq!(header(&response, name), value);
        }
        assert_eq!(response.status(), 200);
        let response = answer("GET", "https://example.com.evil.org").await;
        assert_eq!(header(&response, "access-control-allow-origin"), "");
    }

    #[tokio::test]
    async fn the_question_before_is_answered_here() {
        assert_eq!(answer("OPTIONS", "https://example.com").await.status(), 204);
        assert_eq!(answer("OPTIONS", "https://example.org").await.status(), 200);
    }

    /// Those who are not allowed learn nothing, however they spell themselves.
    #[tokio::test]
    async fn an_origin_is_compared_as_it_stands() {
        for origin in [
            "null",
            "",
            "*",
            "https://example.com.evil.org",
            "https://evil.org/https://example.com.evil",
            "https://example.comevil",
            "https://notexample.com",
            "https://EXAMPLE.com",
            "https://example.com, https://evil.org",
            "https://example.com@evil.org",
        ] {
            let response = answer("GET", origin).await;
            for name in ["access-control-allow-origin", "access-control-allow-credentials"] {
                assert_eq!(header(&response, name), "", "{origin}");
            }
        }
    }
}
