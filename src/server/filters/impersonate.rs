//! Lets a request go on as somebody else, if it asks for that and its user may.

use std::rc::Rc;

use actix_web::Error;
use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Data;
use keelson_machinery::status::StatusError;

use super::refuse;
use crate::impersonation;
use crate::request_info::RequestInfo;
use crate::state::ServerState;
use crate::user::User;

pub async fn impersonate(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    let wanted = match impersonation::wanted(request.headers()) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return next.call(request).await,
        Err(error) => return Ok(refuse(request, &error)),
    };
    let state = request.app_data::<Data<ServerState>>().cloned();
    let user = request.extensions().get::<Rc<User>>().cloned();
    let info = request.extensions().get::<Rc<RequestInfo>>().cloned();
    let (Some(state), Some(user), Some(info)) = (state, user, info) else {
        let error = StatusError::internal_error("no user found in request context");
        return Ok(refuse(request, &error));
    };
    match state.impersonation.act_as(&state.authorization, &user, &info, wanted) {
        Ok(user) => {
            request.extensions_mut().insert(Rc::new(user));
            next.call(request).await
        }
        Err(error) => Ok(refuse(request, &error)),
    }
}
