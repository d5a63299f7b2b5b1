//! The filter chain. [`crate::app`] holds its order; each filter is one function in one file, given the server's state,
//! the request and the rest of the chain.

pub mod audit;
pub mod audit_id;
pub mod authenticate;
pub mod authorize;
pub mod cache_control;
pub mod cors;
pub mod deadline;
pub mod impersonate;
pub mod in_flight;
pub mod panic;
pub mod priority_and_fairness;
pub mod request_info;
pub mod request_log;
pub mod retry_after;
pub mod strict_transport;

use actix_web::HttpResponse;
use keelson_machinery::status::StatusError;

use crate::request::Request;

/// The rest of the chain.
pub trait Next: AsyncFnOnce(&mut Request) -> HttpResponse {}

impl<F: AsyncFnOnce(&mut Request) -> HttpResponse> Next for F {}

/// Ends a request in a filter.
fn refuse(request: &Request, error: &StatusError) -> HttpResponse {
    request.error(error)
}

#[cfg(test)]
pub(crate) mod tests;
