//! The actix-web application: the filter chain around one catch-all handler.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::header;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, Payload};
use actix_web::{App, Error, HttpMessage, HttpRequest, HttpResponse};
use keelson_machinery::status::StatusError;

use crate::filters::authenticate::authenticate;
use crate::filters::authorize::authorize;
use crate::filters::impersonate::impersonate;
use crate::filters::panic::panic;
use crate::filters::request_info::request_info;
use crate::health;
use crate::impersonation;
use crate::registry::Warnings;
use crate::request_info::{Query, RequestInfo};
use crate::respond;
use crate::rest::request::Request;
use crate::root;
use crate::snapshot;
use crate::state::ServerState;
use crate::user::User;

/// The application of one worker thread.
///
/// The chain, outermost first: panic boundary → request info → authentication → impersonation → authorization → the servers. actix runs
/// the filter that was wrapped last first, so it reads from the bottom up.
pub fn app(
    state: Data<ServerState>,
) -> App<
    impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>,
> {
    App::new()
        .app_data(state)
        .default_service(web::to(serve))
        .wrap(from_fn(authorize))
        .wrap(from_fn(impersonate))
        .wrap(from_fn(authenticate))
        .wrap(from_fn(request_info))
        .wrap(from_fn(panic))
}

/// Everything behind the filters: the delegation chain, then the paths that are no resources, then 404.
async fn serve(http: HttpRequest, payload: Payload, state: Data<ServerState>) -> HttpResponse {
    let started = Instant::now();
    let method = http.method().as_str();
    let Some(request) = request(&http, payload) else {
        return respond::error(
            http.headers(),
            &Query::default(),
            &StatusError::internal_error("the filter chain is incomplete"),
        );
    };
    for delegate in &state.delegates {
        if let Some(response) = delegate.serve(&request, method).await {
            let info = &request.info;
            let known = state
                .rest
                .registry
                .endpoint(&info.group, &info.version, &info.resource)
                .is_some();
            state
                .metrics
                .observe(info, known, response.status().as_u16(), started.elapsed());
            return response;
        }
    }
    let response = unmuxed(&state, &request, &http).await;
    state
        .metrics
        .observe(&request.info, false, response.status().as_u16(), started.elapsed());
    response
}

async fn unmuxed(state: &ServerState, request: &Request, http: &HttpRequest) -> HttpResponse {
    if let Some(response) = health::serve(state, &request.info.path, &request.query).await {
        return response;
    }
    if let Some(response) = snapshot::serve(state, request, http).await {
        return response;
    }
    root::serve(state, request, http).unwrap_or_else(|| not_found(state, request))
}

/// Below a served group the API answers, elsewhere nobody does.
fn not_found(state: &ServerState, request: &Request) -> HttpResponse {
    let info = &request.info;
    if info.unrouted {
        return respond::page_not_found();
    }
    let mut parts = info.path.trim_matches('/').split('/');
    let registry = &state.rest.registry;
    let routed = match (parts.next(), parts.next()) {
        (Some("api"), Some(_)) => registry.serves_group(""),
        (Some("apis"), Some(group)) => registry.serves_group(group),
        // The version is of the same router as resources.
        (Some("version"), _) => true,
        _ => false,
    };
    if routed {
        respond::error(&request.headers, &request.query, &StatusError::no_such_resource())
    } else {
        respond::page_not_found()
    }
}

fn request(http: &HttpRequest, payload: Payload) -> Option<Request> {
    let extensions = http.extensions();
    // Nobody further on needs the credentials, and what is not there can't leak.
    let mut headers = http.headers().clone();
    headers.remove(header::AUTHORIZATION);
    impersonation::remove(&mut headers);
    Some(Request {
        info: extensions.get::<Rc<RequestInfo>>()?.clone(),
        query: (**extensions.get::<Rc<Query>>()?).clone(),
        user: extensions.get::<Rc<User>>()?.clone(),
        headers,
        payload: RefCell::new(Some(payload)),
        warnings: Warnings::default(),
    })
}
