//! Ingresses.

use keelson_api::networking_k8s_io::v1::Ingress;
use keelson_registry::{KindCode, Strategy};

use crate::cells;

/// Named the class of an ingress before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Registers the rules of ingresses.
pub fn register(code: &mut KindCode) {
    code.kind::<Ingress>()
        .strategy(IngressStrategy)
        .cells(cells::networking::INGRESS);
}

/// The rules of ingresses.
struct IngressStrategy;

impl Strategy for IngressStrategy {
    type Object = Ingress;

    fn warnings(&self, new: &Ingress, old: Option<&Ingress>) -> Vec<String> {
        if old.is_some() || !new.metadata.annotations.contains_key(CLASS_ANNOTATION) {
            return Vec::new();
        }
        vec![format!(
            "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
        )]
    }
}
