//! REST handlers as one server of the delegation chain.

use std::sync::Arc;

use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;
use keelson_registry::{Catalog, Endpoint, Served};

use super::Rest;
use crate::delegate::Delegate;
use crate::request::Request;
use crate::respond;

impl Catalog for Rest {
    fn served(&self) -> Arc<Served> {
        self.registry.served()
    }
}

impl Delegate for Rest {
    fn lookup(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Endpoint>> {
        self.registry.lookup(group, version, resource)
    }

    fn serves_group(&self, group: &str) -> bool {
        self.registry.serves_group(group)
    }

    fn serve<'a>(&'a self, request: &'a Request, endpoint: &'a Arc<Endpoint>) -> LocalBoxFuture<'a, HttpResponse> {
        Box::pin(async move {
            let mut response = match endpoint.resource.is_custom() {
                true => self.handle_custom(request, endpoint).await,
                false => self
                    .handle(request, endpoint)
                    .await
                    .unwrap_or_else(|error| request.error(&error)),
            };
            respond::add_warnings(&mut response, &request.warnings.borrow());
            response
        })
    }
}
