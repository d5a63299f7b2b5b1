//! JSON patch (RFC 6902), with the corner cases of the Kubernetes API: indexes may be negative, `replace` adds an
//! absent member, an absent `value` is null, `test` takes an absent member for null, numbers are compared as they are
//! written, and what stands before the first slash of a path is ignored.

mod run;

use std::collections::BTreeSet;

use super::node::Node;
use super::{check, decode_error, strict, text};
use crate::status::StatusError;
use run::Run;

pub use run::OperationError;

/// Most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// Most bytes that the `copy` operations of one patch may add.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;
/// Most elements that the operations of one patch may move, all together, because others come or go before them.
pub const MAX_MOVED_ELEMENTS: usize = 16 << 20;

/// A decoded patch.
#[derive(Debug)]
pub struct JsonPatch<'a> {
    operations: Vec<Operation<'a>>,
}

#[derive(Debug, Default)]
struct Operation<'a> {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Option<Node<'a>>,
}

impl<'a> JsonPatch<'a> {
    /// Decodes a body. With `strict`, members of a wrong type are refused, and unknown members and keys that stand
    /// twice are reported beside the patch (`json patch unknown field "[0].x"`).
    ///
    /// Errors: 400 for a body that is no patch, 413 for more than [`MAX_OPERATIONS`] operations.
    pub fn decode(body: &'a [u8], strict: bool) -> Result<(JsonPatch<'a>, Vec<String>), StatusError> {
        let fail = |why: &str| {
            if strict {
                decode_error(why)
            } else {
                StatusError::bad_request(why)
            }
        };
        check(body).map_err(|e| fail(&e.to_string()))?;
        let body = text::trim(body);
        let (list, one) = if strict {
            ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
        } else {
            ("jsonpatch.Patch", "jsonpatch.Operation")
        };
        let mismatch = |value: &[u8], ty: &str| {
            fail(&format!(
                "json: cannot unmarshal {} into Go value of type {ty}",
                strict::kind(value)
            ))
        };
        let items = match strict::kind(body) {
            "array" => text::elements(body, |text| text),
            "null" => Vec::new(),
            _ => return Err(mismatch(body, list)),
        };
        let mut problems = strict::Problems::default();
        let mut operations = Vec::with_capacity(items.len().min(MAX_OPERATIONS));
        for (i, item) in items.iter().enumerate() {
            match strict::kind(item) {
                "object" if strict => {
                    check_types(item).map_err(|e| fail(&e.to_string()))?;
                    report(item, i, &mut problems);
                }
                "object" | "null" => {}
                _ => return Err(mismatch(item, one)),
            }
            if operations.len() < MAX_OPERATIONS {
                operations.push(Operation::new(item));
            }
        }
        if items.len() > MAX_OPERATIONS {
            return Err(StatusError::entity_too_large(format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                items.len()
            )));
        }
        let problems = problems
            .into_texts()
            .into_iter()
            .map(|p| format!("json patch {p}"))
            .collect();
        Ok((JsonPatch { operations }, problems))
    }

    /// Applies the operations one after the other to `document`, a JSON object.
    ///
    /// Error: 422 if one of them fails, always in the same words; 413 where they move more than
    /// [`MAX_MOVED_ELEMENTS`].
    pub fn apply(&self, document: &[u8]) -> Result<Vec<u8>, StatusError> {
        check(document).map_err(StatusError::unknown)?;
        self.apply_within(document, MAX_COPY_BYTES)
            .map_err(|error| match error {
                OperationError::Moves => StatusError::entity_too_large(error),
                _ => StatusError::generic(422, ""),
            })
    }

    /// As [`JsonPatch::apply`], for callers who tell which operation failed.
    ///
    /// Error: what is wrong with the first operation that fails.
    pub fn apply_explained(&self, document: &[u8]) -> Result<Vec<u8>, OperationError> {
        check(document).map_err(|error| error.to_string())?;
        self.apply_within(document, MAX_COPY_BYTES)
    }

    /// Whether it changes nothing, having no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    fn apply_within(&self, document: &[u8], copy_bytes: usize) -> Result<Vec<u8>, OperationError> {
        let mut run = Run::new(document, copy_bytes);
        for operation in &self.operations {
            run.step(operation)?;
        }
        let mut out = Vec::with_capacity(document.len());
        run.write(&mut out);
        Ok(out)
    }
}

