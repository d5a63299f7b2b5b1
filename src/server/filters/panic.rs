//! The panic boundary: a request that panics gets a 500, and the server lives.

use std::panic::AssertUnwindSafe;

use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use futures_util::FutureExt;

use crate::respond;

const TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.\n";

pub async fn panic(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    let http = request.request().clone();
    // The state that a panic may leave half changed is that of the one request, which ends here.
    match AssertUnwindSafe(next.call(request)).catch_unwind().await {
        Ok(result) => result,
        Err(_) => {
            tracing::error!(method = %http.method(), path = http.path(), "a request panicked");
            Ok(ServiceResponse::new(http, respond::text(500, TEXT)))
        }
    }
}
