//! Webhooks that objects name: the URL or the service of the cluster at which one is.

use super::names::dns_subdomain;
use crate::field::text::quote;
use crate::field::{ErrorList, FieldError, Path};

const FORM: &str = "; desired format: https://host[/path]";

/// Faults of the URL of a webhook.
pub fn url(text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            let text = format!("url must be a valid URL: parse {}: {why}{FORM}", quote(text));
            return FieldError::required(path, text).into();
        }
    };
    let mut wrong = |value: &str, text: String| errors.push(FieldError::invalid(path, value, text));
    if url.scheme != "https" {
        wrong(&url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        wrong("", format!("host must be specified{FORM}"));
    }
    let refused = [
        (url.user, "user information is not permitted in the URL"),
        (url.fragment, "fragments are not permitted in the URL"),
        (url.query, "query parameters are not permitted in the URL"),
    ];
    for (part, text) in refused {
        if let Some(part) = part {
            wrong(part, text.to_owned());
        }
    }
    errors
}

/// The parts of a URL; those that are empty are not there, but for the user.
struct Url<'a> {
    /// In lower case.
    scheme: String,
    user: Option<&'a str>,
    host: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

/// Why a text is no URL, in Go's words.
#[derive(Debug, thiserror::Error)]
enum UrlError {
    #[error("net/url: invalid control character in URL")]
    Control,
    #[error("first path segment in URL cannot contain colon")]
    Colon,
    #[error("missing protocol scheme")]
    NoScheme,
    #[error("missing ']' in host")]
    Bracket,
    #[error("invalid port {} after host", quote(.0))]
    Port(String),
    #[error("invalid character {} in host name", quote(.0))]
    HostCharacter(String),
    #[error("invalid URL escape {}", quote(.0))]
    Escape(String),
}

impl<'a> Url<'a> {
    /// As Go reads one.
    fn parse(text: &'a str) -> Result<Url<'a>, UrlError> {
        if text.chars().any(|c| c.is_ascii_control()) {
            return Err(UrlError::Control);
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = scheme_of(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if scheme.is_empty() && !rest.starts_with('/') {
            let first = rest.split('/').next().unwrap_or_default();
            if first.contains(':') {
                return Err(UrlError::Colon);
            }
        }
        let (authority, rest) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        check_escapes(rest)?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        check_host(host)?;
        let present = |part: &'a str| Some(part).filter(|part| !part.is_empty());
        Ok(Url {
            scheme,
            user,
            host,
            query: present(query),
            fragment: present(fragment),
        })
    }
}

fn scheme_of(text: &str) -> Result<(String, &str), UrlError> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err(UrlError::NoScheme),
            ':' => {
                let (scheme, rest) = text.split_at(at);
                return Ok((scheme.to_ascii_lowercase(), rest.get(1..).unwrap_or_default()));
            }
            _ => return Ok((String::new(), text)),
        }
    }
    Ok((String::new(), text))
}

fn check_host(host: &str) -> Result<(), UrlError> {
    let after_bracket = match host.strip_prefix('[') {
        Some(rest) => match rest.rfind(']') {
            Some(end) => rest.get(end + 1..).unwrap_or_default(),
            None => return Err(UrlError::Bracket),
        },
        None => host.find(':').and_then(|at| host.get(at..)).unwrap_or_default(),
    };
    let is_port = |text: &str| {
        text.strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
    };
    if !after_bracket.is_empty() && !is_port(after_bracket) {
        return Err(UrlError::Port(after_bracket.to_owned()));
    }
    let odd = |c: &char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_.~!$&'()*+,;=:[]<>\"%".contains(*c);
    match host.chars().find(odd) {
        Some(c) => Err(UrlError::HostCharacter(c.to_string())),
        None => check_escapes(host),
    }
}

fn check_escapes(text: &str) -> Result<(), UrlError> {
    for (at, _) in text.match_indices('%') {
        let after = text.get(at..).unwrap_or_default();
        let digits = after.bytes().skip(1).take(2);
        if digits.clone().count() < 2 || !digits.clone().all(|b| b.is_ascii_hexdigit()) {
            let shown: String = after.chars().take(3).collect();
            return Err(UrlError::Escape(shown));
        }
    }
    Ok(())
}

/// Faults of the service of a webhook, by its namespace and name. The original mistakes the one for the other, and so
/// do its paths.
pub fn service((namespace, name): (&str, &str), port: i32, path: Option<&str>, at: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, text) in [("name", namespace), ("namespace", name)] {
        if text.is_empty() {
            errors.push(FieldError::required(&at.child(field), ""));
        }
    }
    if !(1..=65535).contains(&port) {
        let text = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&at.child("port"), port, text));
    }
    if let Some(text) = path {
        errors.extend(service_path(text, &at.child("path")));
    }
    errors
}

fn service_path(text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if text.is_empty() || text == "/" {
        return errors;
    }
    let mut wrong = |why: String| errors.push(FieldError::invalid(path, text, why));
    if text == "//" {
        wrong("segment[0] may not be empty".to_owned());
        return errors;
    }
    if !text.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    // The first byte is taken for the slash, whatever it is.
    let rest = text
        .char_indices()
        .nth(1)
        .map_or("", |(at, _)| text.get(at..).unwrap_or_default());
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (place, segment) in rest.split('/').enumerate() {
        match segment {
            "" => wrong(format!("segment[{place}] may not be empty")),
            segment => dns_subdomain(segment)
                .into_iter()
                .for_each(|fault| wrong(format!("segment[{place}]: {fault}"))),
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(errors: &ErrorList) -> String {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn urls_lead_to_a_host_by_tls() {
        for (text, told) in [
            ("https://example.com/a", ""),
            ("https://[::1]:443", ""),
            (
                "http://a",
                "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
            (
                "https:///a",
                "Invalid value: \"\": host must be specified; desired format: https://host[/path]",
            ),
            (
                "https://u:p@a",
                "Invalid value: \"u:p\": user information is not permitted in the URL",
            ),
            (
                "https://a?b=c",
                "Invalid value: \"b=c\": query parameters are not permitted in the URL",
            ),
            (
                "https://a#b",
                "Invalid value: \"b\": fragments are not permitted in the URL",
            ),
            (
                ":a",
                "Required value: url must be a valid URL: parse \":a\": missing protocol scheme; desired format: \
                 https://host[/path]",
            ),
            (
                "https://a:x",
                "Required value: url must be a valid URL: parse \"https://a:x\": invalid port \":x\" after host; \
                 desired format: https://host[/path]",
            ),
            (
                "https://a/%zz",
                "Required value: url must be a valid URL: parse \"https://a/%zz\": invalid URL escape \"%zz\"; desired \
                 format: https://host[/path]",
            ),
        ] {
            let found = lines(&url(text, &Path::new("url")));
            assert_eq!(found.strip_prefix("url: ").unwrap_or(&found), told, "{text}");
        }
    }

    #[test]
    fn paths_of_services_have_no_empty_segment() {
        for (text, told) in [
            ("/", vec![]),
            ("/a/b/", vec![]),
            ("//", vec!["segment[0] may not be empty"]),
            ("x", vec!["must start with a '/'", "segment[0] may not be empty"]),
            ("/a//b", vec!["segment[1] may not be empty"]),
        ] {
            let found = service_path(text, &Path::new("path"));
            let found: Vec<&str> = found.iter().map(|fault| fault.detail.as_str()).collect();
            assert_eq!(found, told, "{text}");
        }
    }
}
