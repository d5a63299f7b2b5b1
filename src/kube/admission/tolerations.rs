//! Tolerations as sets of taints: one may cover another, and several are merged.

use keelson_api::core::v1::Toleration;
use keelson_machinery::equality;

const NO_EXECUTE: &str = "NoExecute";
const EQUAL: &str = "Equal";
const EXISTS: &str = "Exists";

/// Both lists in one, without those that another one covers.
pub fn merge(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let mut merged: Vec<Toleration> = Vec::new();
    for (place, one) in all.iter().enumerate() {
        let before = merged.iter().any(|other| covers(other, one));
        // Of equal ones the first stays.
        let mut behind = all.iter().skip(place + 1);
        let behind = behind.any(|other| !equality::equal(*one, *other) && covers(other, one));
        if !before && !behind {
            merged.push((*one).clone());
        }
    }
    merged
}

/// Whether each toleration is covered by one of `allowed`. Nothing is said by an empty list.
pub fn are_within(tolerations: &[Toleration], allowed: &[Toleration]) -> bool {
    let is_allowed = |one: &Toleration| allowed.iter().any(|other| covers(other, one));
    allowed.is_empty() || tolerations.iter().all(is_allowed)
}

/// Whether `wide` tolerates all that `one` tolerates.
fn covers(wide: &Toleration, one: &Toleration) -> bool {
    if equality::equal(wide, one) {
        return true;
    }
    let every_key = wide.key.is_empty() && wide.operator == EXISTS;
    if one.key != wide.key && !every_key {
        return false;
    }
    if one.effect != wide.effect && !wide.effect.is_empty() {
        return false;
    }
    if let Some(seconds) = wide.toleration_seconds.filter(|_| wide.effect == NO_EXECUTE)
        && one.toleration_seconds.is_none_or(|of_one| of_one > seconds)
    {
        return false;
    }
    match wide.operator.as_str() {
        EXISTS => true,
        EQUAL | "" => one.operator == EQUAL && one.value == wide.value,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn list(text: &str) -> Vec<Toleration> {
        let pod: keelson_api::core::v1::Pod = read(&format!(r#"{{"spec":{{"tolerations":{text}}}}}"#));
        pod.spec.tolerations
    }

    fn short(tolerations: &[Toleration]) -> String {
        let one = |t: &Toleration| format!("{} {} {} {}", t.key, t.operator, t.value, t.effect);
        tolerations.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn those_that_others_cover_are_left_out() {
        let all = r#"{"operator":"Exists"}"#;
        let equal = r#"{"key":"a","operator":"Equal","value":"1","effect":"NoSchedule"}"#;
        let any_effect = r#"{"key":"a","operator":"Exists"}"#;
        let brief = r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":10}"#;
        let long = r#"{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":20}"#;
        let ever = r#"{"key":"a","operator":"Exists","effect":"NoExecute"}"#;
        for (first, second, expected) in [
            (format!("[{equal}]"), format!("[{equal}]"), "a Equal 1 NoSchedule"),
            (format!("[{equal}]"), format!("[{any_effect}]"), "a Exists  "),
            (format!("[{any_effect}]"), format!("[{equal},{all}]"), " Exists  "),
            (format!("[{brief}]"), format!("[{long}]"), "a Exists  NoExecute"),
            (
                format!("[{equal}]"),
                format!("[{ever}]"),
                "a Equal 1 NoSchedule; a Exists  NoExecute",
            ),
        ] {
            assert_eq!(
                short(&merge(&list(&first), &list(&second))),
                expected,
                "{first} {second}"
            );
        }
        let kept = merge(&list(&format!("[{brief}]")), &list(&format!("[{long}]")));
        assert_eq!(kept[0].toleration_seconds, Some(20));
        assert!(are_within(
            &list(&format!("[{equal}]")),
            &list(&format!("[{any_effect}]"))
        ));
        assert!(!are_within(
            &list(&format!("[{any_effect}]")),
            &list(&format!("[{equal}]"))
        ));
        assert!(!are_within(&list(&format!("[{ever}]")), &list(&format!("[{long}]"))));
        assert!(are_within(&list("[]"), &list(&format!("[{long}]"))));
        assert!(are_within(&list(&format!("[{ever}]")), &[]));
    }
}
