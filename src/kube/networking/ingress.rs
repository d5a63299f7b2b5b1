//! Ingresses.

use keelson_machinery::object::Object;
use keelson_server::registry::Strategy;

/// Named the class of an ingress before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The rules of ingresses.
pub struct IngressStrategy;

impl Strategy for IngressStrategy {
    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        if old.is_some() || !new.meta().annotations.contains_key(CLASS_ANNOTATION) {
            return Vec::new();
        }
        vec![format!(
            "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
        )]
    }
}
