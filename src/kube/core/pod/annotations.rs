//! Annotations of a pod that say what it is: they come with it and stay.

use keelson_api::core::v1::Pod;
use keelson_machinery::field::{ErrorList, FieldError, Path};

use crate::core::pod_spec::MIRROR;
use crate::core::pod_spec::annotations::{PROFILE, check};
use crate::faults::{self, Faults};

/// Why a pod can't be changed through a subresource: the file of a mirror is what says how it is, and no pod of Windows
/// is resized.
pub fn unfit_for(subresource: &str, pod: &Pod) -> Option<FieldError> {
    let text = match subresource {
        "ephemeralcontainers" => "static pods do not support ephemeral containers",
        "resize" => "static pods cannot be resized",
        _ => return None,
    };
    let is_mirror = pod.metadata.annotations.contains_key(MIRROR);
    let is_of_windows = pod.spec.os.as_ref().is_some_and(|os| os.name == "windows");
    let text = match (is_mirror, subresource) {
        (true, _) => text,
        (false, "resize") if is_of_windows => "windows pods cannot be resized",
        (false, _) => return None,
    };
    Some(FieldError::forbidden(&Path::new("[]"), text))
}

/// Faults of a change, through whatever path.
pub fn validate_change(new: &Pod, old: &Pod) -> ErrorList {
    let (now, was) = (&new.metadata.annotations, &old.metadata.annotations);
    faults::at(&Path::new("metadata"), |f| {
        let mut annotations = f.at("annotations");
        for (key, _) in was.iter().filter(|(key, value)| now.get(*key) != Some(value)) {
            stays(&mut annotations.key(key), key, "may not remove or update");
        }
        for key in now.keys().filter(|key| !was.contains_key(*key)) {
            stays(&mut annotations.key(key), key, "may not add");
        }
        check(f, &new.metadata, &new.spec, Some(&old.metadata));
    })
}

fn stays(f: &mut Faults<'_>, key: &str, what: &str) {
    match key {
        MIRROR => f.forbidden(format!("{what} mirror pod annotation")),
        _ if key.starts_with(PROFILE) => f.forbidden(format!("{what} AppArmor annotations")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{annotated_pod as pod, lines};

    #[test]
    fn a_mirror_stays_one_and_nothing_becomes_one() {
        let (mirror, plain) = (pod(&[(MIRROR, "x")], "n"), pod(&[("a", "b")], "n"));
        let at = |text: &str| format!("metadata.annotations[{MIRROR}]: Forbidden: {text} mirror pod annotation");
        assert_eq!(lines(&validate_change(&mirror, &mirror)), "");
        assert_eq!(lines(&validate_change(&pod(&[("c", "d")], "n"), &plain)), "");
        assert_eq!(lines(&validate_change(&mirror, &plain)), at("may not add"));
        for new in [&plain, &pod(&[(MIRROR, "y")], "n")] {
            assert_eq!(lines(&validate_change(new, &mirror)), at("may not remove or update"));
        }
    }

    #[test]
    fn a_mirror_is_as_its_file_says() {
        let (mirror, plain) = (pod(&[(MIRROR, "x")], "n"), pod(&[], "n"));
        for subresource in ["ephemeralcontainers", "resize"] {
            assert!(unfit_for(subresource, &mirror).is_some() && unfit_for(subresource, &plain).is_none());
        }
        assert!(unfit_for("status", &mirror).is_none());
    }

    #[test]
    fn profiles_stay() {
        let key = format!("{PROFILE}c");
        let (with, without) = (pod(&[(&key, "unconfined")], ""), pod(&[], ""));
        let at = |text: &str| format!("metadata.annotations[{key}]: Forbidden: {text} AppArmor annotations");
        let added = lines(&validate_change(&with, &without));
        assert!(added.starts_with(&at("may not add")), "{added}");
        assert_eq!(lines(&validate_change(&without, &with)), at("may not remove or update"));
    }
}
