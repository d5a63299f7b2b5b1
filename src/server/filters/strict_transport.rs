//! Tells browsers to use nothing but TLS, where the server is told to tell them.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};

use super::Next;
use crate::request::Request;
use crate::state::ServerState;

pub async fn strict_transport(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let mut response = next(request).await;
    if let Some(value) = &state.requests.strict_transport {
        mark(&mut response, value, request.connection().is_some_and(|c| c.tls));
    }
    response
}

fn mark(response: &mut HttpResponse, value: &HeaderValue, tls: bool) {
    if tls {
        let headers = response.headers_mut();
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::header;
    use super::*;

    #[test]
    fn only_answers_over_tls_are_marked() {
        let value = HeaderValue::from_static("max-age=31536000; includeSubDomains");
        for (tls, expected) in [(true, "max-age=31536000; includeSubDomains"), (false, "")] {
            let mut response = HttpResponse::Ok().finish();
            mark(&mut response, &value, tls);
            assert_eq!(header(&response, "strict-transport-security"), expected);
        }
    }
}
