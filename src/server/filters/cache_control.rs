//! Answers of an API are of the moment: nobody may keep them. Handlers that know better have said so.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};

use super::Next;
use crate::request::Request;
use crate::state::ServerState;

pub async fn cache_control(_: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let mut response = next(request).await;
    mark(&mut response);
    response
}

fn mark(response: &mut HttpResponse) {
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        let value = HeaderValue::from_static("no-cache, private");
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::header;
    use super::*;

    #[test]
    fn what_a_handler_says_stays() {
        let mut response = HttpResponse::Ok().finish();
        mark(&mut response);
        assert_eq!(header(&response, "cache-control"), "no-cache, private");
        let mut response = HttpResponse::Ok().insert_header(("cache-control", "public")).finish();
        mark(&mut response);
        assert_eq!(header(&response, "cache-control"), "public");
    }
}
