//! The delegation chain: each server answers for its own resources and leaves the others to the next.

use std::sync::Arc;

use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;

use crate::registry::{Catalog, Endpoint};
use crate::respond;
use crate::rest::Rest;
use crate::rest::request::Request;

/// One server of the chain. What it has may change while it serves.
pub trait Delegate: Catalog {
    /// What it serves at this group, version and plural now.
    fn lookup(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Endpoint>>;

    /// Whether it serves anything of this group, in any version.
    fn serves_group(&self, group: &str) -> bool;

    /// Answers a request for what was looked up here, though it may have gone meanwhile.
    fn serve<'a>(&'a self, request: &'a Request, endpoint: &'a Arc<Endpoint>) -> LocalBoxFuture<'a, HttpResponse>;
}

impl Catalog for Rest {
    fn served(&self) -> Arc<crate::registry::Served> {
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
            let result = self.handle(request, endpoint).await;
            let mut response = result.unwrap_or_else(|error| respond::error(request, &error));
            respond::add_warnings(&mut response, &request.warnings.borrow());
            response
        })
    }
}

/// What answers for the resource of a request: looked up once, when it comes.
#[derive(Clone)]
pub struct Found {
    /// The place of its server in the chain.
    pub(crate) server: usize,
    pub endpoint: Arc<Endpoint>,
}
