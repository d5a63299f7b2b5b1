//! Validation of a pod's specification.

use std::collections::BTreeSet;

use keelson_api::core::v1::{Container, PodSpec, PodTemplateSpec, Toleration, Volume};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::validation::{labels, names};

use super::container::{self, Surroundings};

/// Faults of a template's metadata and specification.
pub fn template(template: &PodTemplateSpec, path: &Path) -> ErrorList {
    let meta = path.child("metadata");
    let mut errors = labels::validate_labels(&template.metadata.labels, &meta.child("labels"));
    errors.extend(labels::validate_annotations(
        &template.metadata.annotations,
        &meta.child("annotations"),
    ));
    errors.extend(validate(&template.spec, &path.child("spec")));
    if !template.spec.ephemeral_containers.is_empty() {
        let text = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(
            &path.child("spec").child("ephemeralContainers"),
            text,
        ));
    }
    errors
}

/// Faults of a specification.
pub fn validate(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = volumes(&spec.volumes, &path.child("volumes"));
    errors.extend(containers(spec, path));
    errors.extend(labels::validate_labels(
        &spec.node_selector,
        &path.child("nodeSelector"),
    ));
    errors.extend(referred_names(spec, path));
    if let Some(seconds) = spec
        .active_deadline_seconds
        .filter(|s| !(1..=i64::from(i32::MAX)).contains(s))
    {
        let text = format!("must be between 1 and {}, inclusive", i32::MAX);
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, text));
    }
    for (place, gate) in spec.readiness_gates.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.child("readinessGates").index(place).child("conditionType");
        let texts = labels::qualified_name(&gate.condition_type);
        errors.extend(
            texts
                .into_iter()
                .map(|t| FieldError::invalid(&path, &gate.condition_type, t)),
        );
    }
    errors.extend(scheduling_gates(spec, path));
    errors.extend(tolerations(&spec.tolerations, &path.child("tolerations")));
    errors
}

fn volumes(volumes: &[Volume], path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut seen = BTreeSet::new();
    for (place, volume) in volumes.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        errors.extend(sources(volume, &path));
        errors.extend(unique_name(&volume.name, &mut seen, &path.child("name")));
    }
    errors
}

/// A volume is of one kind.
fn sources(volume: &Volume, path: &Path) -> ErrorList {
    let source = &volume.volume_source;
    let fields = source.desc().fields.iter().enumerate();
    let mut given = fields
        .filter(|(index, _)| !matches!(source.get(*index), Value::Absent))
        .map(|(_, field)| field);
    if given.next().is_none() {
        return FieldError::required(path, "must specify a volume type").into();
    }
    given
        .map(|f| {
            FieldError::forbidden(
                &path.child(f.json.to_string()),
                "may not specify more than 1 volume type",
            )
        })
        .collect()
}

fn containers(spec: &PodSpec, path: &Path) -> ErrorList {
    let volumes = spec.volumes.iter().map(|v| v.name.as_str()).collect();
    let around = Surroundings {
        volumes,
        host_network: spec.host_network,
    };
    let mut errors = ErrorList::default();
    if spec.containers.is_empty() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    let mut seen = BTreeSet::new();
    let mut check = |list: &[Container], path: Path| {
        for (place, entry) in list.iter().enumerate() {
            if errors.is_full() {
                break;
            }
            let path = path.index(place);
            errors.extend(unique_name(&entry.name, &mut seen, &path.child("name")));
            errors.extend(container::validate(entry, &around, &path));
        }
    };
    check(&spec.containers, path.child("containers"));
    check(&spec.init_containers, path.child("initContainers"));
    errors
}

/// A name that is a DNS label and stands there once.
fn unique_name(name: &str, seen: &mut BTreeSet<String>, path: &Path) -> ErrorList {
    if name.is_empty() {
        return FieldError::required(path, "").into();
    }
    let texts = names::dns_label(name);
    if texts.is_empty() && !seen.insert(name.to_owned()) {
        return FieldError::duplicate(path, name).into();
    }
    texts.into_iter().map(|t| FieldError::invalid(path, name, t)).collect()
}

