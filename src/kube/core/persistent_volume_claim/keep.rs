//! Immutable fields of claims: all of the specification but the volume that it is bound to once, and what a bound one
//! may ask for.

use keelson_api::core::v1::PersistentVolumeClaim;
use keelson_machinery::equality;
use keelson_machinery::quantity::Quantity;

use super::CLASS_ANNOTATION;
use crate::faults::Faults;
use crate::typed::IMMUTABLE;

const CHANGED: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
    bound claims";
const BOUND: &str = "Bound";
const STORAGE: &str = "storage";

/// Checks a change.
pub fn check(f: &mut Faults<'_>, new: &PersistentVolumeClaim, old: &PersistentVolumeClaim) {
    let is_moved = moves_class(new, old);
    let class = |claim: &PersistentVolumeClaim| claim.metadata.annotations.get(CLASS_ANNOTATION).cloned();
    let (now, was) = (class(new).unwrap_or_default(), class(old).unwrap_or_default());
    f.at("metadata")
        .at("annotations")
        .at(CLASS_ANNOTATION)
        .invalid_if(!is_moved && now != was, now, IMMUTABLE);
    f.at("spec").forbidden_if(!keeps_spec(new, old, is_moved), CHANGED);
    smaller(&mut f.at("spec"), new, old);
    let mode = new.spec.volume_mode.as_deref();
    f.at("volumeMode")
        .invalid_if(mode != old.spec.volume_mode.as_deref(), mode, IMMUTABLE);
    class_taken_back(&mut f.at("spec").at("volumeAttributesClassName"), new, old);
}

/// Whether the name of the class moves from the annotation, where it was once, to its field.
fn moves_class(new: &PersistentVolumeClaim, old: &PersistentVolumeClaim) -> bool {
    let annotated = |claim: &PersistentVolumeClaim| claim.metadata.annotations.get(CLASS_ANNOTATION).cloned();
    let was = annotated(old);
    was.is_some()
        && old.spec.storage_class_name.is_none()
        && new.spec.storage_class_name == was
        && annotated(new).is_none_or(|now| Some(now) == was)
}

fn keeps_spec(new: &PersistentVolumeClaim, old: &PersistentVolumeClaim, is_moved: bool) -> bool {
    let mut now = new.spec.clone();
    if old.spec.volume_name.is_empty() {
        now.volume_name.clear();
    }
    let annotated = old.metadata.annotations.get(CLASS_ANNOTATION);
    let is_given = old.spec.storage_class_name.is_none()
        && annotated.is_none_or(|class| now.storage_class_name.as_ref() == Some(class));
    if is_moved || is_given {
        now.storage_class_name.clone_from(&old.spec.storage_class_name);
    }
    if new.status.phase == BOUND {
        if !now.resources.requests.is_empty() {
            let was = old.spec.resources.requests.get(STORAGE).cloned();
            now.resources
                .requests
                .insert(STORAGE.to_owned(), was.unwrap_or_default());
        }
        now.volume_attributes_class_name
            .clone_from(&old.spec.volume_attributes_class_name);
    }
    equality::equal(&now, &old.spec)
}

/// A claim may ask for less only as long as the volume has not grown to that.
fn smaller(f: &mut Faults<'_>, new: &PersistentVolumeClaim, old: &PersistentVolumeClaim) {
    let zero = Quantity::default();
    let asked = |claim: &PersistentVolumeClaim| claim.spec.resources.requests.get(STORAGE).cloned();
    let (now, was) = (asked(new).unwrap_or_default(), asked(old).unwrap_or_default());
    let capacity = old.status.capacity.get(STORAGE).unwrap_or(&zero);
    f.at("resources").at("requests").at(STORAGE).forbidden_if(
        now < was && now <= *capacity,
        "field can not be less than status.capacity",
    );
}

/// A class that was applied can't be taken back, only changed for another.
fn class_taken_back(f: &mut Faults<'_>, new: &PersistentVolumeClaim, old: &PersistentVolumeClaim) {
    let class = &new.spec.volume_attributes_class_name;
    if *class == old.spec.volume_attributes_class_name || old.status.current_volume_attributes_class_name.is_none() {
        return;
    }
    let what = match class.as_deref() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    f.forbidden(format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    fn changed(old: &str, new: &str) -> String {
        lines(&of_object(|f| check(f, &read(new), &read(old))))
    }

    #[test]
    fn a_volume_is_named_once() {
        let named = |name: &str| format!(r#"{{"spec":{{"volumeName":"{name}"}}}}"#);
        let refused = format!("spec: Forbidden: {CHANGED}");
        assert_eq!(changed("{}", &named("a")), "");
        assert_eq!(changed(&named("a"), &named("b")), refused);
        assert_eq!(changed(&named("a"), "{}"), refused);
        assert_eq!(changed("{}", r#"{"spec":{"accessModes":["ReadWriteMany"]}}"#), refused);
    }

    #[test]
    fn a_bound_claim_may_ask_for_more() {
        let claim = |phase: &str, asked: &str| {
            format!(
                r#"{{"spec":{{"resources":{{"requests":{{"storage":"{asked}"}}}}}},
                "status":{{"phase":"{phase}","capacity":{{"storage":"1Gi"}}}}}}"#
            )
        };
        let (refused, less) = (
            format!("spec: Forbidden: {CHANGED}"),
            "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
        );
        assert_eq!(changed(&claim("Bound", "1Gi"), &claim("Bound", "2Gi")), "");
        assert_eq!(changed(&claim("Bound", "3Gi"), &claim("Bound", "2Gi")), "");
        assert_eq!(changed(&claim("Bound", "3Gi"), &claim("Bound", "1Gi")), less);
        assert_eq!(changed(&claim("Pending", "1Gi"), &claim("Pending", "2Gi")), refused);
    }

    #[test]
    fn a_class_is_given_once() {
        let claim = |annotation: Option<&str>, class: Option<&str>| {
            let mut claim = PersistentVolumeClaim::default();
            let annotations = annotation.map(|a| (CLASS_ANNOTATION.to_owned(), a.to_owned()));
            claim.metadata.annotations.extend(annotations);
            claim.spec.storage_class_name = class.map(str::to_owned);
            claim
        };
        for (old, new, is_fine) in [
            (claim(None, None), claim(None, Some("a")), true),
            (claim(Some("a"), None), claim(None, Some("a")), true),
            (claim(Some("a"), None), claim(Some("a"), Some("a")), true),
            (claim(Some("a"), None), claim(Some("b"), None), false),
            (claim(Some("a"), None), claim(Some("a"), Some("b")), false),
            (claim(None, Some("a")), claim(None, Some("b")), false),
            (claim(None, Some("a")), claim(None, None), false),
        ] {
            let found = of_object(|f| check(f, &new, &old));
            assert_eq!(found.is_empty(), is_fine, "{:?}", lines(&found));
        }
    }

    #[test]
    fn a_class_that_was_applied_stays_one() {
        let old = r#"{"spec":{"volumeAttributesClassName":"a"},"status":{"phase":"Bound","currentVolumeAttributesClassName":"a"}}"#;
        let with = |class: &str| old.replacen("\"a\"", class, 1);
        assert_eq!(changed(old, &with("\"b\"")), "");
        for (class, what) in [("null", "nil"), ("\"\"", "empty string")] {
            let text = format!(
                "spec.volumeAttributesClassName: Forbidden: update to {what} is forbidden when \
                 status.currentVolumeAttributesClassName is not nil"
            );
            assert_eq!(changed(old, &with(class)), text);
        }
    }
}
