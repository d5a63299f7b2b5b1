//! Paths that are no resources: discovery, OpenAPI, version, metrics, the list of paths.

use actix_web::http::Method;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use keelson_machinery::status::StatusError;

use crate::respond;
use crate::rest::pretty;
use crate::rest::request::Request;
use crate::state::ServerState;

/// Serves one of these paths; `None` for any other.
pub fn serve(state: &ServerState, request: &Request, http: &HttpRequest) -> Option<HttpResponse> {
    let path = request.info.path.as_str();
    let response = answer_path(state, request, http, path)?;
    if http.method() != Method::GET && only_get(path) {
        return Some(respond::error(
            &request.headers,
            &request.query,
            &StatusError::method_not_allowed(),
        ));
    }
    Some(response)
}

/// The paths of the router of resources; the others take any method.
fn only_get(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    matches!(parts[..], ["api"] | ["api", _] | ["apis", _, _] | ["version"])
}

fn answer_path(state: &ServerState, request: &Request, http: &HttpRequest, path: &str) -> Option<HttpResponse> {
    match path {
        "/" | "/index.html" => Some(index(state)),
        "/version" | "/version/" => Some(json(serde_json::to_vec(&state.version).unwrap_or_default())),
        "/metrics" => {
            let mut response = respond::text(200, state.metrics.encode());
            let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            Some(response)
        }
        path => {
            let headers = http_headers(&request.headers);
            let documents = state.openapi.answer(path, http.query_string(), &headers);
            documents
                .or_else(|| state.discovery.answer(path, http.query_string(), &headers))
                .map(answer)
        }
    }
}

/// The documents are made without knowledge of actix, whose headers are of an older `http`.
fn http_headers(headers: &header::HeaderMap) -> http::HeaderMap {
    let pair = |name: &header::HeaderName, value: &HeaderValue| {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
        Some((name, http::HeaderValue::from_bytes(value.as_bytes()).ok()?))
    };
    let mut out = http::HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter_map(|(name, value)| pair(name, value)) {
        out.append(name, value);
    }
    out
}

fn answer(response: http::Response<bytes::Bytes>) -> HttpResponse {
    let (parts, body) = response.into_parts();
    let code = StatusCode::from_u16(parts.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut builder = HttpResponse::build(code);
    for (name, value) in &parts.headers {
        // actix writes the length itself.
        if name != http::header::CONTENT_LENGTH {
            builder.append_header((name.as_str(), value.as_bytes()));
        }
    }
    builder.body(body)
}

/// `{"paths": […]}`, sorted.
fn index(state: &ServerState) -> HttpResponse {
    let mut paths: Vec<String> = ["/healthz", "/livez", "/readyz"]
        .iter()
        .flat_map(|p| {
            ["", "/ping", "/log", "/etcd"]
                .iter()
                .map(move |check| format!("{p}{check}"))
        })
        .collect();
    paths.extend(["/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"].map(str::to_owned));
    paths.extend(state.discovery.paths());
    for (name, _) in state.hooks.states() {
        paths.extend(["/healthz", "/livez", "/readyz"].map(|p| format!("{p}/poststarthook/{name}")));
    }
    paths.sort();
    paths.dedup();
    json(serde_json::to_vec(&serde_json::json!({ "paths": paths })).unwrap_or_default())
}

/// Indented whatever the client: these answers are small and read by people.
fn json(body: Vec<u8>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(pretty::indent(&body))
}
