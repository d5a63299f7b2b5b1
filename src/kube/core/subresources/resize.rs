//! Rules of `pods/resize`: the resources of a pod and its containers may change as long as its class does not.

use std::collections::BTreeMap;

use keelson_api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::quantity::Quantity;

use super::only_spec;
use crate::core::pod_spec;
use crate::typed::same;

/// The resources that a running container can get more or less of.
const MUTABLE: [&str; 2] = ["cpu", "memory"];

/// Puts everything back but resources. Other containers than before stay for [`validate`] to refuse.
pub fn prepare(new: &mut Pod, old: &Pod) {
    if new.spec.containers.len() != old.spec.containers.len()
        || new.spec.init_containers.len() != old.spec.init_containers.len()
    {
        return;
    }
    let asked = std::mem::take(&mut new.spec);
    only_spec(new, old, |spec| {
        take(&mut spec.containers, asked.containers);
        take(&mut spec.init_containers, asked.init_containers);
        spec.resources = asked.resources;
    });
}

fn same_names(new: &[Container], old: &[Container]) -> bool {
    new.iter().zip(old).all(|(new, old)| new.name == old.name)
}

fn take(containers: &mut Vec<Container>, asked: Vec<Container>) {
    if !same_names(&asked, containers) {
        *containers = asked;
        return;
    }
    for (container, asked) in containers.iter_mut().zip(asked) {
        container.resources = asked.resources;
        container.resize_policy = asked.resize_policy;
    }
}

const ONLY: &str = "only cpu and memory resources are mutable";

/// Faults of a resized pod; `faulty`: of what every pod must be, some were found.
pub fn validate(new: &Pod, old: &Pod, faulty: bool) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::default();
    if pod_spec::class(&new.spec) != pod_spec::class(&old.spec) {
        let text = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, &new.status.qos_class, text));
    }
    if !is_supported(old) {
        let text = "Pod running on node without support for resize";
        errors.push(FieldError::forbidden(&path, text));
    }
    let is_sized = |pod: &Pod| pod.spec.resources.as_deref().is_some_and(has_amounts);
    let sized = is_sized(old) || is_sized(new);
    if sized {
        errors.extend(of_the_pod(&new.spec, &old.spec, &path));
    }
    if !old.status.node_allocatable_resource_claim_statuses.is_empty() {
        let text = "pods with node allocatable resource claims cannot be resized";
        errors.push(FieldError::forbidden(&path, text));
    }
    let others = others(&new.spec, &old.spec, &path);
    if !others.is_empty() {
        errors.extend(others);
        return errors;
    }
    errors.extend(of_containers(&new.spec, &old.spec, &path));
    // All else was put back.
    if !faulty && errors.is_empty() && !sized && !same(new.spec.resources.as_deref(), old.spec.resources.as_deref()) {
        errors.push(FieldError::forbidden(&path, ONLY));
    }
    errors
}

/// Whether the node tells what the running containers have: those of old do not resize.
fn is_supported(pod: &Pod) -> bool {
    let mut statuses = pod.status.container_statuses.iter();
    let running = statuses.find(|status| status.state.running.is_some());
    running.is_none_or(|status| status.resources.is_some())
}

fn has_amounts(resources: &ResourceRequirements) -> bool {
    !resources.requests.is_empty() || !resources.limits.is_empty()
}

/// What a pod as a whole has.
fn of_the_pod(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let at = path.child("resources");
    if let Some(old) = old.resources.as_deref() {
        let Some(new) = new.resources.as_deref() else {
            return FieldError::forbidden(&at, "pod-level resources cannot be removed").into();
        };
        errors.extend(removals(new, old, &at, "pod-level resource"));
    }
    let masked = new.resources.as_deref().cloned().map(|mut resources| {
        let none = ResourceRequirements::default();
        let old = old.resources.as_deref().unwrap_or(&none);
        amounts(&mut resources.requests, &old.requests);
        amounts(&mut resources.limits, &old.limits);
        resources
    });
    let is_new = old.resources.is_none();
    let masked = masked.filter(|r| !is_new || has_amounts(r) || !r.claims.is_empty());
    if !same(masked.as_ref(), old.resources.as_deref()) {
        let text = "only cpu and memory resources are mutable at pod-level";
        errors.push(FieldError::forbidden(path, text));
    }
    errors
}

