//! Replication controllers: what their template says holds for themselves.

use keelson_machinery::field::Path;
use keelson_machinery::object::Object;
use keelson_server::registry::Strategy;

use super::pod_spec;
use crate::api::core::v1::ReplicationController;
use crate::kube::typed::{is_new_generation, typed, typed_mut};

/// The rules of replication controllers.
pub struct ReplicationControllerStrategy;

impl Strategy for ReplicationControllerStrategy {
    fn defaults_metadata(&self) -> bool {
        true
    }

    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let Some(o) = typed::<ReplicationController>(new).filter(|_| is_new_generation(new, old)) else {
            return Vec::new();
        };
        let mut found = pod_spec::warnings::of_owner(&o.metadata, old.is_none());
        if let Some(template) = &o.spec.template {
            let path = Path::new("spec").child("template");
            found.extend(pod_spec::warnings::of_template(template, &path));
        }
        found
    }

    fn orphans_by_default(&self) -> bool {
        true
    }
}

/// Defaults in code of replication controllers: selector and labels are the labels of the template.
pub fn defaults(object: &mut dyn Object) {
    let Some(o) = typed_mut::<ReplicationController>(object) else {
        return;
    };
    let Some(template) = &mut o.spec.template else { return };
    pod_spec::of_template(template);
    let labels = &template.metadata.labels;
    if o.spec.selector.is_empty() {
        o.spec.selector.clone_from(labels);
    }
    if o.metadata.labels.is_empty() {
        o.metadata.labels.clone_from(labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::testing::read_defaulted;

    #[test]
    fn selector_and_labels_are_those_of_the_template() {
        let mut o: ReplicationController = read_defaulted(r#"{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}"#);
        defaults(&mut o);
        assert_eq!((&*o.spec.selector["a"], &*o.metadata.labels["a"]), ("b", "b"));
        assert_eq!(o.spec.replicas, Some(1));
        let mut o: ReplicationController = read_defaulted(
            r#"{"metadata":{"labels":{"c":"d"}},"spec":{"selector":{"e":"f"},"template":{"metadata":{"labels":{"a":"b"}}}}}"#,
        );
        defaults(&mut o);
        assert_eq!(
            (o.spec.selector.contains_key("a"), o.metadata.labels.contains_key("a")),
            (false, false)
        );
    }
}
