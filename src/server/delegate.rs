//! The delegation chain: each server answers for its own resources and leaves the others to the next.

use std::sync::Arc;

use actix_web::HttpResponse;
use futures_util::future::LocalBoxFuture;
use keelson_registry::{Catalog, Endpoint};

use crate::request::Request;

/// One server of the chain. What it has may change while it serves.
pub trait Delegate: Catalog {
    /// What it serves at this group, version and plural now.
    fn lookup(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Endpoint>>;

    /// Whether it serves anything of this group, in any version.
    fn serves_group(&self, group: &str) -> bool;

    /// Answers a request for what was looked up here, though it may have gone meanwhile.
    fn serve<'a>(&'a self, request: &'a Request, endpoint: &'a Arc<Endpoint>) -> LocalBoxFuture<'a, HttpResponse>;
}
