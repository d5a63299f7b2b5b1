//! The request log: a line for each answer that blames the server (5xx), at every verbosity; one for each other request
//! where debugging events of this module are logged, which is from verbosity 3 on. Fields are called as
//! kube-apiserver's are.

use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderValue, USER_AGENT};
use tracing::Level;

use super::Next;
use crate::health;
use crate::request::Request;
use crate::respond::Failure;
use crate::state::ServerState;

pub async fn request_log(_: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    logged(request, next).await
}

async fn logged(request: &mut Request, next: impl Next) -> HttpResponse {
    let began = tracing::enabled!(Level::ERROR).then(Instant::now);
    let response = next(request).await;
    if let Some(began) = began {
        let resp = response.status().as_u16();
        // Why a health check fails is logged where it does, as often as it changes.
        if resp >= 500 && !health::is_endpoint(request.http.path()) {
            let reason = response.extensions().get::<Failure>().map(|failure| failure.0.clone());
            let line = Line::of(request, began);
            tracing::error!(
                verb = line.verb,
                URI = line.uri,
                latency = line.latency,
                userAgent = line.agent,
                "audit-ID" = line.id,
                srcIP = line.peer,
                resp,
                reason,
                "HTTP"
            );
        } else if tracing::enabled!(Level::DEBUG) {
            let line = Line::of(request, began);
            tracing::debug!(
                verb = line.verb,
                URI = line.uri,
                latency = line.latency,
                userAgent = line.agent,
                "audit-ID" = line.id,
                srcIP = line.peer,
                resp,
                "HTTP"
            );
        }
    }
    response
}

/// What is said of a request.
struct Line<'a> {
    verb: &'a str,
    uri: String,
    latency: String,
    agent: &'a str,
    id: &'a str,
    peer: String,
}

impl Line<'_> {
    fn of(request: &Request, began: Instant) -> Line<'_> {
        Line {
            verb: match request.info.verb.as_str() {
                "" => request.http.method().as_str(),
                verb => verb,
            },
            uri: request.http.uri().to_string(),
            latency: format!("{:?}", began.elapsed()),
            agent: text(request.headers.get(USER_AGENT)),
            id: text(request.audit.id()),
            peer: request
                .connection()
                .map_or(String::new(), |connection| connection.peer.to_string()),
        }
    }
}

/// "" where there is none, or none of ASCII.
fn text(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}
