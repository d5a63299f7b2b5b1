//! NamespaceExists: nothing is written to a namespace that is not there.

use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::later;

use super::lookup;

pub struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::VALIDATES.when(scope.operation != Operation::Connect && scope.namespaced)
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "namespaces")]
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        later(check(attributes))
    }
}

async fn check(attributes: &Attributes<'_>) -> Result<(), StatusError> {
    lookup::namespace(attributes).await.map(drop)
}
