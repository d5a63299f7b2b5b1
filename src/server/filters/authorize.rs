//! Lets through who may do what the request asks for.

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
use crate::authz::refusal;
use crate::request_info::RequestInfo;
use crate::state::ServerState;
use crate::user::User;

pub async fn authorize(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    let state = request.app_data::<Data<ServerState>>().cloned();
    let user = request.extensions().get::<Rc<User>>().cloned();
    let info = request.extensions().get::<Rc<RequestInfo>>().cloned();
    let (Some(state), Some(user), Some(info)) = (state, user, info) else {
        return Ok(refuse(
            request,
            &StatusError::internal_error("no user found in request context"),
        ));
    };
    match state.authorization.authorize(&user, &info) {
        Ok(()) => next.call(request).await,
        Err(reason) => {
            let why = refusal(&user, &info, &reason);
            let error = StatusError::forbidden(&info.group, &info.resource, &info.name, why);
            let mut response = refuse(request, &error);
            let headers = response.headers_mut();
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            Ok(response)
        }
    }
}
