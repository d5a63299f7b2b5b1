//! The panic boundary: a request that panics gets a 500, and the server lives.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use actix_web::HttpResponse;
use futures_util::FutureExt;

use super::Next;
use crate::request::Request;
use crate::respond;
use crate::state::ServerState;

const TEXT: &str = "This request caused apiserver to panic. Look in the logs for details.\n";

pub async fn panic(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let began = Instant::now();
    // The state that a panic may leave half changed is that of the one request, which ends here.
    match AssertUnwindSafe(next(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            let http = &request.http;
            tracing::error!(method = %http.method(), path = http.path(), "a request panicked");
            state.metrics.requests.observe(request, 500, began.elapsed());
            respond::text(500, TEXT)
        }
    }
}