/// Names of other objects and of the pod in DNS.
fn referred_names(spec: &PodSpec, path: &Path) -> ErrorList {
    type Rule = fn(&str) -> Vec<String>;
    let rules: [(&'static str, &str, Rule); 5] = [
        ("serviceAccountName", &spec.service_account_name, names::dns_subdomain),
        ("nodeName", &spec.node_name, names::dns_subdomain),
        (
            "runtimeClassName",
            spec.runtime_class_name.as_deref().unwrap_or_default(),
            names::dns_subdomain,
        ),
        ("hostname", &spec.hostname, names::dns_label),
        ("subdomain", &spec.subdomain, names::dns_label),
    ];
    let mut errors = ErrorList::default();
    for (field, name, rule) in rules.into_iter().filter(|(_, name, _)| !name.is_empty()) {
        errors.extend(
            rule(name)
                .into_iter()
                .map(|t| FieldError::invalid(&path.child(field), name, t)),
        );
    }
    errors
}

fn scheduling_gates(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut seen = BTreeSet::new();
    for (place, gate) in spec.scheduling_gates.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.child("schedulingGates").index(place);
        let texts = labels::qualified_name(&gate.name);
        errors.extend(texts.into_iter().map(|t| FieldError::invalid(&path, &gate.name, t)));
        if !seen.insert(&gate.name) {
            errors.push(FieldError::duplicate(&path, &gate.name));
        }
    }
    if !spec.scheduling_gates.is_empty() && !spec.node_name.is_empty() {
        let text = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), text));
    }
    errors
}

/// Faults of tolerations that do not lie in one field alone.
fn tolerations(tolerations: &[Toleration], path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    for (place, toleration) in tolerations.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        let (key, operator, value) = (&toleration.key, toleration.operator.as_str(), &toleration.value);
        if key.is_empty() && operator != "Exists" {
            let text = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&path.child("operator"), operator, text));
        } else if !key.is_empty() {
            let texts = labels::qualified_name(key);
            errors.extend(
                texts
                    .into_iter()
                    .map(|t| FieldError::invalid(&path.child("key"), key, t)),
            );
        }
        if toleration.toleration_seconds.is_some() && toleration.effect != "NoExecute" {
            let text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.child("effect"), &toleration.effect, text));
        }
        match operator {
            "" | "Equal" => {
                let text = labels::label_value(value).join(";");
                if !text.is_empty() {
                    errors.push(FieldError::invalid(&path.child("operator"), value, text));
                }
            }
            "Exists" if !value.is_empty() => {
                let text = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&path.child("operator"), value, text));
            }
            _ => {}
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read};

    fn faults(spec: &str) -> String {
        lines(&validate(&read(spec), &Path::new("spec")))
    }

    #[test]
    fn faults_have_the_texts_of_the_api() {
        let fine = r#""containers":[{"name":"c","image":"x"}]"#;
        let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
            start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
            '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let name_fault = format!("spec.containers[0].name: Invalid value: \"C_\": {label}");
        for (spec, expected) in [
            (format!("{{{fine}}}"), ""),
            ("{}".to_owned(), "spec.containers: Required value"),
            (
                r#"{"containers":[{}]}"#.to_owned(),
                "spec.containers[0].name: Required value\nspec.containers[0].image: Required value",
            ),
            (r#"{"containers":[{"name":"C_","image":"x"}]}"#.to_owned(), name_fault.as_str()),
            (
                r#"{"containers":[{"name":"a","image":"x"}],"initContainers":[{"name":"a","image":" x"}]}"#.to_owned(),
                "spec.initContainers[0].name: Duplicate value: \"a\"\nspec.initContainers[0].image: Invalid value: \
                 \" x\": must not have leading or trailing whitespace",
            ),
            (
                r#"{"containers":[{"name":"a","image":"x","volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"w"}]}],
                    "volumes":[{"name":"v","emptyDir":{},"hostPath":{"path":"/"}}]}"#
                    .to_owned(),
                "spec.volumes[0].emptyDir: Forbidden: may not specify more than 1 volume type\n\
                 spec.containers[0].volumeMounts[1].name: Not found: \"w\"\n\
                 spec.containers[0].volumeMounts[1].mountPath: Required value",
            ),
            (
                r#"{"containers":[{"name":"a","image":"x","ports":[{"containerPort":0,"name":"P"},{"containerPort":70000}]}]}"#
                    .to_owned(),
                "spec.containers[0].ports[0].name: Invalid value: \"P\": must contain only alpha-numeric characters \
                 (a-z, 0-9), and hyphens (-)\n\
                 spec.containers[0].ports[0].name: Invalid value: \"P\": must contain at least one letter (a-z)\n\
                 spec.containers[0].ports[0].containerPort: Required value\n\
                 spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
            (
                r#"{"containers":[{"name":"a","image":"x","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}}]}"#
                    .to_owned(),
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ),
            (
                format!(r#"{{{fine},"activeDeadlineSeconds":0,"schedulingGates":[{{"name":"g"}}],"nodeName":"n"}}"#),
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive\n\
                 spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            ),
            (
                format!(r#"{{{fine},"tolerations":[{{"effect":"NoSchedule","tolerationSeconds":1}}]}}"#),
                "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which \
                 means \"match all values and all keys\"\n\
                 spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when \
                 `tolerationSeconds` is set",
            ),
        ] {
            assert_eq!(faults(&spec), expected, "{spec}");
        }
    }
}
