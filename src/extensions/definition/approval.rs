//! API approval: groups of Kubernetes itself may be defined with an annotation alone that says who has approved it.

use std::collections::BTreeMap;

use keelson_machinery::field::text::quote;

/// The annotation.
pub const ANNOTATION: &str = "api-approved.kubernetes.io";

const ABOUT: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Approval {
    Invalid,
    Approved,
    /// It says that it is not approved.
    Bypassed,
    Missing,
}

/// Whether a group is one of Kubernetes itself.
pub fn is_protected(group: &str) -> bool {
    let of = |domain: &str| {
        let rest = group.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    of("k8s.io") || of("kubernetes.io")
}

/// What the annotations say, and why, for clients.
pub fn state(annotations: &BTreeMap<String, String>) -> (Approval, String) {
    let text = annotations.get(ANNOTATION).map_or("", String::as_str);
    let needed = format!("protected groups must have approval annotation {ANNOTATION:?}");
    match text {
        "" => (Approval::Missing, format!("{needed}, {ABOUT}")),
        text if text.starts_with("unapproved") => (Approval::Bypassed, format!("not approved: {}", quote(text))),
        text if has_scheme_and_host(text) => (Approval::Approved, format!("approved in {text}")),
        _ => {
            let why = "with either a URL or a reason starting with \"unapproved\"";
            (Approval::Invalid, format!("{needed} {why}, {ABOUT}"))
        }
    }
}

/// Whether a text is a URL that leads somewhere.
fn has_scheme_and_host(text: &str) -> bool {
    let is_plain = text.bytes().all(|b| (0x21..0x7f).contains(&b));
    let Some((scheme, rest)) = text.split_once("://").filter(|_| is_plain) else {
        return false;
    };
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    is_scheme && !host.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_kubernetes_are_protected() {
        for (group, protected) in [
            ("k8s.io", true),
            ("gateway.networking.k8s.io", true),
            ("kubernetes.io", true),
            ("a.kubernetes.io", true),
            ("mykubernetes.io", false),
            ("example.com", false),
            ("k8s.io.example.com", false),
        ] {
            assert_eq!(is_protected(group), protected, "{group}");
        }
    }

    #[test]
    fn annotations_approve_with_a_url() {
        for (text, state_of, why) in [
            (
                "https://github.com/a/pull/1",
                Approval::Approved,
                "approved in https://github.com/a/pull/1",
            ),
            (
                "unapproved, experimental",
                Approval::Bypassed,
                "not approved: \"unapproved, experimental\"",
            ),
            ("bad value", Approval::Invalid, "protected groups must have"),
            ("https://", Approval::Invalid, "protected groups must have"),
            ("/path", Approval::Invalid, "protected groups must have"),
            ("", Approval::Missing, "protected groups must have"),
        ] {
            let annotations = BTreeMap::from([(ANNOTATION.to_owned(), text.to_owned())]);
            let (found, told) = state(&annotations);
            assert_eq!(found, state_of, "{text}");
            assert!(told.starts_with(why), "{told}");
        }
    }
}
