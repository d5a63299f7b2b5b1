//! Reads what the request asks for; the filters after this one and the handlers rely on it.

use std::sync::Arc;

use actix_web::HttpResponse;
use keelson_access::request_info::{RequestInfo, decode_path};

use super::Next;
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;

pub async fn request_info(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let Some(path) = decode_path(request.http.path()) else {
        return respond::text(400, "400 Bad Request");
    };
    let Some(info) = RequestInfo::parse(request.http.method().as_str(), &path, &request.query) else {
        return no_resource(request);
    };
    request.found = state.find(&info);
    request.info = Arc::new(info);
    next(request).await
}

/// A path of old that names no resource is a failure without a Status.
fn no_resource(request: &Request) -> HttpResponse {
    let escaped = request
        .http
        .uri()
        .to_string()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let text = format!(
        "Internal Server Error: {escaped:?}: failed to create RequestInfo: \
         unable to determine kind and namespace from url, {escaped}\n"
    );
    respond::text(500, text)
}
