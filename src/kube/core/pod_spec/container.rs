//! Validation of one container.

use std::collections::BTreeSet;

use keelson_api::core::v1::{Container, ContainerPort, EnvVar, ResourceRequirements, VolumeMount};
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::super::port;

/// What of the pod a container is checked against.
pub struct Surroundings<'a> {
    /// Names of the pod's volumes.
    pub volumes: BTreeSet<&'a str>,
    pub host_network: bool,
}

/// Faults of a container but for its name.
pub fn validate(container: &Container, around: &Surroundings<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    errors.extend(image_fault(&container.image, path));
    errors.extend(ports(&container.ports, around.host_network, &path.child("ports")));
    errors.extend(env(&container.env, &path.child("env")));
    errors.extend(mounts(&container.volume_mounts, around, &path.child("volumeMounts")));
    errors.extend(resources(&container.resources, &path.child("resources")));
    errors
}

/// The fault of the image of the container at a path.
pub fn image_fault(image: &str, path: &Path) -> Option<FieldError> {
    let path = path.child("image");
    if image.is_empty() {
        return Some(FieldError::required(&path, ""));
    }
    let text = "must not have leading or trailing whitespace";
    (image.trim() != image).then(|| FieldError::invalid(&path, image, text))
}

fn ports(ports: &[ContainerPort], host_network: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut names = BTreeSet::new();
    for (place, entry) in ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        if !entry.name.is_empty() {
            let texts = port::name_faults(&entry.name);
            if texts.is_empty() && !names.insert(&entry.name) {
                errors.push(FieldError::duplicate(&path.child("name"), &entry.name));
            }
            errors.extend(
                texts
                    .into_iter()
                    .map(|t| FieldError::invalid(&path.child("name"), &entry.name, t)),
            );
        }
        match entry.container_port {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => errors.extend(port::validate_number(number, &path.child("containerPort"))),
        }
        if entry.host_port != 0 {
            errors.extend(port::validate_number(entry.host_port, &path.child("hostPort")));
        }
        // A template may leave it open; a pod never does, since it has its default by then.
        if host_network && entry.host_port != 0 && entry.host_port != entry.container_port {
            let text = "must match `hostPort` when `hostNetwork` is true";
            errors.push(FieldError::invalid(
                &path.child("containerPort"),
                entry.container_port,
                text,
            ));
        }
    }
    errors
}

fn env(variables: &[EnvVar], path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    for (place, variable) in variables.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        let name = &variable.name;
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
            let text =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(FieldError::invalid(&path.child("name"), name, text));
        }
        let Some(source) = &variable.value_from else { continue };
        let given = [
            source.field_ref.is_some(),
            source.resource_field_ref.is_some(),
            source.config_map_key_ref.is_some(),
            source.secret_key_ref.is_some(),
            source.file_key_ref.is_some(),
        ];
        let path = path.child("valueFrom");
        if !variable.value.is_empty() {
            errors.push(FieldError::invalid(
                &path,
                "",
                "may not be specified when `value` is not empty",
            ));
        } else if given.iter().filter(|g| **g).count() > 1 {
            errors.push(FieldError::invalid(
                &path,
                "",
                "may not have more than one field specified at a time",
            ));
        }
    }
    errors
}

fn mounts(mounts: &[VolumeMount], around: &Surroundings<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut places = BTreeSet::new();
    for (place, mount) in mounts.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        if mount.name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !around.volumes.contains(mount.name.as_str()) {
            errors.push(FieldError::not_found(&path.child("name"), &mount.name));
        }
        if mount.mount_path.is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        } else if !places.insert(&mount.mount_path) {
            errors.push(FieldError::invalid(
                &path.child("mountPath"),
                &mount.mount_path,
                "must be unique",
            ));
        }
    }
    errors
}

fn resources(resources: &ResourceRequirements, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let at_least_zero = "must be greater than or equal to 0";
    for (name, limit) in resources.limits.iter().filter(|(_, q)| q.is_negative()) {
        errors.push(FieldError::invalid(
            &path.child("limits").key(name),
            limit.as_str(),
            at_least_zero,
        ));
    }
    for (name, request) in &resources.requests {
        if request.is_negative() {
            errors.push(FieldError::invalid(
                &path.child("requests").key(name),
                request.as_str(),
                at_least_zero,
            ));
        }
        if let Some(limit) = resources.limits.get(name).filter(|limit| request > *limit) {
            let text = format!("must be less than or equal to {name} limit of {}", limit.as_str());
            errors.push(FieldError::invalid(&path.child("requests"), request.as_str(), text));
        }
    }
    errors
}
