//! JSON merge patch (RFC 7386).

use super::node::{MAX_OPEN, Node, add};
use super::{check, decode_error, strict, text};
use crate::status::StatusError;

/// Applies `patch` to `document`, both JSON objects. With `strict`, keys that stand twice in the patch are reported
/// (`duplicate field "a.b"`) beside the result, and a patch that is no object is refused.
///
/// Errors: 400 for a patch that is broken, null, or (with `strict`) no object. A patch that does not fit the type of
/// the object is found when the result is decoded.
pub fn apply(document: &[u8], patch: &[u8], strict: bool) -> Result<(Vec<u8>, Vec<String>), StatusError> {
    let syntax = check(patch);
    let patch = text::trim(patch);
    let mut problems = strict::Problems::default();
    if strict {
        syntax.as_ref().map_err(|e| decode_error(&e.to_string()))?;
        match strict::kind(patch) {
            "object" => problems.duplicates(patch, ""),
            "null" => {}
            other => {
                let text = format!("json: cannot unmarshal {other} into Go value of type map[string]interface {{}}");
                return Err(decode_error(&text));
            }
        }
    }
    let bad = || StatusError::bad_request("Invalid JSON Patch");
    syntax.map_err(|_| bad())?;
    check(document).map_err(|_| StatusError::unknown("Invalid JSON Document"))?;
    let mut patch = Node::new(patch);
    let result = match patch.open() {
        Node::Object(_) => merge(Node::new(document), patch, MAX_OPEN),
        Node::Array(_) => {
            patch.prune();
            patch
        }
        _ => return Err(bad()),
    };
    let mut out = Vec::with_capacity(document.len());
    result.write(&mut out);
    Ok((out, problems.into_texts()))
}

/// `depth` is how many levels may follow; below them the patch takes the place of what was there.
fn merge<'a>(mut current: Node<'a>, mut patch: Node<'a>, depth: u32) -> Node<'a> {
    let Some(depth) = depth.checked_sub(1) else {
        return patch;
    };
    let Some(members) = current.object() else {
        patch.prune();
        return patch;
    };
    let Node::Object(changes) = patch.open() else {
        return patch;
    };
    let mut fresh = Vec::new();
    for (key, change) in std::mem::take(changes) {
        match (members.get_mut(&key), change) {
            (Some(_), Node::Null) => drop(members.remove(&key)),
            (None, Node::Null) => {}
            // Where null stood, nothing is merged with.
            (Some(place), change) => *place = merge(std::mem::replace(place, Node::Null), change, depth),
            (None, mut change) => {
                change.prune();
                fresh.push((key, change));
            }
        }
    }
    add(members, fresh);
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(document: &str, patch: &str) -> Result<String, String> {
        match apply(document.as_bytes(), patch.as_bytes(), true) {
            Ok((out, _)) => Ok(String::from_utf8(out).unwrap()),
            Err(error) => Err(format!("{} {}", error.code, error.message)),
        }
    }

    #[test]
    fn patches_merge() {
        for line in include_str!("testdata/merge.tsv").lines() {
            let [document, patch, expected] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
            assert_eq!(patched(document, patch).as_deref(), Ok(expected), "{document} {patch}");
        }
    }

    #[test]
    fn bad_patches_are_refused() {
        for (patch, error) in [
            ("null", "400 Invalid JSON Patch"),
            (
                "[1]",
                "400 error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                "\"a\"",
                "400 error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
            ),
            (
                "{\"a\":}",
                "400 error decoding patch: invalid character '}' looking for beginning of value",
            ),
        ] {
            assert_eq!(patched("{}", patch), Err(error.to_owned()), "{patch}");
        }
        let (out, _) = apply(b"{}", br#"[1,{"a":null}]"#, false).unwrap();
        assert_eq!(out, b"[1,{}]");
        assert!(apply(b"{}", b"x", false).is_err());
        assert!(apply(b"{}", b"1", false).is_err());
    }

    #[test]
    fn duplicate_keys_are_reported() {
        let patch = br#"{"a":1,"b":{"c":1,"c":2,"c":3},"d":[{"e":1,"e":2}],"a":2}"#;
        let (out, problems) = apply(b"{}", patch, true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":2,"b":{"c":3},"d":[{"e":2}]}"#);
        assert_eq!(
            problems,
            [
                r#"duplicate field "b.c""#,
                r#"duplicate field "d[0].e""#,
                r#"duplicate field "a""#
            ]
        );
    }
}