fn of_containers(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let init = || new.init_containers.iter().zip(&old.init_containers).enumerate();
    let main = || new.containers.iter().zip(&old.containers).enumerate();
    let all = init().map(|pair| ("initContainers", pair));
    for (field, (place, (new, old))) in all.chain(main().map(|pair| ("containers", pair))) {
        let path = path.child(field).index(place).child("resources");
        errors.extend(removals(&new.resources, &old.resources, &path, "resource"));
    }
    for (_, (new, old)) in main() {
        if !equality::equal(&with_amounts_of(new, old), old) {
            errors.push(FieldError::forbidden(path, ONLY));
        }
    }
    for (place, (new, old)) in init() {
        errors.extend(of_init_container(new, old, &path.child("initContainers").index(place)));
    }
    errors
}

fn of_init_container(new: &Container, old: &Container, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    if !equality::equal(&with_amounts_of(new, old), old) {
        let text = "only cpu and memory resources for init or sidecar containers are mutable";
        errors.push(FieldError::forbidden(path, text));
    }
    let stays = new.restart_policy.as_deref() == Some("Always");
    if !stays && !equality::equal(new, old) {
        for _ in new
            .resize_policy
            .iter()
            .filter(|p| p.restart_policy == "RestartContainer")
        {
            let text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            errors.push(FieldError::forbidden(path, text));
        }
    }
    errors
}

fn others(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = other_containers("containers", &new.containers, &old.containers, path);
    let init = other_containers("initContainers", &new.init_containers, &old.init_containers, path);
    errors.extend(init);
    errors
}

fn other_containers(field: &'static str, new: &[Container], old: &[Container], path: &Path) -> ErrorList {
    let path = path.child(field);
    if new.len() != old.len() {
        let text = format!("{field} may not be added or removed on resize");
        return FieldError::forbidden(&path, text).into();
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

/// What was promised can't be taken back, only changed.
fn removals(new: &ResourceRequirements, old: &ResourceRequirements, path: &Path, what: &str) -> ErrorList {
    type Amounts = BTreeMap<String, Quantity>;
    let gone = |new: &Amounts, old: &Amounts| old.keys().any(|name| !new.contains_key(name));
    let mut errors = ErrorList::default();
    if gone(&new.requests, &old.requests) {
        let text = format!("{what} requests cannot be removed");
        errors.push(FieldError::forbidden(&path.child("requests"), text));
    }
    if gone(&new.limits, &old.limits) {
        let text = format!("{what} limits cannot be removed");
        errors.push(FieldError::forbidden(&path.child("limits"), text));
    }
    errors
}

/// A container with the amounts put back that may change, so that it must be equal to the old one. kube-apiserver
/// forgets what it claims there: one with claims is equal to none, and can't be resized.
fn with_amounts_of(new: &Container, old: &Container) -> Container {
    let mut container = new.clone();
    amounts(&mut container.resources.requests, &old.resources.requests);
    amounts(&mut container.resources.limits, &old.resources.limits);
    container.resources.claims.clear();
    container
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
            assert_eq!(lines(&validate(&new, &old, false)), expected, "{resources}");
            assert_eq!(
                (new.spec.node_name.as_str(), new.spec.containers[0].image.as_str()),
                ("", "x")
            );
        }
    }

    #[test]
    fn what_has_claims_stays_as_it_is() {
        let old = pod(r#"{"requests":{"cpu":"1"},"claims":[{"name":"x"}]}"#);
        let mut new = old.clone();
        prepare(&mut new, &old);
        let only = "spec: Forbidden: only cpu and memory resources are mutable";
        assert_eq!(lines(&validate(&new, &old, false)), only);
    }

    #[test]
    fn containers_stay_who_they_are() {
        let old = pod(r#"{"requests":{"cpu":"1"}}"#);
        let mut new = old.clone();
        new.spec.containers[0].name = "d".to_owned();
        prepare(&mut new, &old);
        assert_eq!(
            lines(&validate(&new, &old, false)),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
        );
        new.spec.containers.clear();
        assert_eq!(
            lines(&validate(&new, &old, false)),
            "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing\n\
             spec.containers: Forbidden: containers may not be added or removed on resize"
        );
    }
}
