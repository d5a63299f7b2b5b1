//! Negotiation by kube-apiserver's router before any handler: the media types that a path and method take and make. It
//! knows no parameters and no half wildcards, and its errors have its own words.

use keelson_machinery::status::StatusError;

use super::Format;

/// Made by most methods.
pub const OBJECTS: &[&str] = &[
    Format::Json.media_type(),
    Format::Yaml.media_type(),
    Format::Protobuf.media_type(),
];

/// Made by lists, which may become watches.
pub const LISTS: &[&str] = &[
    Format::Json.media_type(),
    Format::Yaml.media_type(),
    Format::Protobuf.media_type(),
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Made by a subresource whose answer is text, and its errors.
pub const TEXTS: &[&str] = &[
    "text/plain",
    Format::Json.media_type(),
    Format::Yaml.media_type(),
    Format::Protobuf.media_type(),
];

/// Made by documents that have one form.
pub const JSON: &[&str] = &[Format::Json.media_type()];

/// Taken by PATCH.
pub const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// 406 unless the header names one of these types, or everything.
pub fn check_accept(accept: Option<&str>, makes: &[&str]) -> Result<(), StatusError> {
    let header = accept.unwrap_or_default();
    if header.is_empty() || names(header).any(|n| n == "*/*" || makes.contains(&n)) {
        return Ok(());
    }
    let text = format!("406: Not Acceptable\n\nAvailable representations: {}", makes.join(", "));
    Err(StatusError::generic(406, &text))
}

/// 415 unless the content type is one of these.
pub fn check_content_type(content_type: Option<&str>, takes: &[&str]) -> Result<(), StatusError> {
    if names(content_type.unwrap_or_default()).any(|n| takes.contains(&n)) {
        return Ok(());
    }
    Err(StatusError::generic(415, "415: Unsupported Media Type"))
}

fn names(header: &str) -> impl Iterator<Item = &str> {
    header
        .split(',')
        .map(|part| part.split(';').next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_and_the_full_wildcard_are_known() {
        for (accept, want) in [
            (None, true),
            (Some(""), true),
            (Some("*/*"), true),
            (Some("text/html, application/yaml;q=0"), true),
            (Some("application/*"), false),
            (Some("*"), false),
            (Some("Application/JSON"), false),
            (Some(","), false),
        ] {
            assert_eq!(check_accept(accept, OBJECTS).is_ok(), want, "{accept:?}");
        }
        let error = check_accept(Some("text/html"), JSON).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                406,
                "406: Not Acceptable\n\nAvailable representations: application/json"
            )
        );
    }

    #[test]
    fn patches_name_their_type() {
        assert!(check_content_type(Some("application/merge-patch+json; charset=utf-8"), PATCHES).is_ok());
        assert!(check_content_type(Some("application/json"), PATCHES).is_err());
        assert!(check_content_type(None, PATCHES).is_err());
    }
}
