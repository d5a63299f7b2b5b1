//! Rules that all objects about devices share: names of pools and attributes, taints, conditions of their binding,
//! and what is only handed on to drivers.

use std::collections::HashSet;

use keelson_api::resource_k8s_io::v1::{DeviceTaint, DeviceToleration};
use keelson_machinery::field::BadValue;
use keelson_machinery::field::text::quote;
use serde_json::Value;

use crate::faults::{Faults, given};
use crate::names::unlike;

const POOL_MAX: usize = 253;
const UUID_LEN: usize = 36;
/// Longest name of an attribute below its domain, in bytes.
const ID_MAX: usize = 32;
const MOST_CONDITIONS: usize = 4;
/// What taints of devices do.
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
const NOT_BOTH: &str = "bindingFailureConditions must not overlap with bindingConditions";

/// As [`Faults::each`], of a list of at most so many items; of one that is longer nothing else is told.
pub fn bounded<'t, T: 't>(
    f: &mut Faults<'_>,
    name: &str,
    (items, most): (&'t [T], usize),
    check: impl FnMut(&mut Faults<'_>, &'t T),
) {
    match items.len() > most {
        true => f.at(name).too_many(items.len(), most),
        false => f.each(name, items, check),
    }
}

/// As [`bounded`], of items of which each is there once, told apart by `key`: those within the bound at least.
pub fn keyed<'t, T: 't>(
    f: &mut Faults<'_>,
    name: &str,
    (items, most): (&'t [T], usize),
    key: impl Fn(&'t T) -> &'t str,
    check: impl FnMut(&mut Faults<'_>, &'t T),
) {
    bounded(f, name, (items, most), check);
    f.unique(name, items.iter().take(most), key);
}

/// As [`keyed`], where of a list that is too long nothing else is told.
pub fn short_keyed<'t, T: 't>(
    f: &mut Faults<'_>,
    name: &str,
    (items, most): (&'t [T], usize),
    key: impl Fn(&'t T) -> &'t str,
    check: impl FnMut(&mut Faults<'_>, &'t T),
) {
    match items.len() > most {
        true => bounded(f, name, (items, most), check),
        false => keyed(f, name, (items, most), key, check),
    }
}

/// As [`short_keyed`], of texts.
pub fn set(
    f: &mut Faults<'_>,
    name: &str,
    (items, most): (&[String], usize),
    mut check: impl FnMut(&mut Faults<'_>, &str),
) {
    short_keyed(f, name, (items, most), String::as_str, |f, item| check(f, item));
}

/// The name of a pool: subdomains with slashes between them.
pub fn pool(f: &mut Faults<'_>, name: &str) {
    if !f.filled(name) {
        return;
    }
    f.max_bytes(name, POOL_MAX);
    name.split('/').for_each(|part| f.subdomain(part));
}

/// A UUID in lower case.
pub fn uid(f: &mut Faults<'_>, uid: &str) {
    if let Some(why) = uuid_fault(uid) {
        f.invalid(uid, format!("error validating uid: {why}"));
    } else if uid.len() != UUID_LEN || uid.bytes().any(|b| b.is_ascii_uppercase()) {
        let form = "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`";
        let text = format!("uid must be in RFC 4122 normalized form, {form} with lowercase hexadecimal characters");
        f.invalid(uid, text);
    }
}

/// Why a text is no UUID in any form.
fn uuid_fault(text: &str) -> Option<String> {
    const URN: &str = "urn:uuid:";
    let wrong = "invalid UUID format";
    let whole = match text.len() {
        UUID_LEN => text,
        len if len == UUID_LEN + URN.len() => match text.split_at_checked(URN.len()) {
            Some((urn, rest)) if urn.eq_ignore_ascii_case(URN) => rest,
            split => {
                let shown = split.map_or(text, |(urn, _)| urn);
                return Some(format!("invalid urn prefix: {}", quote(shown)));
            }
        },
        len if len == UUID_LEN + 2 => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(rest) => rest,
            None => return Some("invalid bracketed UUID format".to_owned()),
        },
        32 => return (!text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| wrong.to_owned()),
        len => return Some(format!("invalid UUID length: {len}")),
    };
    let fits = |(place, b): (usize, u8)| match place {
        8 | 13 | 18 | 23 => b == b'-',
        _ => b.is_ascii_hexdigit(),
    };
    (!whole.bytes().enumerate().all(fits)).then(|| wrong.to_owned())
}

/// The name of an attribute, with the domain of a driver or without.
pub fn attribute_name(f: &mut Faults<'_>, name: &str) {
    match name.split_once('/') {
        None => identifier(f, name),
        // Of more than one slash nobody says anything.
        Some((_, rest)) if rest.contains('/') => {}
        Some((domain, id)) => {
            match domain {
                "" => f.invalid("", "the domain must not be empty"),
                domain => crate::core::volume_source::driver(f, domain),
            }
            match id {
                "" => f.invalid("", "the name must not be empty"),
                id => identifier(f, id),
            }
        }
    }
}

/// The name of an attribute with its domain.
pub fn full_attribute_name(f: &mut Faults<'_>, name: &str) {
    attribute_name(f, name);
    if !name.contains('/') {
        f.invalid(
            name,
            "a fully qualified name must be a domain and a name separated by a slash",
        );
    }
}

fn identifier(f: &mut Faults<'_>, id: &str) {
    f.max_bytes(id, ID_MAX);
    let fits = |b: u8| b == b'_' || b.is_ascii_alphanumeric();
    if id.bytes().next().is_none_or(|b| b.is_ascii_digit()) || !id.bytes().all(fits) {
        let text = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                    alphanumeric characters or '_'";
        f.invalid(
            id,
            unlike(text, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"]),
        );
    }
}

/// Checks a taint.
pub fn taint(f: &mut Faults<'_>, taint: &DeviceTaint) {
    f.at("key").qualified(&taint.key);
    f.at("value").label_value(&taint.value);
    f.at("effect").one_of_filled(&taint.effect, &EFFECTS);
}

/// Checks what a request tolerates.
pub fn toleration(f: &mut Faults<'_>, toleration: &DeviceToleration) {
    f.at("key").qualified(given(&toleration.key));
    match toleration.operator.as_str() {
        "Exists" if !toleration.value.is_empty() => f
            .at("value")
            .invalid(&toleration.value, "must be empty for operator `Exists`"),
        "Equal" => f.at("value").label_value(&toleration.value),
        operator => f.at("operator").one_of_filled(operator, &["Equal", "Exists"]),
    }
    f.at("effect").one_of(given(&toleration.effect), &EFFECTS);
}

/// Conditions that say that a device is bound, and that it can't be: both or none.
pub fn binding(f: &mut Faults<'_>, good: &[String], bad: &[String]) {
    set(f, "bindingConditions", (good, MOST_CONDITIONS), |f, name| {
        f.qualified(name)
    });
    let known: HashSet<&String> = good.iter().collect();
    set(f, "bindingFailureConditions", (bad, MOST_CONDITIONS), |f, name| {
        f.qualified(name)
    });
    f.each("bindingFailureConditions", bad, |f, name| {
        f.invalid_if(known.contains(name), name, NOT_BOTH);
    });
    let (of_good, of_bad) = ("bindingConditions", "bindingFailureConditions");
    for (name, list, other_list, other) in [(of_good, good, bad, of_bad), (of_bad, bad, good, of_good)] {
        if list.is_empty() && !other_list.is_empty() {
            f.at(name)
                .invalid(BadValue::null(), format!("{name} are required to use {other}"));
        }
    }
}

/// A JSON object that is not too long. One that is stored may be.
pub fn raw(f: &mut Faults<'_>, json: &[u8], most: usize, is_stored: bool) {
    const OMITTED: &str = "<value omitted>";
    if !is_stored && json.len() > most {
        return f.too_long(most);
    }
    match serde_json::from_slice::<Value>(json) {
        _ if json.is_empty() => f.required(""),
        Ok(Value::Null) => f.required(""),
        Ok(Value::Object(_)) => {}
        Ok(_) => f.invalid(OMITTED, "must be a valid JSON object"),
        Err(error) => f.invalid(OMITTED, format!("error parsing data as JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::lines;

    #[test]
    fn names_have_their_forms() {
        type Check = fn(&mut Faults<'_>, &str);
        let cases: [(Check, &[&str], &[&str]); 4] = [
            (pool, &["a", "a/b.c"], &["", "A", "a//b"]),
            (
                uid,
                &["01234567-89ab-cdef-0123-456789abcdef"],
                &[
                    "",
                    "01234567-89AB-cdef-0123-456789abcdef",
                    "0123456789ab-cdef-0123-456789abcdef--",
                ],
            ),
            (
                attribute_name,
                &["a", "a.b/c", "a/b/c"],
                &["", "1", "/a", "a.b/", "A!/b"],
            ),
            (full_attribute_name, &["a.b/c"], &["a", "/"]),
        ];
        for (check, good, bad) in cases {
            for name in good {
                assert!(of_object(|f| check(f, name)).is_empty(), "{name}");
            }
            for name in bad {
                assert!(!of_object(|f| check(f, name)).is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn conditions_of_binding_come_in_pairs() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (good, bad, count) in [
            (list(&["a"]), list(&["b"]), 0),
            (list(&[]), list(&[]), 0),
            (list(&["a"]), list(&[]), 1),
            (list(&[]), list(&["a"]), 1),
            (list(&["a", "a"]), list(&["a"]), 2),
            (list(&["a", "b", "c", "d", "e"]), list(&["f"]), 1),
        ] {
            assert_eq!(of_object(|f| binding(f, &good, &bad)).len(), count, "{good:?} {bad:?}");
        }
    }

    #[test]
    fn a_uid_is_a_uuid_in_lower_case() {
        let plain = "01234567-89ab-cdef-0123-456789abcdef";
        for (text, expected) in [
            (plain.to_owned(), ""),
            (plain.to_uppercase(), "normalized form"),
            (format!("{{{plain}}}"), "normalized form"),
            (format!("URN:UUID:{plain}"), "normalized form"),
            (plain.replace('-', ""), "normalized form"),
            (format!("({plain})"), "invalid bracketed UUID format"),
            (format!("urn;uuid:{plain}"), "invalid urn prefix: \"urn;uuid:\""),
            (plain.replace('-', "0"), "invalid UUID format"),
            ("a".to_owned(), "invalid UUID length: 1"),
        ] {
            let found = lines(&of_object(|f| uid(f, &text)));
            assert_eq!(found.is_empty(), expected.is_empty(), "{text}");
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn what_is_handed_on_is_an_object() {
        for (json, count) in [("{}", 0), ("", 1), ("null", 1), ("[]", 1), (r#"{"a":1234567}"#, 1)] {
            assert_eq!(of_object(|f| raw(f, json.as_bytes(), 8, false)).len(), count, "{json}");
        }
        assert!(of_object(|f| raw(f, br#"{"a":1234567}"#, 8, true)).is_empty());
    }
}
