//! Lets a request go on as somebody else, if it asks for that and its user may.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use keelson_access::impersonation;
use keelson_machinery::status::StatusError;

use super::{Next, refuse};
use crate::request::Request;
use crate::state::ServerState;

pub async fn impersonate(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    match impersonation::wanted(&request.headers) {
        Ok(None) => {}
        Ok(Some(wanted)) => {
            let acting = state
                .impersonation
                .act_as(&state.authorization, &request.user, &request.info, wanted)
                .await;
            match acting {
                Ok(acting) => {
                    request.user = Arc::new(acting.user);
                    request.audit.impersonated(&request.user, acting.constraint);
                }
                Err(error) => return refused(request, &error),
            }
        }
        Err(error) => return refused(request, &error),
    }
    // As with credentials: nobody further on needs them.
    impersonation::remove(&mut request.headers);
    next(request).await
}

fn refused(request: &Request, error: &StatusError) -> HttpResponse {
    let mut response = refuse(request, error);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
