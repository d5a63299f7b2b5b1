//! Gives every request an id and the time at which it came, by which the log of its audit can be found: the client's
//! own (`Audit-ID`), or a new one. The answer shows it.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};
use keelson_access::request_info::decode_path;

use super::Next;
use crate::audit::Trail;
use crate::request::Request;
use crate::state::ServerState;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

pub async fn audit_id(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let backend = &state.rest.backend;
    identified(request, next, |id| {
        let id = id.or_else(|| HeaderValue::try_from(backend.new_uid()).ok());
        id.map(|id| Trail::begin(id, backend.clock.now(), state.audit.is_on()))
    })
    .await
}

/// `trail` makes that of a request from the id that its client gave.
async fn identified(
    request: &mut Request,
    next: impl Next,
    trail: impl FnOnce(Option<HeaderValue>) -> Option<Trail>,
) -> HttpResponse {
    let path = request.http.path();
    // Where kube-apiserver's parser fails, no filter is reached.
    if path.contains('%') && decode_path(path).is_none() {
        return next(request).await;
    }
    let given = request.headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
    request.audit = trail(given).unwrap_or_default();
    let mut response = next(request).await;
    if let Some(id) = request.audit.id() {
        response.headers_mut().insert(AUDIT_ID, id.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fine, header, request};
    use super::*;

    async fn answer(target: &str, given: &str) -> HttpResponse {
        let mut request = request("GET", target, &[("audit-id", given)]);
        let new = || HeaderValue::from_static("new");
        identified(&mut request, fine, |id| {
            Some(Trail::begin(id.unwrap_or_else(new), Default::default(), false))
        })
        .await
    }

    #[tokio::test]
    async fn answers_show_the_id() {
        let long = "x".repeat(200);
        for (given, shown) in [
            ("mine", "mine"),
            ("", "new"),
            (long.as_str(), &long),
            ("a b,c\"\\", "a b,c\"\\"),
        ] {
            assert_eq!(header(&answer("/version", given).await, "audit-id"), shown);
        }
        assert_eq!(
            header(&answer("/%zz", "mine").await, "audit-id"),
            "",
            "nobody has read it"
        );
    }
}
