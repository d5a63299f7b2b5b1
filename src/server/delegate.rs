//! The delegation chain: each server answers what is its own and leaves the rest to the next.

use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;

use crate::respond;
use crate::rest::Rest;
use crate::rest::request::Request;

/// One server of the chain.
pub trait Delegate: Send + Sync {
    /// `None`: the path is not one of this server's.
    fn serve<'a>(&'a self, request: &'a Request, method: &'a str) -> LocalBoxFuture<'a, Option<HttpResponse>>;
}

impl Delegate for Rest {
    fn serve<'a>(&'a self, request: &'a Request, method: &'a str) -> LocalBoxFuture<'a, Option<HttpResponse>> {
        Box::pin(async move {
            if !request.info.is_resource || request.info.unrouted {
                return None;
            }
            let result = self.handle(request, method).await?;
            let mut response = result.unwrap_or_else(|error| respond::error(request, &error));
            respond::add_warnings(&mut response, &request.warnings.borrow());
            Some(response)
        })
    }
}
