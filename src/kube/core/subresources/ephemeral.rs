//! Rules of `pods/ephemeralcontainers`: containers may be added to a pod that is there, and then stay as they are.

use std::collections::{BTreeSet, HashMap, HashSet};

use keelson_api::core::v1::{EphemeralContainer, EphemeralContainerCommon, Pod, PodSpec};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::validation::names;

use super::only_spec;

/// Fields that such a container may not have: what they promise nobody keeps for it.
const FORBIDDEN: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Puts everything back but the list of these containers.
pub fn prepare(new: &mut Pod, old: &Pod) {
    let containers = std::mem::take(&mut new.spec.ephemeral_containers);
    only_spec(new, old, |spec| spec.ephemeral_containers = containers);
}

/// Faults of the list, and of changes of what is there.
pub fn validate(new: &Pod, old: &Pod) -> ErrorList {
    let path = Path::new("spec").child("ephemeralContainers");
    let mut errors = containers(&new.spec, &path);
    // Of containers of one name the first counts.
    let all = new.spec.ephemeral_containers.iter().rev();
    let by_name: HashMap<&str, &EphemeralContainer> = all.map(|c| (common(c).name.as_str(), c)).collect();
    for before in &old.spec.ephemeral_containers {
        let name = common(before).name.as_str();
        let what = match by_name.get(name) {
            None => "removed",
            Some(now) if !equality::equal(*now, before) => "changed",
            Some(_) => continue,
        };
        let text = format!("existing ephemeral containers {name:?} may not be {what}\n");
        errors.push(FieldError::forbidden(&path, text));
    }
    errors
}

fn common(container: &EphemeralContainer) -> &EphemeralContainerCommon {
    &container.ephemeral_container_common
}

fn containers(spec: &PodSpec, path: &Path) -> ErrorList {
    let proper = || {
        spec.containers
            .iter()
            .chain(&spec.init_containers)
            .map(|c| c.name.as_str())
    };
    let (mut seen, targets): (BTreeSet<&str>, HashSet<&str>) = (proper().collect(), proper().collect());
    let volumes: HashSet<&str> = spec.volumes.iter().map(|volume| volume.name.as_str()).collect();
    let mut errors = ErrorList::default();
    for (place, container) in spec.ephemeral_containers.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        errors.extend(name(&common(container).name, &mut seen, &path.child("name")));
        errors.extend(one(container, &volumes, &path));
        let target = container.target_container_name.as_str();
        if !target.is_empty() && !targets.contains(target) {
            errors.push(FieldError::not_found(&path.child("targetContainerName"), target));
        }
    }
    errors
}

fn name<'a>(name: &'a str, seen: &mut BTreeSet<&'a str>, path: &Path) -> ErrorList {
    if name.is_empty() {
        return FieldError::required(path, "").into();
    }
    let texts = names::dns_label(name);
    if texts.is_empty() && !seen.insert(name) {
        return FieldError::duplicate(path, name).into();
    }
    texts.into_iter().map(|t| FieldError::invalid(path, name, t)).collect()
}

fn one(container: &EphemeralContainer, volumes: &HashSet<&str>, path: &Path) -> ErrorList {
    let container = common(container);
    let mut errors = ErrorList::default();
    if container.image.is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    for (place, mount) in container.volume_mounts.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.child("volumeMounts").index(place);
        if !volumes.contains(mount.name.as_str()) {
            errors.push(FieldError::not_found(&path.child("name"), &mount.name));
        }
    }
    let empty = EphemeralContainerCommon::default();
    for (index, field) in container.desc().fields.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        if FORBIDDEN.contains(&field.json.as_str()) && !equality::equal_field(container, &empty, index) {
            let text = "cannot be set for an Ephemeral Container";
            errors.push(FieldError::forbidden(&path.child(field.json.to_string()), text));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read};

    const OLD: &str = r#"{"metadata":{"name":"p","labels":{"a":"b"},"generation":3},
        "spec":{"containers":[{"name":"c","image":"x"}],"ephemeralContainers":[{"name":"e","image":"x"}]}}"#;

    fn faults(containers: &str) -> String {
        let old: Pod = read(OLD);
        let mut new = old.clone();
        new.spec.ephemeral_containers =
            read::<PodSpec>(&format!(r#"{{"ephemeralContainers":{containers}}}"#)).ephemeral_containers;
        lines(&validate(&new, &old))
    }

    #[test]
    fn only_the_list_changes() {
        let old: Pod = read(OLD);
        let mut new: Pod = read(
            r#"{"metadata":{"name":"p","labels":{"a":"c"}},"spec":{"nodeName":"n","ephemeralContainers":[
            {"name":"e","image":"x"},{"name":"f","image":"y"}]},"status":{"phase":"Failed"}}"#,
        );
        prepare(&mut new, &old);
        assert_eq!(new.metadata.labels["a"], "b");
        assert_eq!((new.spec.node_name.as_str(), new.status.phase.as_str()), ("", ""));
        assert_eq!((new.spec.ephemeral_containers.len(), new.metadata.generation), (2, 4));
        let mut same = old.clone();
        prepare(&mut same, &old);
        assert_eq!(same.metadata.generation, 3);
    }

    #[test]
    fn faults_have_the_texts_of_the_api() {
        for (containers, expected) in [
            (r#"[{"name":"e","image":"x"},{"name":"f","image":"y"}]"#, ""),
            (
                r#"[{"name":"e","image":"z"}]"#,
                "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be changed\n",
            ),
            (
                r#"[{"name":"c"}]"#,
                "spec.ephemeralContainers[0].name: Duplicate value: \"c\"\n\
                 spec.ephemeralContainers[0].image: Required value\n\
                 spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n",
            ),
            (
                r#"[{"name":"e","image":"x"},{"name":"g","image":"y","targetContainerName":"h","lifecycle":{},
                    "ports":[{"containerPort":1}],"volumeMounts":[{"name":"v","mountPath":"/"}]}]"#,
                "spec.ephemeralContainers[1].volumeMounts[0].name: Not found: \"v\"\n\
                 spec.ephemeralContainers[1].ports: Forbidden: cannot be set for an Ephemeral Container\n\
                 spec.ephemeralContainers[1].lifecycle: Forbidden: cannot be set for an Ephemeral Container\n\
                 spec.ephemeralContainers[1].targetContainerName: Not found: \"h\"",
            ),
        ] {
            assert_eq!(faults(containers), expected, "{containers}");
        }
    }
}
