//! Serving on each server: what the definitions say that it sees.

use std::sync::Arc;
use std::time::Duration;

use keelson_registry::NamespacedName;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};

use crate::DEFINITIONS;
use crate::serving::Serving;

/// How long a definition that is served ahead of its write is left alone. Whoever writes it looks at it then; this is
/// for what others have written meanwhile.
const AHEAD: Duration = Duration::from_millis(20);

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
        Ok(match self.serving.follow(key, &lister).await? {
            true => Next::Done,
            false => Next::After(AHEAD),
        })
    }

    fn runs_everywhere(&self) -> bool {
        true
    }
}
