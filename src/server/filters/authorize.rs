//! Lets through who may do what the request asks for.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use keelson_machinery::status::StatusError;

use super::{Next, refuse};
use crate::authz::refusal;
use crate::rest::request::Request;
use crate::state::ServerState;

/// What was decided, and why, as the audit shows it.
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

pub async fn authorize(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let (user, info) = (&request.user, &request.info);
    let verdict = state.authorization.decide(user, info).await;
    if verdict.allowed {
        request.audit.annotate(DECISION, || "allow".to_owned());
        request.audit.annotate(REASON, || verdict.reason.clone());
        request.authorization = Some(state.authorization.clone());
        return next(request).await;
    }
    if !verdict.denied && !verdict.error.is_empty() {
        request.audit.annotate(REASON, || "internal error".to_owned());
        return refuse(request, &StatusError::internal_error(verdict.error));
    }
    request.audit.annotate(DECISION, || "forbid".to_owned());
    request.audit.annotate(REASON, || verdict.reason.clone());
    let why = refusal(user, info, &verdict.reason);
    let error = StatusError::forbidden(&info.group, &info.resource, &info.name, why);
    let mut response = refuse(request, &error);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
