//! Names of objects: what each rule allows, in the words of the Kubernetes API.
//!
//! The functions return one text per broken rule; none means that the name is fine.

use super::{Unit, pattern_text, too_long_text};
use crate::scheme::NameRule;

pub const LABEL_MAX: usize = 63;
pub const SUBDOMAIN_MAX: usize = 253;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";

/// Whether a name stands alone or is the start of a generated one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamePart {
    Whole,
    /// `generateName`: a trailing dash is fine.
    Prefix,
}

/// Checks a name by the rule of its kind.
pub fn check(rule: NameRule, name: &str, part: NamePart) -> Vec<String> {
    let masked = match part {
        NamePart::Prefix => mask_trailing_dash(name),
        NamePart::Whole => name.to_owned(),
    };
    match rule {
        NameRule::DnsSubdomain => dns_subdomain(&masked),
        NameRule::DnsLabel => dns_label(&masked),
        NameRule::Dns1035Label => dns_1035_label(&masked),
        NameRule::Any => Vec::new(),
        NameRule::PathSegment if part == NamePart::Prefix => path_segment_prefix(name),
        NameRule::PathSegment => path_segment(name),
        // Prefixes are not checked by the format.
        NameRule::LongName if part == NamePart::Prefix => Vec::new(),
        NameRule::LongName => subdomain_in(name, Unit::Bytes),
    }
}

/// A prefix usually ends in a dash, and the suffix that follows never starts with one. The API puts an `a` there, also
/// before a dash that stands before the last one.
fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(head) if head.ends_with(|c: char| c.is_ascii()) => {
            let mut masked = head.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => name.to_owned(),
    }
}

fn lower_alphanumeric(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Whether `name` matches the label pattern, whatever its length.
fn is_label(name: &str) -> bool {
    let b = name.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(|b| lower_alphanumeric(*b));
    ends(b.first()) && ends(b.last()) && b.iter().all(|b| lower_alphanumeric(*b) || *b == b'-')
}

/// A lower-case RFC 1123 label.
pub fn dns_label(name: &str) -> Vec<String> {
    label_in(name, Unit::Characters)
}

pub(crate) fn label_in(name: &str, unit: Unit) -> Vec<String> {
    let mut texts = Vec::new();
    if name.len() > LABEL_MAX {
        texts.push(too_long_text(LABEL_MAX, unit));
    }
    if !is_label(name) {
        texts.push(if name.split('.').all(is_label) {
            "must not contain dots".to_owned()
        } else {
            pattern_text(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    texts
}

/// A lower-case RFC 1123 subdomain: labels with dots between them.
pub fn dns_subdomain(name: &str) -> Vec<String> {
    subdomain_in(name, Unit::Characters)
}

pub(crate) fn subdomain_in(name: &str, unit: Unit) -> Vec<String> {
    let mut texts = Vec::new();
    if name.len() > SUBDOMAIN_MAX {
        texts.push(too_long_text(SUBDOMAIN_MAX, unit));
    }
    if !name.split('.').all(is_label) {
        texts.push(pattern_text(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            &format!("{LABEL}(\\.{LABEL})*"),
            &["example.com"],
        ));
    }
    texts
}

/// A label that starts with a letter, as RFC 1035 has it.
pub fn dns_1035_label(name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if name.len() > LABEL_MAX {
        texts.push(too_long_text(LABEL_MAX, Unit::Characters));
    }
    if !is_label(name) || !name.as_bytes().first().is_some_and(u8::is_ascii_lowercase) {
        texts.push(pattern_text(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    texts
}

/// A part of a URL path.
pub fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

fn path_segment_prefix(name: &str) -> Vec<String> {
    ["/", "%"]
        .iter()
        .filter(|c| name.contains(**c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
        '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
        validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
        and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
        validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    const LABEL_1035_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
        with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex \
        used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

    #[test]
    fn names_follow_their_rule() {
        use NameRule::*;
        let long = "a".repeat(64);
        let longer = "a".repeat(254);
        let cases: &[(NameRule, &str, &[&str])] = &[
            (DnsSubdomain, "a.b-c.0", &[]),
            (DnsSubdomain, "", &[SUBDOMAIN_TEXT]),
            (DnsSubdomain, "a..b", &[SUBDOMAIN_TEXT]),
            (DnsSubdomain, "a.-b", &[SUBDOMAIN_TEXT]),
            (DnsSubdomain, "A", &[SUBDOMAIN_TEXT]),
            (DnsSubdomain, &long, &[]),
            (DnsSubdomain, &longer, &["must be no more than 253 characters"]),
            (LongName, "a.b", &[]),
            (LongName, &longer, &["must be no more than 253 bytes"]),
            (DnsLabel, "0-a", &[]),
            (DnsLabel, "a.b", &["must not contain dots"]),
            (DnsLabel, "a_b", &[LABEL_TEXT]),
            (DnsLabel, "-", &[LABEL_TEXT]),
            (DnsLabel, &long, &["must be no more than 63 characters"]),
            (Dns1035Label, "a-0", &[]),
            (Dns1035Label, "0a", &[LABEL_1035_TEXT]),
            (Dns1035Label, "a.b", &[LABEL_1035_TEXT]),
            (PathSegment, "System:Node_1 x", &[]),
            (PathSegment, "..", &["may not be '..'"]),
            (PathSegment, "a/b%", &["may not contain '/'", "may not contain '%'"]),
        ];
        for (rule, name, texts) in cases {
            assert_eq!(check(*rule, name, NamePart::Whole), *texts, "{rule:?} {name}");
        }
    }

    #[test]
    fn prefixes_may_end_in_a_dash() {
        use NameRule::*;
        for (rule, prefix, fine) in [
            (DnsSubdomain, "a-", true),
            (DnsSubdomain, "a--", true),
            (DnsSubdomain, "a.-", true),
            (DnsSubdomain, "-", false),
            (DnsSubdomain, "AA-", false),
            (DnsLabel, "a-", true),
            (Dns1035Label, "0-", true),
            (Dns1035Label, "00-", false),
            (PathSegment, "..", true),
            (PathSegment, "a/", false),
        ] {
            assert_eq!(
                check(rule, prefix, NamePart::Prefix).is_empty(),
                fine,
                "{rule:?} {prefix}"
            );
        }
    }
}
