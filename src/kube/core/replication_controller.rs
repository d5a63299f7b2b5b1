//! Replication controllers: what their template says holds for themselves.

use keelson_api::core::v1::{ReplicationController, ReplicationControllerSpec};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::pod_spec;
use crate::cells;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::is_new_generation;

/// Registers the rules of replication controllers.
pub fn register(code: &mut KindCode) {
    code.kind::<ReplicationController>()
        .strategy(ReplicationControllerStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::REPLICATION_CONTROLLER);
}

/// The rules of replication controllers.
struct ReplicationControllerStrategy;

impl Strategy for ReplicationControllerStrategy {
    type Object = ReplicationController;

    fn defaults_metadata(&self) -> bool {
        true
    }

    fn warnings(&self, new: &ReplicationController, old: Option<&ReplicationController>) -> Vec<String> {
        if !is_new_generation(new, old) {
            return Vec::new();
        }
        let mut found = pod_spec::warnings::of_owner(&new.metadata, old.is_none());
        if let Some(template) = &new.spec.template {
            let path = Path::new("spec").child("template");
            found.extend(pod_spec::warnings::of_template(template, &path));
        }
        found
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut ReplicationController) {
        if let Some(template) = &mut object.spec.template {
            pod_spec::disabled::drop_from_template(template, None);
        }
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut ReplicationController, old: &ReplicationController) {
        if let Some(template) = &mut new.spec.template {
            pod_spec::disabled::drop_from_template(template, old.spec.template.as_deref());
        }
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn validate(
        &self,
        _context: &Context,
        new: &ReplicationController,
        old: Option<&ReplicationController>,
    ) -> ErrorList {
        faults::of_spec(|f| check(f, &new.spec, old.map(|old| &old.spec)))
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &ReplicationController,
        _old: &ReplicationController,
    ) -> ErrorList {
        faults::of_status(|f| {
            let status = &new.status;
            f.counts(status, &["replicas", "fullyLabeledReplicas", "readyReplicas"]);
            f.counts(status, &["availableReplicas", "observedGeneration"]);
            let of_all = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
            pod_spec::replicas::parts(f, status, ("replicas", "status.replicas"), &of_all);
            pod_spec::replicas::parts(f, status, ("readyReplicas", "readyReplicas"), &["availableReplicas"]);
        })
    }
}

fn check(f: &mut Faults<'_>, spec: &ReplicationControllerSpec, old: Option<&ReplicationControllerSpec>) {
    f.counts(spec, &["minReadySeconds", "replicas"]);
    f.at("selector").required_if(spec.selector.is_empty(), "");
    let Some(template) = spec.template.as_deref() else {
        return f.at("template").required("");
    };
    let labels = &template.metadata.labels;
    let mut f = f.at("template");
    if !spec.selector.iter().all(|(key, value)| labels.get(key) == Some(value)) {
        pod_spec::replicas::not_selected(&mut f, template);
    }
    let old = old.and_then(|old| old.template.as_deref());
    pod_spec::check_template(&mut f, template, old);
    pod_spec::replicas::runs_for_ever(&mut f, template, "ReplicationController");
}

/// Defaults in code of replication controllers: selector and labels are the labels of the template.
fn defaults(o: &mut ReplicationController) {
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
    use crate::testing::read_defaulted;

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
