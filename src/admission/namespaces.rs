//! Namespaces: what selectors and expressions see of the one that a request is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::core::v1::Namespace;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::Followed;
use keelson_registry::admission::{Attributes, Operation};

const RESOURCE: &str = "namespaces";

/// The namespaces of the server.
pub(crate) struct Namespaces {
    followed: Followed<Namespace>,
}

impl Default for Namespaces {
    fn default() -> Self {
        let make = |object: &dyn Object| object.downcast_ref::<Namespace>().cloned();
        Namespaces {
            followed: Followed::new(make),
        }
    }
}

/// The labels that a selector looks at.
pub(crate) enum Labels<'a> {
    /// Those of the namespace that is written.
    Own(&'a BTreeMap<String, String>),
    /// Those of the namespace that the request is in.
    Of(Arc<Namespace>),
}

impl Labels<'_> {
    pub fn get(&self) -> &BTreeMap<String, String> {
        match self {
            Labels::Own(labels) => labels,
            Labels::Of(namespace) => &namespace.metadata.labels,
        }
    }
}

/// Whether the request is one of namespaces themselves.
fn is_of_namespaces(attributes: &Attributes<'_>) -> bool {
    attributes.resource.plural == RESOURCE
}

impl Namespaces {
    pub const FOLLOWED: (&'static str, &'static str) = ("", RESOURCE);

    /// Follows them; once is enough.
    pub fn attach(&self, listers: &dyn Listers) {
        self.followed.attach(listers, "", RESOURCE);
    }

    /// The namespace of this name.
    ///
    /// # Errors
    /// 404: there is none.
    pub async fn get(&self, attributes: &Attributes<'_>, name: &str) -> Result<Arc<Namespace>, StatusError> {
        if let Some(namespace) = self.followed.get("", name) {
            return Ok(namespace);
        }
        // What memory has not got yet, the store may have.
        let resource = attributes.registry().and_then(|all| all.resource("", RESOURCE));
        let found = match resource.filter(|_| !name.is_empty()) {
            Some(resource) => resource.find("", name).await?,
            None => None,
        };
        let found = found.and_then(|stored| stored.object.downcast_ref::<Namespace>().cloned());
        found
            .map(Arc::new)
            .ok_or_else(|| StatusError::not_found("", RESOURCE, name))
    }

    /// The labels by which a request is selected; `None`: it is in no namespace, so that all selectors select it.
    ///
    /// # Errors
    /// 404: its namespace is not there.
    pub async fn labels<'a>(&self, attributes: &'a Attributes<'_>) -> Result<Option<Labels<'a>>, StatusError> {
        let name = attributes.requested_namespace();
        let own = is_of_namespaces(attributes);
        if name.is_empty() && !own {
            return Ok(None);
        }
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if own && attributes.subresource.is_empty() && writes {
            let metadata = attributes.metadata();
            return Ok(metadata.map(|metadata| Labels::Own(&metadata.labels)));
        }
        self.get(attributes, name)
            .await
            .map(|namespace| Some(Labels::Of(namespace)))
    }
}
