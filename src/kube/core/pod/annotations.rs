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
