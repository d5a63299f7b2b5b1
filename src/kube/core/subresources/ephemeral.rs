//! Rules of `pods/ephemeralcontainers`: containers may be added to a pod that is there, and then stay as they are.

use std::collections::HashMap;

use keelson_api::core::v1::{EphemeralContainer, Pod};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::only_spec;

/// Puts everything back but the list of these containers.
pub fn prepare(new: &mut Pod, old: &Pod) {
    let containers = std::mem::take(&mut new.spec.ephemeral_containers);
    only_spec(new, old, |spec| spec.ephemeral_containers = containers);
}

/// Faults of changes of what is there.
pub fn validate(new: &Pod, old: &Pod) -> ErrorList {
    let path = Path::new("spec").child("ephemeralContainers");
    let mut errors = ErrorList::default();
    // Of containers of one name the last counts.
    let all = new.spec.ephemeral_containers.iter();
    let by_name: HashMap<&str, &EphemeralContainer> = all.map(|c| (name(c), c)).collect();
    for before in &old.spec.ephemeral_containers {
        let name = name(before);
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

fn name(container: &EphemeralContainer) -> &str {
    &container.ephemeral_container_common.name
}

#[cfg(test)]
mod tests {
    use keelson_api::core::v1::PodSpec;

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
                r#"[{"name":"f","image":"y"}]"#,
                "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n",
            ),
        ] {
            assert_eq!(faults(containers), expected, "{containers}");
        }
    }
}
