//! Paths that are no resources: discovery, OpenAPI, version, metrics, the list of paths.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use keelson_base::cooperative::aside;
use keelson_machinery::status::StatusError;

use crate::audit::Outcome;
use crate::discovery::Ask;
use crate::negotiate::{header_text, route};
use crate::pretty;
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;
use crate::zpages;

/// Serves one of these paths; `None` for any other.
pub async fn serve(state: &ServerState, request: &Request) -> Option<HttpResponse> {
    let http = &request.http;
    match request.info.path.as_str() {
        "/" | "/index.html" => Some(index(state)),
        path if zpages::PATHS.contains(&path) => Some(zpages::serve(state, request, path, &paths(state))),
        "/version" | "/version/" => Some(version(state, request)),
        "/metrics" => Some(metrics(state.metrics.encode())),
        "/metrics/slis" => Some(metrics(state.indicators.encode())),
        path => {
            let headers = http_headers(&request.headers);
            if path.starts_with("/openapi/")
                && let Some(document) = openapi(state, path, http.query_string(), &headers).await
            {
                return Some(answer(document));
            }
            let ask = Ask {
                method: http.method().as_str(),
                path,
                query: http.query_string(),
                headers: &headers,
            };
            let document = match state.discovery.answer(ask)? {
                Ok(document) => document,
                Err(error) => return Some(request.error(&error)),
            };
            let outcome = recorded(state, request, ask, &document);
            Some(respond::recorded_as(outcome, answer(document)))
        }
    }
}

/// What the audit records of a document of discovery: its JSON, whatever form it is sent in. Nothing of one that the
/// client has already, nor of those of the issuer of tokens, which are no objects.
fn recorded(
    state: &ServerState,
    request: &Request,
    ask: Ask<'_>,
    document: &http::Response<bytes::Bytes>,
) -> Option<Outcome> {
    let recording = request.audit.recording();
    let is_object = ["/api", "/apis"].iter().any(|root| {
        let rest = ask.path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if !recording.objects() || !is_object || document.status() != http::StatusCode::OK {
        return None;
    }
    let is_aggregated = document.headers().contains_key(http::header::ETAG);
    let form = match is_aggregated {
        true => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        false => "application/json",
    };
    let headers = http::HeaderMap::from_iter([(http::header::ACCEPT, http::HeaderValue::from_static(form))]);
    let ask = Ask {
        query: "",
        headers: &headers,
        ..ask
    };
    let json = state.discovery.answer(ask)?.ok()?.into_body();
    recording.of_json(json.trim_ascii_end())
}

/// Series in the Prometheus text format.
fn metrics(series: String) -> HttpResponse {
    let mut response = respond::text(200, series);
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response.headers_mut().remove(header::X_CONTENT_TYPE_OPTIONS);
    response
}

/// A document is made when it is asked for first, which takes long.
async fn openapi(
    state: &ServerState,
    path: &str,
    query: &str,
    headers: &http::HeaderMap,
) -> Option<http::Response<bytes::Bytes>> {
    let (openapi, path, query) = (state.openapi.clone(), path.to_owned(), query.to_owned());
    let headers = headers.clone();
    aside(move || openapi.answer(&path, &query, &headers)).await
}

/// The version, by a router that knows only GET and only JSON.
fn version(state: &ServerState, request: &Request) -> HttpResponse {
    let checked = if request.http.method() == Method::GET {
        let accept = header_text(&request.headers, &header::ACCEPT);
        route::check_accept(accept, route::JSON)
    } else {
        Err(StatusError::method_not_allowed())
    };
    match checked {
        Ok(()) => json(serde_json::to_vec(&state.version).unwrap_or_default()),
        Err(error) => request.error(&error),
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

/// `{"paths": […]}`.
fn index(state: &ServerState) -> HttpResponse {
    json(serde_json::to_vec(&serde_json::json!({ "paths": paths(state) })).unwrap_or_default())
}

/// All paths that are told, sorted.
fn paths(state: &ServerState) -> Vec<String> {
    let mut paths: Vec<String> = ["/healthz", "/livez", "/readyz"]
        .iter()
        .flat_map(|p| {
            ["", "/ping", "/log", "/etcd"]
                .iter()
                .map(move |check| format!("{p}{check}"))
        })
        .collect();
    paths.extend(["/readyz/etcd-readiness", "/readyz/informer-sync", "/readyz/shutdown"].map(str::to_owned));
    paths.extend(
        [
            "/metrics",
            "/metrics/slis",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/version",
        ]
        .map(str::to_owned),
    );
    paths.extend(state.discovery.paths());
    paths.push("/openid/v1/jwks".to_owned());
    if state.rest.backend.encryption.has_services() {
        paths.extend(["/healthz", "/readyz"].map(|p| format!("{p}/kms-providers")));
    }
    for (name, _) in state.hooks.states() {
        paths.extend(["/healthz", "/livez", "/readyz"].map(|p| format!("{p}/poststarthook/{name}")));
    }
    paths.extend(zpages::PATHS.map(str::to_owned));
    paths.sort();
    paths.dedup();
    paths
}

/// Indented whatever the client: these answers are small and read by people.
fn json(body: Vec<u8>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(pretty::indent(&body))
}
