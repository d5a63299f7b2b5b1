//! The filter chain. [`crate::app`] holds its order; each filter is one function in one file, given the request and
//! the rest of the chain.

pub mod authenticate;
pub mod authorize;
pub mod impersonate;
pub mod panic;
pub mod request_info;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use keelson_machinery::status::StatusError;

use crate::request_info::Query;
use crate::respond;

/// Ends a request in a filter.
fn refuse(request: ServiceRequest, error: &StatusError) -> ServiceResponse<BoxBody> {
    let response = respond::error(request.headers(), &Query::parse(request.query_string()), error);
    answer(request, response)
}

fn answer(request: ServiceRequest, response: HttpResponse) -> ServiceResponse<BoxBody> {
    request.into_response(response)
}
