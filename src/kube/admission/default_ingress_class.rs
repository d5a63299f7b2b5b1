//! DefaultIngressClass: an ingress that names no class gets the one that is marked as the default.

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::networking_k8s_io::v1::Ingress;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;
use keelson_registry::{Followed, Outcome, Verbs};

use super::default_class::{Marked, newest};

const GROUP: &str = "networking.k8s.io";
const MARK: &str = "ingressclass.kubernetes.io/is-default-class";
/// Named the class before there was a field for it.
const OLD_CLASS: &str = "kubernetes.io/ingress.class";

pub struct DefaultIngressClass {
    classes: Followed<Marked>,
}

impl Default for DefaultIngressClass {
    fn default() -> Self {
        DefaultIngressClass {
            classes: Followed::new(|object| Marked::of(object, &[MARK])),
        }
    }
}

impl Plugin for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::MUTATES.when(scope.operation == Operation::Create && scope.is(GROUP, "ingresses"))
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.classes.attach(listers, GROUP, "ingressclasses");
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if let Some(ingress) = attributes.typed_mut::<Ingress>()
            && ingress.spec.ingress_class_name.is_none()
            && !ingress.metadata.annotations.contains_key(OLD_CLASS)
        {
            ingress.spec.ingress_class_name = newest(&self.classes);
        }
        now(Ok(()))
    }
}
