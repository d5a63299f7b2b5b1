//! Reads what the request asks for; the filters after this one and the handlers rely on it. Ends requests that take
//! longer than they may.

use std::rc::Rc;
use std::time::Duration;

use actix_web::Error;
use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderValue};
use actix_web::middleware::Next;
use keelson_machinery::status::StatusError;
use keelson_machinery::time;

use super::{answer, refuse};
use crate::request_info::{Query, RequestInfo, decode_path};
use crate::respond;

/// Requests that are no streams end after this time at the latest, in seconds.
const MAX_SECONDS: u64 = 60;

pub async fn request_info(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    let query = Query::parse(request.query_string());
    let Some(path) = decode_path(request.path()) else {
        return Ok(answer(request, respond::text(400, "400 Bad Request")));
    };
    let Some(info) = RequestInfo::parse(request.method().as_str(), &path, &query) else {
        return Ok(no_resource(request));
    };
    let limit = match info.is_long_running() {
        true => None,
        false => match time_limit(&query) {
            Ok(limit) => Some(limit),
            Err(error) => return Ok(uncached(refuse(request, &error))),
        },
    };
    request.extensions_mut().insert(Rc::new(info));
    request.extensions_mut().insert(Rc::new(query));
    let Some(limit) = limit else {
        return Ok(uncached(next.call(request).await?));
    };
    let http = request.request().clone();
    match tokio::time::timeout(limit, next.call(request)).await {
        Ok(response) => Ok(uncached(response?)),
        Err(_) => Ok(uncached(ServiceResponse::new(http, respond::out_of_time()))),
    }
}

/// What `?timeout=` asks for, as far as it is allowed.
fn time_limit(query: &Query) -> Result<Duration, StatusError> {
    let longest = Duration::from_secs(MAX_SECONDS);
    let Some(text) = query.get("timeout").filter(|text| !text.is_empty()) else {
        return Ok(longest);
    };
    let asked = time::Duration::parse(text)
        .map_err(|e| StatusError::bad_request(format!("invalid timeout specified in the request URL - {e}")))?;
    Ok(match u64::try_from(asked.as_nanos()) {
        Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos).min(longest),
        _ => longest,
    })
}

/// Answers of an API are of the moment; handlers that know better have said so.
fn uncached(mut response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    response
}

/// A path of old that names no resource is a failure without a Status.
fn no_resource(request: ServiceRequest) -> ServiceResponse<BoxBody> {
    let escaped = request
        .uri()
        .to_string()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let text = format!(
        "Internal Server Error: {escaped:?}: failed to create RequestInfo: \
         unable to determine kind and namespace from url, {escaped}\n"
    );
    answer(request, respond::text(500, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_may_only_shorten_the_time() {
        for (query, seconds) in [
            ("", 60),
            ("timeout=5s", 5),
            ("timeout=1h", 60),
            ("timeout=0s", 60),
            ("timeout=-1s", 60),
        ] {
            assert_eq!(
                time_limit(&Query::parse(query)),
                Ok(Duration::from_secs(seconds)),
                "{query}"
            );
        }
        let error = time_limit(&Query::parse("timeout=5")).unwrap_err();
        let text = "invalid timeout specified in the request URL - time: missing unit in duration \"5\"";
        assert_eq!((error.code, error.message.as_str()), (400, text));
    }
}
