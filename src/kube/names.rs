//! Names in objects beside those of objects: what each form allows, in the words of the API. One text for each broken
//! rule.

use keelson_machinery::validation::names::SUBDOMAIN_MAX;

const PORT_MAX: usize = 15;
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";

/// The text of a pattern that is not matched. The two spaces before "or" are those of the API.
pub fn unlike(expected: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    match examples.is_empty() {
        true => format!("{expected} (regex used for validation is '{pattern}')"),
        false => format!(
            "{expected} (e.g. {}regex used for validation is '{pattern}')",
            examples.join(" or ")
        ),
    }
}

fn is_made_of(text: &str, fits: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(fits)
}

/// A key of a config map or secret.
pub fn config_key(key: &str) -> Vec<String> {
    let mut texts = too_long(key);
    if !is_made_of(key, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
        texts.push(unlike(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." | ".." => texts.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => texts.push("must not start with '..'".to_owned()),
        _ => {}
    }
    texts
}

fn too_long(name: &str) -> Vec<String> {
    let is_long = name.len() > SUBDOMAIN_MAX;
    let text = is_long.then(|| format!("must be no more than {SUBDOMAIN_MAX} characters"));
    text.into_iter().collect()
}

/// The name of an environment variable.
pub fn environment_variable(name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if name.is_empty() {
        texts.push("environment variable name must be non-empty".to_owned());
    }
    if !name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        let text = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        texts.push(text.to_owned());
    }
    texts
}

/// The name of a header of HTTP.
pub fn http_header(name: &str) -> Vec<String> {
    if is_made_of(name, |b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let expected = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![unlike(expected, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// A share of a hundred.
pub fn percent(text: &str) -> Vec<String> {
    let number = text.strip_suffix('%').unwrap_or_default();
    if is_made_of(number, |b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let expected = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![unlike(expected, "[0-9]+%", &["1%", "93%"])]
}

/// A subdomain below any other: `*.example.com`.
pub fn wildcard_subdomain(name: &str) -> Vec<String> {
    let mut texts = too_long(name);
    let rest = name.strip_prefix("*.").unwrap_or_default();
    if !is_subdomain(rest, is_label) {
        texts.push(unlike(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
             of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{LABEL}(\.{LABEL})*"),
            &["*.example.com"],
        ));
    }
    texts
}

/// A subdomain in which labels may have underscores too.
pub fn underscored_subdomain(name: &str) -> Vec<String> {
    let mut texts = too_long(name);
    if !is_subdomain(name, is_underscored_label) {
        let label = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        texts.push(unlike(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character",
            &format!(r"{label}(\.{label})*"),
            &["example.com"],
        ));
    }
    texts
}

fn is_subdomain(name: &str, is_label: fn(&str) -> bool) -> bool {
    name.split('.').all(is_label)
}

fn has_plain_ends(label: &str) -> bool {
    let plain = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    plain(label.as_bytes().first()) && plain(label.as_bytes().last())
}

fn is_label(label: &str) -> bool {
    has_plain_ends(label) && is_made_of(label, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_underscored_label(label: &str) -> bool {
    let label = label.strip_prefix('_').unwrap_or(label);
    has_plain_ends(label)
        && is_made_of(label, |b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_')
        })
}

/// What is wrong with a path of HTTP.
pub fn http_path(path: &str) -> Vec<String> {
    let punctuation = b"/-._~%!$&'()*+,;=:";
    if is_made_of(path, |b| b.is_ascii_alphanumeric() || punctuation.contains(&b)) {
        return Vec::new();
    }
    vec![unlike("Invalid path", PATH, &[])]
}

/// The name of a port.
pub fn port(name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if name.len() > PORT_MAX {
        texts.push(format!("must be no more than {PORT_MAX} characters"));
    }
    if name.is_empty()
        || !name
            .bytes()
            .all(|b| b == b'-' || b.is_ascii_digit() || b.is_ascii_lowercase())
    {
        texts.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        texts.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        texts.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        texts.push("must not begin or end with a hyphen".to_owned());
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_rules() {
        type Form = fn(&str) -> Vec<String>;
        let forms: [(Form, &[&str], &[&str]); 8] = [
            (
                config_key,
                &["a", "A_b.c-d", ".x", "a..b"],
                &["", ".", "..", "..a", "a/b"],
            ),
            (environment_variable, &["a b", "1"], &["", "a=b", "ä"]),
            (http_header, &["X-A", "1"], &["", "a b", "a_b"]),
            (percent, &["1%", "150%"], &["", "%", "1", "-1%", "1%%"]),
            (wildcard_subdomain, &["*.a.b"], &["", "*", "*.", "a.b", "*.*.a"]),
            (http_path, &["a/b~c"], &["", "a b"]),
            (
                port,
                &["http", "a-1"],
                &["", "a--b", "-a", "1", "A", "abcdefghijklmnop"],
            ),
            (underscored_subdomain, &["a", "_a.b_c"], &["", ".", "__a", "a_", "A"]),
        ];
        for (form, good, bad) in forms {
            good.iter().for_each(|name| assert!(form(name).is_empty(), "{name}"));
            bad.iter().for_each(|name| assert!(!form(name).is_empty(), "{name}"));
        }
    }
}
