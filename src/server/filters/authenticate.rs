//! Finds out who sent the request. Wrong credentials are 401 on every path.

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use keelson_machinery::status::StatusError;

use super::{Next, refuse};
use crate::authn::Credentials;
use crate::authn::bearer::{self, Bearer};
use crate::rest::request::Request;
use crate::state::ServerState;

const EXTRA_SPACE: &str =
    "299 - \"the provided Authorization header contains extra space before the bearer token, and is ignored\"";

pub async fn authenticate(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let connection = request.connection();
    let credentials = Credentials {
        headers: &request.headers,
        connection: connection.as_deref(),
    };
    let extra_space = bearer::token(&request.headers) == Bearer::ExtraSpace;
    request.user = match state.authentication.authenticate(&credentials) {
        Ok(user) => user,
        Err(error) => {
            tracing::debug!(error, path = request.info.path, "unable to authenticate the request");
            return refuse(request, &StatusError::unauthorized());
        }
    };
    // Nobody further on needs the credentials, and what is not there can't leak.
    request.headers.remove(header::AUTHORIZATION);
    let mut response = next(request).await;
    if extra_space {
        response
            .headers_mut()
            .append(header::WARNING, HeaderValue::from_static(EXTRA_SPACE));
    }
    response
}
