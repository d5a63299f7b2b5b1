//! Checks between authorization and storage that look beyond the object itself.

mod namespace_lifecycle;

use keelson_machinery::status::StatusError;

use crate::authz::Followed;
use crate::registry::{Endpoint, Registry};

/// What is about to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// The plug-ins that are on, in their order.
#[derive(Clone, Debug)]
pub struct Admission {
    pub namespace_lifecycle: bool,
}

impl Default for Admission {
    fn default() -> Admission {
        Admission {
            namespace_lifecycle: true,
        }
    }
}

impl Admission {
    /// What the store is to hold in memory for the plug-ins.
    pub(crate) fn followed(&self, registry: &Registry) -> Option<Followed> {
        let namespaces = registry.resource("", "namespaces");
        let namespaces = namespaces.filter(|_| self.namespace_lifecycle)?;
        Some(Followed::of(namespaces))
    }

    /// Refuses what a plug-in forbids.
    pub async fn admit(
        &self,
        registry: &Registry,
        endpoint: &Endpoint,
        operation: Operation,
        namespace: &str,
        name: &str,
    ) -> Result<(), StatusError> {
        if self.namespace_lifecycle {
            namespace_lifecycle::admit(registry, endpoint, operation, namespace, name).await?;
        }
        Ok(())
    }
}
