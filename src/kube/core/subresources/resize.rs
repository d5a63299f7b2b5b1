//! Rules of `pods/resize`: the resources of a pod and its containers may change as long as its class does not.

use std::collections::BTreeMap;

use keelson_api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::quantity::Quantity;

use super::only_spec;
use crate::core::pod_spec;

/// The resources that a running container can get more or less of.
const MUTABLE: [&str; 2] = ["cpu", "memory"];

/// Puts everything back but resources. Other containers than before stay for [`validate`] to refuse.
pub fn prepare(new: &mut Pod, old: &Pod) {
    if !same_names(&new.spec.containers, &old.spec.containers)
        || !same_names(&new.spec.init_containers, &old.spec.init_containers)
    {
        return;
    }
    let asked = std::mem::take(&mut new.spec);
    only_spec(new, old, |spec| {
        take(&mut spec.containers, &asked.containers);
        take(&mut spec.init_containers, &asked.init_containers);
        spec.resources = asked.resources;
    });
}

fn same_names(new: &[Container], old: &[Container]) -> bool {
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| new.name == old.name)
}

fn take(containers: &mut [Container], asked: &[Container]) {
    for (container, asked) in containers.iter_mut().zip(asked) {
        container.resources.clone_from(&asked.resources);
        container.resize_policy.clone_from(&asked.resize_policy);
    }
}

/// Faults of a resized pod.
pub fn validate(new: &Pod, old: &Pod) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::default();
    if pod_spec::class(&new.spec) != pod_spec::class(&old.spec) {
        let text = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, &new.status.qos_class, text));
    }
    let lists = [
        ("containers", &new.spec.containers, &old.spec.containers),
        ("initContainers", &new.spec.init_containers, &old.spec.init_containers),
    ];
    let mut others = false;
    for (field, new, old) in lists {
        let faults = other_containers(field, new, old, &path.child(field));
        others |= !faults.is_empty();
        errors.extend(faults);
    }
    if others {
        return errors;
    }
    let mut removed = ErrorList::default();
    for (field, new, old) in lists {
        for (place, (new, old)) in new.iter().zip(old).enumerate() {
            let path = path.child(field).index(place).child("resources");
            removed.extend(removals(&new.resources, &old.resources, &path));
        }
    }
    let any_removed = !removed.is_empty();
    errors.extend(removed);
    if !any_removed && !equality::equal(&with_amounts_of(&new.spec, &old.spec), &old.spec) {
        errors.push(FieldError::forbidden(
            &path,
            "only cpu and memory resources are mutable",
        ));
    }
    errors
}

fn other_containers(field: &str, new: &[Container], old: &[Container], path: &Path) -> ErrorList {
    if new.len() != old.len() {
        let text = format!("{field} may not be added or removed on resize");
        return FieldError::forbidden(path, text).into();
    }
    let pairs = new.iter().zip(old).enumerate();
    pairs
        .filter(|(_, (new, old))| new.name != old.name)
        .map(|(place, _)| {
            let text = format!("{field} may not be renamed or reordered on resize");
            FieldError::forbidden(&path.index(place).child("name"), text)
        })
        .collect()
}

/// What a container was promised can't be taken back, only changed.
fn removals(new: &ResourceRequirements, old: &ResourceRequirements, path: &Path) -> ErrorList {
    type Amounts = BTreeMap<String, Quantity>;
    let gone = |new: &Amounts, old: &Amounts| MUTABLE.iter().any(|r| old.contains_key(*r) && !new.contains_key(*r));
    let mut errors = ErrorList::default();
    if gone(&new.requests, &old.requests) {
        let text = "resource requests cannot be removed";
        errors.push(FieldError::forbidden(&path.child("requests"), text));
    }
    if gone(&new.limits, &old.limits) {
        let text = "resource limits cannot be removed";
        errors.push(FieldError::forbidden(&path.child("limits"), text));
    }
    errors
}

/// The new specification with the amounts put back that may change, so that it must be equal to the old one.
fn with_amounts_of(new: &PodSpec, old: &PodSpec) -> PodSpec {
    let mut spec = new.clone();
    let put_back = |new: &mut [Container], old: &[Container]| {
        for (new, old) in new.iter_mut().zip(old) {
            amounts(&mut new.resources.requests, &old.resources.requests);
            amounts(&mut new.resources.limits, &old.resources.limits);
        }
    };
    put_back(&mut spec.containers, &old.containers);
    put_back(&mut spec.init_containers, &old.init_containers);
    if let Some(resources) = &mut spec.resources {
        let empty = ResourceRequirements::default();
        let old = old.resources.as_deref().unwrap_or(&empty);
        amounts(&mut resources.requests, &old.requests);
        amounts(&mut resources.limits, &old.limits);
    }
    if old.resources.is_none() && spec.resources.as_deref().is_some_and(|r| equality::is_zero(r)) {
        spec.resources = None;
    }
    spec
}

fn amounts(new: &mut BTreeMap<String, Quantity>, old: &BTreeMap<String, Quantity>) {
    for name in MUTABLE {
        match old.get(name) {
            Some(amount) => new.insert(name.to_owned(), amount.clone()),
            None => new.remove(name),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read};

    fn pod(resources: &str) -> Pod {
        read(&format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"x","resources":{resources}}}]}},
                "status":{{"qosClass":"Burstable"}}}}"#
        ))
    }

    #[test]
    fn amounts_change_and_nothing_else() {
        let old = pod(r#"{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2"}}"#);
        let only = "spec: Forbidden: only cpu and memory resources are mutable";
        for (resources, expected) in [
            (
                r#"{"requests":{"cpu":"2","memory":"2Gi"},"limits":{"cpu":"3","memory":"3Gi"}}"#,
                "",
            ),
            (
                r#"{"requests":{"cpu":"1"},"limits":{}}"#,
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed\n\
                 spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
            ),
            (
                r#"{"requests":{"cpu":"1","memory":"1Gi","x.y/z":"1"},"limits":{"cpu":"2","x.y/z":"1"}}"#,
                only,
            ),
            (
                r#"{"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}}"#,
                "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing",
            ),
        ] {
            let mut new = pod(resources);
            new.spec.node_name = "n".to_owned();
            new.spec.containers[0].image = "y".to_owned();
            prepare(&mut new, &old);
            assert_eq!(lines(&validate(&new, &old)), expected, "{resources}");
            assert_eq!(
                (new.spec.node_name.as_str(), new.spec.containers[0].image.as_str()),
                ("", "x")
            );
        }
    }

    #[test]
    fn containers_stay_who_they_are() {
        let old = pod(r#"{"requests":{"cpu":"1"}}"#);
        let mut new = old.clone();
        new.spec.containers[0].name = "d".to_owned();
        prepare(&mut new, &old);
        assert_eq!(
            lines(&validate(&new, &old)),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
        );
        new.spec.containers.clear();
        assert_eq!(
            lines(&validate(&new, &old)),
            "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing\n\
             spec.containers: Forbidden: containers may not be added or removed on resize"
        );
    }
}