/// The members of an operation that are strings.
const TEXT_MEMBERS: [&str; 3] = ["op", "path", "from"];

/// A member of an operation that is no string.
#[derive(Debug, thiserror::Error)]
#[error("json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{member} of type string")]
struct MemberError {
    kind: &'static str,
    member: String,
}

fn check_types(item: &[u8]) -> Result<(), MemberError> {
    for (key, value) in text::members(item) {
        let kind = strict::kind(value);
        if TEXT_MEMBERS.contains(&&*key) && !matches!(kind, "string" | "null") {
            return Err(MemberError {
                kind,
                member: key.into_owned(),
            });
        }
    }
    Ok(())
}

/// Tells of the keys of one operation in the order in which they stand.
fn report(item: &[u8], index: usize, problems: &mut strict::Problems) {
    let mut seen = BTreeSet::new();
    for (key, value) in text::members(item) {
        let path = format!("[{index}].{key}");
        let known = key == "value" || TEXT_MEMBERS.contains(&&*key);
        if !known {
            problems.add("unknown", &path);
            continue;
        }
        if !seen.insert(key.clone()) {
            problems.add("duplicate", &path);
        }
        problems.duplicates(value, &path);
    }
}

impl<'a> Operation<'a> {
    fn new(item: &'a [u8]) -> Operation<'a> {
        let mut operation = Operation::default();
        if strict::kind(item) != "object" {
            return operation;
        }
        for (key, value) in text::members(item) {
            let content = || (strict::kind(value) == "string").then(|| text::string(value).into_owned());
            match &*key {
                "op" => operation.op = content(),
                "path" => operation.path = content(),
                "from" => operation.from = content(),
                "value" => operation.value = Some(Node::new(value)),
                _ => {}
            }
        }
        operation
    }

    fn value(&self) -> Node<'a> {
        self.value.clone().unwrap_or(Node::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, or `!` and the failure; then what strict decoding reports.
    fn patched(document: &str, patch: &str, strict: bool) -> String {
        let (patch, problems) = match JsonPatch::decode(patch.as_bytes(), strict) {
            Ok(decoded) => decoded,
            Err(error) => return format!("!{} {}", error.code, error.message),
        };
        match patch.apply_within(document.as_bytes(), 200) {
            Ok(out) => [vec![String::from_utf8(out).unwrap()], problems].concat().join("\t"),
            Err(_) => {
                let error = patch.apply(document.as_bytes());
                error.map_or_else(|error| format!("!{}", error.code), |_| "!422".to_owned())
            }
        }
    }

    #[test]
    fn patches_apply_as_the_api_applies_them() {
        for (table, strict) in [
            (include_str!("testdata/json.tsv"), true),
            (include_str!("testdata/json_lax.tsv"), false),
        ] {
            for line in table.lines() {
                let mut columns = line.splitn(3, '\t');
                let mut column = || columns.next().unwrap();
                let (document, patch, expected) = (column(), column(), column());
                assert_eq!(
                    patched(document, patch, strict),
                    expected,
                    "{document} {patch} {strict}"
                );
            }
        }
    }

    #[test]
    fn an_operation_that_fails_is_told() {
        let document = br#"{"a":[1,2],"b":{"c":"x"}}"#;
        for (operation, want) in [
            (
                r#""op":"add","path":"/x/y/z","value":1"#,
                "add operation does not apply: doc is missing path: \"/x/y/z\": missing value",
            ),
            (
                r#""op":"add","value":1"#,
                "add operation failed to decode path: missing value",
            ),
            (
                r#""op":"add","path":"/a/x""#,
                "error in add for path: '/a/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                r#""op":"add","path":"/a/4""#,
                "error in add for path: '/a/4': Unable to access invalid index: 4: invalid index referenced",
            ),
            (
                r#""op":"remove","path":"/b/d""#,
                "error in remove for path: '/b/d': Unable to remove nonexistent key: d: missing value",
            ),
            (
                r#""op":"remove","path":"/a/7""#,
                "error in remove for path: '/a/7': Unable to access invalid index: 7: invalid index referenced",
            ),
            (
                r#""op":"remove","path":"/z/d""#,
                "remove operation does not apply: doc is missing path: \"/z/d\": missing value",
            ),
            (
                r#""op":"replace","path":"/z/d","value":1"#,
                "replace operation does not apply: doc is missing path: /z/d: missing value",
            ),
            (
                r#""op":"replace","path":"/a/7","value":1"#,
                "replace operation does not apply: doc is missing key: /a/7: missing value",
            ),
            (
                r#""op":"replace","path":"","value":1"#,
                "replace operation value must be object or array: %!w(<nil>)",
            ),
            (
                r#""op":"test","path":"/b/c","value":"y""#,
                "testing value /b/c failed: test failed",
            ),
            (
                r#""op":"test","path":"/z/c","value":"y""#,
                "test operation does not apply: is missing path: /z/c: missing value",
            ),
            (
                r#""op":"move","path":"/b/c","from":"/z/y""#,
                "move operation does not apply: doc is missing from path: /z/y: missing value",
            ),
            (
                r#""op":"move","path":"/b/c","from":"/b/y""#,
                "error in move for path: 'y': Unable to remove nonexistent key: y: missing value",
            ),
            (
                r#""op":"move","path":"/z/c","from":"/b/c""#,
                "move operation does not apply: doc is missing destination path: /z/c: missing value",
            ),
            (
                r#""op":"copy","path":"/b/c""#,
                "copy operation failed to decode from: operation, missing from field: missing value",
            ),
            (
                r#""op":"copy","path":"/a/9","from":"/b/c""#,
                "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
            ),
            (r#""op":"swap","path":"/b/c""#, "Unexpected kind: swap"),
            (r#""path":"/b/c""#, "Unexpected kind: unknown"),
        ] {
            let body = format!("[{{{operation}}}]");
            let (patch, _) = JsonPatch::decode(body.as_bytes(), false).unwrap();
            assert_eq!(
                patch.apply_explained(document).unwrap_err().to_string(),
                want,
                "{operation}"
            );
        }
    }

    #[test]
    fn elements_that_are_moved_are_bounded() {
        let patch = |at: &str| {
            let one = format!(r#"{{"op":"add","path":"/a/{at}","value":1}}"#);
            format!("[{}]", vec![one; 1_000].join(","))
        };
        let document = format!(r#"{{"a":[{}]}}"#, vec!["0"; 100_000].join(","));
        for (at, ends) in [("-", None), ("0", Some(413)), ("99999", None)] {
            let patch = patch(at);
            let (patch, _) = JsonPatch::decode(patch.as_bytes(), true).unwrap();
            let done = patch.apply(document.as_bytes());
            assert_eq!(done.err().map(|error| error.code), ends, "{at}");
        }
    }

    #[test]
    fn the_number_of_operations_is_bounded() {
        let one = r#"{"op":"test","path":"/b"},"#;
        let patch = |n: usize| format!("[{}]", one.repeat(n).trim_end_matches(','));
        let most = patch(MAX_OPERATIONS);
        assert!(JsonPatch::decode(most.as_bytes(), true).is_ok());
        let more = patch(MAX_OPERATIONS + 1);
        let error = JsonPatch::decode(more.as_bytes(), true).unwrap_err();
        assert_eq!(error.code, 413);
        assert_eq!(
            error.message,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }
}
