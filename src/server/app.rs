//! The actix-web application: the filter chain around one catch-all handler.

use std::time::Instant;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse, fn_service};
use actix_web::web::Data;
use actix_web::{App, Error, HttpResponse};
use keelson_machinery::status::StatusError;

use crate::debug::{flow_control, store_snapshot};
use crate::filters::audit::audit;
use crate::filters::audit_id::audit_id;
use crate::filters::authenticate::authenticate;
use crate::filters::authorize::authorize;
use crate::filters::cache_control::cache_control;
use crate::filters::cors::cors;
use crate::filters::deadline::deadline;
use crate::filters::impersonate::impersonate;
use crate::filters::in_flight::in_flight;
use crate::filters::panic::panic;
use crate::filters::priority_and_fairness::priority_and_fairness;
use crate::filters::request_info::request_info;
use crate::filters::request_log::request_log;
use crate::filters::retry_after::retry_after;
use crate::filters::strict_transport::strict_transport;
use crate::health;
use crate::request::Request;
use crate::respond;
use crate::root;
use crate::state::ServerState;

/// Calls each filter with the rest of the list as what comes after it. Plain calls, so that a filter that has nothing
/// to do costs nothing: actix-web's own middleware allocates twice per filter and request.
macro_rules! chain {
    ($state:ident, $request:ident, [] => $end:ident) => {
        $end($state, $request).await
    };
    ($state:ident, $request:ident, [$filter:ident $(, $rest:ident)*] => $end:ident) => {
        $filter($state, $request, async |$request: &mut Request| {
            chain!($state, $request, [$($rest),*] => $end)
        })
        .await
    };
}

/// The application of one worker thread.
pub fn app(
    state: Data<ServerState>,
) -> App<
    impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>,
> {
    App::new().default_service(fn_service(move |request| answer(state.clone(), request)))
}

async fn answer(state: Data<ServerState>, request: ServiceRequest) -> Result<ServiceResponse, Error> {
    let mut request = Request::new(request);
    let response = filtered(&state, &mut request).await;
    Ok(ServiceResponse::new(request.http, response))
}

/// The filters, outermost first, and what they guard.
async fn filtered(state: &ServerState, request: &mut Request) -> HttpResponse {
    chain!(state, request, [
        audit_id,
        request_log,
        panic,
        request_info,
        retry_after,
        strict_transport,
        cache_control,
        deadline,
        cors,
        authenticate,
        audit,
        impersonate,
        priority_and_fairness,
        in_flight,
        authorize
    ] => serve)
}

/// Everything behind the filters: the delegation chain, then the paths that are no resources, then 404.
async fn serve(state: &ServerState, request: &Request) -> HttpResponse {
    let started = Instant::now();
    let found = request.found.as_ref();
    let delegate = found.and_then(|found| Some((state.delegates.get(found.server)?, &found.endpoint)));
    let response = match delegate {
        Some((server, endpoint)) => server.serve(request, endpoint).await,
        None => unmuxed(state, request).await,
    };
    let (code, took) = (response.status().as_u16(), started.elapsed());
    state.metrics.requests.observe(request, code, took);
    response
}

async fn unmuxed(state: &ServerState, request: &Request) -> HttpResponse {
    if let Some(response) = health::serve(state, &request.info.path, &request.query).await {
        return response;
    }
    if let Some(response) = store_snapshot::serve(state, request).await {
        return response;
    }
    if let Some(response) = flow_control::serve(state, request) {
        return response;
    }
    let found = root::serve(state, request).await;
    found.unwrap_or_else(|| not_found(state, request))
}

/// Below a served group the API answers, elsewhere nobody does.
fn not_found(state: &ServerState, request: &Request) -> HttpResponse {
    let info = &request.info;
    if info.unrouted {
        return respond::page_not_found();
    }
    let mut parts = info.path.trim_matches('/').split('/');
    let routed = match (parts.next(), parts.next()) {
        (Some("api"), Some(_)) => state.serves_group(""),
        (Some("apis"), Some(group)) => state.serves_group(group),
        // The version is of the same router as resources.
        (Some("version"), _) => true,
        _ => false,
    };
    if routed {
        request.error(&StatusError::no_such_resource())
    } else {
        respond::page_not_found()
    }
}
