//! PodGroupProtection: a group of pods gets a finalizer, which a controller takes away when it has no pods.

use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

pub struct PodGroupProtection;

impl Plugin for PodGroupProtection {
    fn name(&self) -> &'static str {
        "PodGroupProtection"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let creation = scope.operation == Operation::Create;
        Handles::MUTATES.when(creation && scope.is("scheduling.k8s.io", "podgroups"))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if let Some(metadata) = attributes.metadata_mut()
            && !metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
        {
            metadata.finalizers.push(FINALIZER.to_owned());
        }
        now(Ok(()))
    }
}
