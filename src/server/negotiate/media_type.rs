//! Media types of request bodies, read as Go's `mime` package reads them.

/// Type and subtype of a `Content-Type` in lower case; `None` for a text that is no media type, be it for its
/// parameters.
pub fn essence(text: &str) -> Option<String> {
    let (essence, mut params) = text.split_once(';').unwrap_or((text, ""));
    let essence = essence.trim().to_ascii_lowercase();
    let (main, sub) = essence.split_once('/')?;
    if !is_token(main) || !is_token(sub) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    while !params.trim().is_empty() {
        let (name, rest) = parameter(params)?;
        if names.contains(&name) {
            return None;
        }
        names.push(name);
        params = match rest.trim_start() {
            "" => "",
            rest => rest.strip_prefix(';')?,
        };
    }
    Some(essence)
}

/// The name of the first parameter, and what follows its value.
fn parameter(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim_start();
    if !is_token(name) {
        return None;
    }
    let rest = match rest.strip_prefix('"') {
        Some(quoted) => after_quote(quoted)?,
        None => {
            let end = rest.find(|c: char| !is_token_char(c)).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            rest.get(end..)?
        }
    };
    Some((name.to_ascii_lowercase(), rest))
}

/// What follows the quote that ends a quoted value.
fn after_quote(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_char)
}

/// RFC 2045: printable ASCII but for blanks and the characters that separate.
fn is_token_char(c: char) -> bool {
    c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_must_be_well_formed() {
        for (text, want) in [
            ("application/json", true),
            (" APPLICATION/Json ; charset=utf-8", true),
            ("application/json;", true),
            ("application/json;a=\"b;\\\"c\";d=e", true),
            ("application/json; charset", false),
            ("application/json;a=b;a=c", false),
            ("application/json;a=b c", false),
            ("application/json;=b", false),
            ("application/json; ;", false),
            ("application /json", false),
            ("application/json;a=\"b", false),
            ("application/json,application/yaml", false),
            ("garbage", false),
        ] {
            assert_eq!(essence(text).as_deref() == Some("application/json"), want, "{text}");
        }
    }
}
