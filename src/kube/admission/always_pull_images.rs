//! AlwaysPullImages: images are pulled each time, so that nobody runs one that only others may pull.

use std::collections::HashSet;

use keelson_access::authz::aggregate;
use keelson_api::core::v1::{Pod, PodSpec};
use keelson_machinery::field::{FieldError, Path};
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

const ALWAYS: &str = "Always";

pub struct AlwaysPullImages;

impl Plugin for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::BOTH.when(writes && scope.is("", "pods"))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if !is_without_new_images(attributes)
            && let Some(pod) = attributes.typed_mut::<Pod>()
        {
            pull(&mut pod.spec);
        }
        now(Ok(()))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let pod = attributes.typed::<Pod>().filter(|_| !is_without_new_images(attributes));
        now(pod.map_or(Ok(()), |pod| check(attributes, &pod.spec)))
    }
}

fn images(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let of_containers = spec
        .init_containers
        .iter()
        .chain(&spec.containers)
        .map(|c| c.image.as_str());
    let added = spec.ephemeral_containers.iter();
    of_containers.chain(added.map(|c| c.ephemeral_container_common.image.as_str()))
}

fn is_without_new_images(attributes: &Attributes<'_>) -> bool {
    let (new, old) = (attributes.typed::<Pod>(), attributes.old_typed::<Pod>());
    let (Operation::Update, Some(new), Some(old)) = (attributes.operation, new, old) else {
        return false;
    };
    let had: HashSet<&str> = images(&old.spec).collect();
    images(&new.spec).all(|image| had.contains(image))
}

fn pull(spec: &mut PodSpec) {
    let of_containers = spec.init_containers.iter_mut().chain(&mut spec.containers);
    let of_containers = of_containers.map(|c| &mut c.image_pull_policy);
    let added = spec.ephemeral_containers.iter_mut();
    let added = added.map(|c| &mut c.ephemeral_container_common.image_pull_policy);
    let volumes = spec
        .volumes
        .iter_mut()
        .filter_map(|v| v.volume_source.image.as_deref_mut());
    let volumes = volumes.map(|image| &mut image.pull_policy);
    for policy in of_containers.chain(added).chain(volumes) {
        ALWAYS.clone_into(policy);
    }
}

fn check(attributes: &Attributes<'_>, spec: &PodSpec) -> Result<(), StatusError> {
    let refusals = faults(spec)
        .into_iter()
        .map(|fault| attributes.forbidden(fault).message);
    let texts: Vec<String> = refusals.collect();
    match texts.is_empty() {
        true => Ok(()),
        // Several refusals in one are none of the errors that have a code.
        false => Err(StatusError::unknown(aggregate(&texts))),
    }
}

/// In the order of kube-apiserver.
fn faults(spec: &PodSpec) -> Vec<FieldError> {
    let path = Path::new("spec");
    let mut policies = Vec::new();
    for (field, containers) in [
        ("initContainers", &spec.init_containers),
        ("containers", &spec.containers),
    ] {
        for (place, container) in containers.iter().enumerate() {
            let path = path.child(field).index(place).child("imagePullPolicy");
            policies.push((path, &container.image_pull_policy));
        }
    }
    for (place, container) in spec.ephemeral_containers.iter().enumerate() {
        let path = path.child("ephemeralContainers").index(place).child("imagePullPolicy");
        policies.push((path, &container.ephemeral_container_common.image_pull_policy));
    }
    for (place, volume) in spec.volumes.iter().enumerate() {
        if let Some(image) = &volume.volume_source.image {
            let path = path.child("volumes").index(place).child("image").child("pullPolicy");
            policies.push((path, &image.pull_policy));
        }
    }
    let others = policies.into_iter().filter(|(_, policy)| *policy != ALWAYS);
    others
        .map(|(path, policy)| FieldError::not_supported(&path, policy.as_str(), &[ALWAYS]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn every_image_is_pulled() {
        let mut spec: PodSpec = read(
            r#"{"initContainers":[{"name":"i","imagePullPolicy":"Never"}],
                "containers":[{"name":"c","imagePullPolicy":"IfNotPresent"}],
                "ephemeralContainers":[{"name":"e"}],
                "volumes":[{"name":"v","image":{"reference":"x","pullPolicy":"Never"}},{"name":"w","emptyDir":{}}]}"#,
        );
        let fields: Vec<String> = faults(&spec).into_iter().map(|fault| fault.field).collect();
        assert_eq!(
            fields,
            [
                "spec.initContainers[0].imagePullPolicy",
                "spec.containers[0].imagePullPolicy",
                "spec.ephemeralContainers[0].imagePullPolicy",
                "spec.volumes[0].image.pullPolicy"
            ]
        );
        pull(&mut spec);
        assert!(faults(&spec).is_empty());
    }
}
