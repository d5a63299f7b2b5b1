//! Lets through who may do what the request asks for.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use keelson_access::authz::refused;
use keelson_machinery::field::text::quote;
use tokio::time::Instant;

use super::{Next, refuse};
use crate::request::Request;
use crate::state::ServerState;

/// What was decided, and why, as the audit shows it.
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

pub async fn authorize(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let (user, info) = (&request.user, &request.info);
    let begin = Instant::now();
    let verdict = state.authorization.decide(user, info).await;
    state.authorization.metrics().observe(&verdict, begin.elapsed());
    if verdict.allowed {
        request.audit.annotate(DECISION, || "allow");
        request.audit.annotate(REASON, || verdict.reason);
        request.authorization = Some(state.authorization.clone());
        return next(request).await;
    }
    let mut response = match &verdict.error {
        None => {
            request.audit.annotate(DECISION, || "forbid");
            request.audit.annotate(REASON, || verdict.reason.clone());
            refuse(request, &refused(user, info, &verdict.reason))
        }
        Some(error) => {
            request.audit.annotate(REASON, || "internal error");
            undecided(&request.http.uri().to_string(), error)
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The answer where it could not be found out: a line of text, as kube-apiserver gives it.
fn undecided(target: &str, error: &str) -> HttpResponse {
    let target = target.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = format!("Internal Server Error: {}: {error}\n", quote(&target));
    HttpResponse::InternalServerError()
        .content_type("text/plain; charset=utf-8")
        .body(text)
}
