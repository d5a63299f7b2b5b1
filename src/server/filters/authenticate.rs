//! Finds out who sent the request. Wrong credentials are 401 on every path.

use std::rc::Rc;

use actix_web::Error;
use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web::Data;
use keelson_machinery::status::StatusError;

use super::refuse;
use crate::authn::Credentials;
use crate::authn::bearer::{self, Bearer};
use crate::listener::Connection;
use crate::state::ServerState;

const EXTRA_SPACE: &str =
    "299 - \"the provided Authorization header contains extra space before the bearer token, and is ignored\"";

pub async fn authenticate(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(state) = request.app_data::<Data<ServerState>>().cloned() else {
        return Ok(refuse(request, &StatusError::internal_error("no server state")));
    };
    let connection = request.extensions().get::<Rc<Connection>>().cloned();
    let credentials = Credentials {
        headers: request.headers(),
        connection: connection.as_deref(),
    };
    let extra_space = bearer::token(request.headers()) == Bearer::ExtraSpace;
    let user = match state.authentication.authenticate(&credentials) {
        Ok(user) => user,
        Err(error) => {
            tracing::debug!(error, path = request.path(), "unable to authenticate the request");
            return Ok(refuse(request, &StatusError::unauthorized()));
        }
    };
    request.extensions_mut().insert(Rc::new(user));
    let mut response = next.call(request).await?;
    if extra_space {
        response
            .headers_mut()
            .append(header::WARNING, HeaderValue::from_static(EXTRA_SPACE));
    }
    Ok(response)
}
