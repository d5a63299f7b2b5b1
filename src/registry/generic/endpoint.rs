//! Endpoints: what a path leads to, and how it ends.

use std::sync::Arc;

use keelson_machinery::protobuf::Mask;
use keelson_machinery::scheme::{KindRef, SubresourceDesc};
use keelson_machinery::table::TableColumns;

use super::{Handler, Resource};

/// What a path leads to: a resource in one version.
#[derive(Clone)]
pub struct Endpoint {
    /// In all its versions.
    pub resource: Arc<Resource>,
    /// In this one.
    pub kind: KindRef,
    /// What a Table of this version shows.
    pub columns: Arc<TableColumns>,
    /// What of a stored object its row is made of; `None`: all.
    pub(super) row_mask: Option<Arc<Mask>>,
}

impl Endpoint {
    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&SubresourceDesc> {
        self.kind.subresources.iter().find(|s| s.name == name)
    }

    /// The code that answers for a subresource, or with "" for the resource; `None`: the generic handlers do.
    pub fn handler(&self, subresource: &str) -> Option<&dyn Handler> {
        self.resource.handlers.get(subresource).map(|h| &**h)
    }
}

impl Resource {
    /// It was made at run time and is served beside the resources of the build, by the rules of the API extensions
    /// server.
    pub fn is_custom(&self) -> bool {
        self.custom
    }

    /// Ends its watches; requests that are under way finish.
    pub(super) fn retire(&self) {
        self.key_space.release();
        self.retired.send_replace(true);
    }

    /// Returns when the resource is not served any more, because it has gone or another has taken its place.
    pub fn retired(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let mut told = self.retired.subscribe();
        // The sender lives on in this future, so waiting cannot fail.
        let resource = self.clone();
        async move {
            let _ = told.wait_for(|retired| *retired).await;
            drop(resource);
        }
    }
}
