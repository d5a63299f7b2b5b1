//! Serving on each server: what the definitions say that it sees.

use std::sync::Arc;

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_registry::NamespacedName;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};

use super::read;
use crate::DEFINITIONS;
use crate::serving::Serving;

/// Keeps the registry of this server in line with the definitions.
pub struct DefinitionServing {
    serving: Arc<Serving>,
}

impl DefinitionServing {
    /// Of this server.
    pub fn new(serving: Arc<Serving>) -> DefinitionServing {
        DefinitionServing { serving }
    }
}

impl Controller for DefinitionServing {
    fn name(&self) -> &'static str {
        "DiscoveryController"
    }

    fn reconciles(&self) -> GroupResource {
        DEFINITIONS
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let lister = context.lister(&DEFINITIONS).ok_or("the server has no definitions")?;
        let Some((metadata, status)) = lister.part(key, "status").await? else {
            self.serving.forget(&key.name).await;
            return Ok(Next::Done);
        };
        if self.serving.has_seen(&key.name, &metadata.resource_version).await {
            return Ok(Next::Done);
        }
        // Its schemas are read only where they may have changed.
        let part = CustomResourceDefinition {
            metadata,
            status,
            ..CustomResourceDefinition::default()
        };
        if self.serving.is_settled(&part).await {
            return Ok(Next::Done);
        }
        match read(context, key).await? {
            Some(definition) => self.serving.see(&definition).await,
            None => self.serving.forget(&key.name).await,
        }
        Ok(Next::Done)
    }

    fn runs_everywhere(&self) -> bool {
        true
    }
}
