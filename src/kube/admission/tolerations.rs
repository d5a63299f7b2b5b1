//! Tolerations as sets of taints: one may cover another, and several are merged.

use std::collections::HashMap;

use keelson_api::core::v1::Toleration;
use keelson_machinery::equality;

const NO_EXECUTE: &str = "NoExecute";
const EQUAL: &str = "Equal";
const EXISTS: &str = "Exists";

/// Both lists in one, without those that another one covers. Of equal ones the first stays, of others that cover each
/// other the last. A pod may have very many tolerations, so not each is compared with each.
pub fn merge(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let mut widest: HashMap<Group<'_>, i64> = HashMap::new();
    let mut alike: HashMap<_, (usize, &Toleration)> = HashMap::new();
    for (place, one) in first.iter().chain(second).enumerate() {
        let (group, lasts) = (group(one), lasts(one));
        let most = widest.entry(group).or_insert(lasts);
        *most = lasts.max(*most);
        let cover_each_other = matches!(one.operator.as_str(), EXISTS | EQUAL);
        let own = one.toleration_seconds.filter(|_| !cover_each_other);
        let kept = alike.entry((group, lasts, own)).or_insert((place, one));
        if !equality::equal(kept.1, one) {
            *kept = (place, one);
        }
    }
    let mut kept: Vec<(usize, &Toleration)> = alike.into_values().collect();
    kept.retain(|(_, one)| !is_covered(one, &widest));
    kept.sort_unstable_by_key(|(place, _)| *place);
    kept.into_iter().map(|(_, one)| one.clone()).collect()
}

/// Tolerations that differ in how long they last alone: operator, value, key and effect. Where any value will do, none
/// is part of it.
type Group<'a> = (&'a str, &'a str, &'a str, &'a str);

fn group(one: &Toleration) -> Group<'_> {
    let operator = one.operator.as_str();
    let value = if operator == EXISTS { "" } else { one.value.as_str() };
    (operator, value, &one.key, &one.effect)
}

/// How long a toleration lasts: for ever, but where an effect ends what runs.
fn lasts(one: &Toleration) -> i64 {
    let seconds = one.toleration_seconds.filter(|_| one.effect == NO_EXECUTE);
    seconds.unwrap_or(i64::MAX)
}

/// Whether one that differs in more than its value, or lasts longer, covers the toleration. `widest` says how long those
/// of each group last at most.
fn is_covered(one: &Toleration, widest: &HashMap<Group<'_>, i64>) -> bool {
    let (own, lasts) = (group(one), lasts(one));
    let (value, key, effect) = (one.value.as_str(), one.key.as_str(), one.effect.as_str());
    let operators: &[&str] = if one.operator == EQUAL { &[EQUAL, ""] } else { &[] };
    let of_value = operators.iter().map(|operator| (*operator, value, key));
    let of_any = [key, ""].into_iter().map(|key| (EXISTS, "", key));
    let mut groups = of_value
        .chain(of_any)
        .flat_map(|(operator, value, key)| [effect, ""].map(|effect| (operator, value, key, effect)));
    groups.any(|group| match widest.get(&group) {
        Some(longest) if group == own => *longest > lasts,
        Some(longest) => *longest >= lasts || group.3 != NO_EXECUTE,
        None => false,
    })
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

    /// Each is compared with each.
    fn compared(all: &[Toleration]) -> Vec<Toleration> {
        let mut merged: Vec<Toleration> = Vec::new();
        for (place, one) in all.iter().enumerate() {
            let before = merged.iter().any(|other| covers(other, one));
            let mut behind = all.iter().skip(place + 1);
            let behind = behind.any(|other| !equality::equal(one, other) && covers(other, one));
            if !before && !behind {
                merged.push(one.clone());
            }
        }
        merged
    }

    #[test]
    fn groups_say_what_comparisons_say() {
        let mut seed: u64 = 1;
        let mut below = |end: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((seed >> 33) % end).unwrap()
        };
        for _ in 0..20_000 {
            let count = 1 + below(6);
            let mut one = || Toleration {
                key: ["", "a", "b"][below(3)].to_owned(),
                operator: [EXISTS, EQUAL, "", "Gt"][below(4)].to_owned(),
                value: ["", "1", "2"][below(3)].to_owned(),
                effect: ["", "NoSchedule", NO_EXECUTE][below(3)].to_owned(),
                toleration_seconds: [None, Some(1), Some(2)][below(3)],
            };
            let all: Vec<Toleration> = (0..count).map(|_| one()).collect();
            let expected = short_with_seconds(&compared(&all));
            assert_eq!(
                short_with_seconds(&merge(&all, &[])),
                expected,
                "{}",
                short_with_seconds(&all)
            );
        }
    }

    fn short_with_seconds(tolerations: &[Toleration]) -> String {
        let one = |t: &Toleration| {
            let seconds = t.toleration_seconds;
            format!("{:?} {:?} {:?} {:?} {seconds:?}", t.key, t.operator, t.value, t.effect)
        };
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
