//! Reads what the request asks for; the filters after this one and the handlers rely on it.

use std::rc::Rc;

use actix_web::Error;
use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderValue};
use actix_web::middleware::Next;

use crate::request_info::{Query, RequestInfo};

pub async fn request_info(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    let query = Query::parse(request.query_string());
    let info = RequestInfo::parse(request.method().as_str(), request.path(), &query);
    request.extensions_mut().insert(Rc::new(info));
    request.extensions_mut().insert(Rc::new(query));
    let mut response = next.call(request).await?;
    // Answers of an API are of the moment; handlers that know better have said so.
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    Ok(response)
}
