//! Finds out who sent the request. Wrong credentials are 401 on every path.

use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use keelson_access::authn::Credentials;
use keelson_access::authn::bearer;
use keelson_access::user::USER_ANONYMOUS;
use keelson_machinery::status::StatusError;

use super::audit::refused;
use super::{Next, refuse};
use crate::request::Request;
use crate::state::ServerState;

const EXTRA_SPACE: &str =
    "299 - \"the provided Authorization header contains extra space before the bearer token, and is ignored\"";

pub async fn authenticate(state: &ServerState, request: &mut Request, next: impl Next) -> HttpResponse {
    let begin = Instant::now();
    let authentication = &state.authentication;
    let connection = request.connection();
    let credentials = Credentials {
        headers: &request.headers,
        connection: connection.as_deref(),
        path: &request.info.path,
        audiences: &authentication.audiences,
    };
    let extra_space = bearer::has_extra_space(&request.headers);
    let outcome = authentication.authenticate(&credentials).await;
    let user = outcome.as_ref().map(|identity| identity.user.name.as_str());
    authentication.metrics.observe(user, begin.elapsed());
    let unknown = user.map_or(true, |name| name == USER_ANONYMOUS);
    let ends = unknown && connection.is_some_and(|connection| connection.tls && connection.http2);
    let mut response = match outcome {
        Ok(identity) => {
            request.user = identity.user.clone();
            for (name, text) in &identity.notes {
                request.audit.annotate(name, || text.clone());
            }
            // Nobody further on needs the credentials, and what is not there can't leak.
            authentication.strip(&mut request.headers);
            next(request).await
        }
        Err(error) => {
            tracing::debug!(%error, path = request.info.path, "unable to authenticate the request");
            refused(state, request, |request| refuse(request, &StatusError::unauthorized())).await
        }
    };
    let headers = response.headers_mut();
    if ends {
        // Whoever is unknown gets no connection on which many requests can be begun and given up at once.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if extra_space {
        headers.append(header::WARNING, HeaderValue::from_static(EXTRA_SPACE));
    }
    response
}
