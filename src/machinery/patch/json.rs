//! JSON patch (RFC 6902), with the corner cases of the Kubernetes API: indexes may be negative, `replace` adds an absent
//! member, an absent `value` is null, `test` takes an absent member for null, numbers are compared as they are
//! written, and what stands before the first slash of a path is ignored.

use std::collections::{BTreeMap, BTreeSet};

use super::node::Node;
use super::{check, decode_error, strict, text};
use crate::status::StatusError;

/// Most operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// Most parts of one path. No value that is really there is so deep, and what a path opens is worked on recursively.
const MAX_PATH_PARTS: usize = 300;
/// Most bytes that the `copy` operations of one patch may add.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

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

/// An operation that failed. The caller learns no more than that one did.
struct Failed;

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
        check(body).map_err(|e| fail(&e))?;
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
            "array" => text::elements(body),
            "null" => Vec::new(),
            _ => return Err(mismatch(body, list)),
        };
        let mut problems = strict::Problems::default();
        let mut operations = Vec::with_capacity(items.len().min(MAX_OPERATIONS));
        for (i, item) in items.iter().enumerate() {
            match strict::kind(item) {
                "object" if strict => {
                    check_types(item).map_err(|e| fail(&e))?;
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
    /// Error: 422 if one of them fails, always in the same words.
    pub fn apply(&self, document: &[u8]) -> Result<Vec<u8>, StatusError> {
        self.apply_within(document, MAX_COPY_BYTES)
    }

    fn apply_within(&self, document: &[u8], copy_bytes: usize) -> Result<Vec<u8>, StatusError> {
        check(document).map_err(StatusError::unknown)?;
        let mut run = Run {
            root: Node::new(document),
            copy_bytes,
        };
        run.root.open();
        for operation in &self.operations {
            run.step(operation).map_err(|Failed| StatusError::generic(422, ""))?;
        }
        let mut out = Vec::with_capacity(document.len());
        run.root.write(&mut out);
        Ok(out)
    }
}

/// The members of an operation that are strings.
const TEXT_MEMBERS: [&str; 3] = ["op", "path", "from"];

fn check_types(item: &[u8]) -> Result<(), String> {
    for (key, value) in text::members(item) {
        let kind = strict::kind(value);
        if TEXT_MEMBERS.contains(&&*key) && !matches!(kind, "string" | "null") {
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{key} of type string"
            ));
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

/// A document while it is patched.
struct Run<'a> {
    root: Node<'a>,
    copy_bytes: usize,
}

/// Where a path leads: an object or a list, and a key in it.
enum Place<'n, 'a> {
    Object(&'n mut BTreeMap<String, Node<'a>>, String),
    Array(&'n mut Vec<Node<'a>>, String),
}

impl<'a> Run<'a> {
    fn step<'p: 'a>(&mut self, operation: &Operation<'p>) -> Result<(), Failed> {
        let path = operation.path.as_deref().ok_or(Failed)?;
        match operation.op.as_deref() {
            Some("add") => self.place(path)?.add(operation.value()),
            Some("remove") => self.place(path)?.remove().map(drop),
            Some("replace") if path.is_empty() => self.replace_all(operation.value()),
            Some("replace") => self.place(path)?.replace(operation.value()),
            Some("move") => {
                let moved = self.place(operation.from.as_deref().ok_or(Failed)?)?.remove()?;
                self.place(path)?.add(moved)
            }
            Some("copy") => {
                let from = operation.from.as_deref().ok_or(Failed)?;
                self.place(from)?.get()?;
                // Opens what the copy goes into, which may be what is copied: opened objects have sorted keys.
                self.place(path)?;
                let copy = self.place(from)?.get()?.cloned().unwrap_or(Node::Null);
                let mut text = Vec::new();
                copy.write(&mut text);
                self.copy_bytes = self.copy_bytes.checked_sub(text.len()).ok_or(Failed)?;
                self.place(path)?.add(copy)
            }
            Some("test") => self.test(path, operation),
            _ => Err(Failed),
        }
    }

    fn replace_all(&mut self, mut value: Node<'a>) -> Result<(), Failed> {
        match value.open() {
            Node::Object(_) | Node::Array(_) => {
                self.root = value;
                Ok(())
            }
            _ => Err(Failed),
        }
    }

    fn test<'p: 'a>(&mut self, path: &str, operation: &Operation<'p>) -> Result<(), Failed> {
        let mut expected = operation.value();
        let same = if path.is_empty() {
            self.root.equals(&mut expected)
        } else {
            match self.place(path)?.get()? {
                Some(value) => value.equals(&mut expected),
                None => matches!(expected, Node::Null),
            }
        };
        if same { Ok(()) } else { Err(Failed) }
    }

    /// Walks to the object or list that holds the last part of the path.
    fn place(&mut self, path: &str) -> Result<Place<'_, 'a>, Failed> {
        if path.bytes().filter(|b| *b == b'/').count() > MAX_PATH_PARTS {
            return Err(Failed);
        }
        let mut parts = path
            .split('/')
            .skip(1)
            .map(|part| part.replace("~1", "/").replace("~0", "~"));
        let mut key = parts.next().ok_or(Failed)?;
        let mut node = &mut self.root;
        for next in parts {
            let part = std::mem::replace(&mut key, next);
            node = match node.open() {
                Node::Object(members) => members.get_mut(&part),
                Node::Array(elements) => {
                    let at = index(&part, elements.len())?;
                    elements.get_mut(at)
                }
                _ => None,
            }
            .ok_or(Failed)?;
        }
        match node.open() {
            Node::Object(members) => Ok(Place::Object(members, key)),
            Node::Array(elements) => Ok(Place::Array(elements, key)),
            _ => Err(Failed),
        }
    }
}

/// An index below `length`; negative ones count from the end.
fn index(text: &str, length: usize) -> Result<usize, Failed> {
    let index: i64 = text.parse().map_err(|_| Failed)?;
    let length = i64::try_from(length).map_err(|_| Failed)?;
    let index = if index < 0 {
        index.checked_add(length).ok_or(Failed)?
    } else {
        index
    };
    if index >= length {
        return Err(Failed);
    }
    usize::try_from(index).map_err(|_| Failed)
}

impl<'n, 'a> Place<'n, 'a> {
    /// The value; `None` for a member that is absent.
    fn get(self) -> Result<Option<&'n mut Node<'a>>, Failed> {
        match self {
            Place::Object(members, key) => Ok(members.get_mut(&key)),
            Place::Array(elements, key) => {
                let at = index(&key, elements.len())?;
                Ok(elements.get_mut(at))
            }
        }
    }

    fn add(self, value: Node<'a>) -> Result<(), Failed> {
        match self {
            Place::Object(members, key) => {
                members.insert(key, value);
            }
            Place::Array(elements, key) if key == "-" => elements.push(value),
            Place::Array(elements, key) => elements.insert(index(&key, elements.len() + 1)?, value),
        }
        Ok(())
    }

    fn replace(self, value: Node<'a>) -> Result<(), Failed> {
        match self {
            Place::Object(members, key) => {
                members.insert(key, value);
                Ok(())
            }
            array => array.get()?.map(|old| *old = value).ok_or(Failed),
        }
    }

    fn remove(self) -> Result<Node<'a>, Failed> {
        match self {
            Place::Object(members, key) => members.remove(&key).ok_or(Failed),
            Place::Array(elements, key) => Ok(elements.remove(index(&key, elements.len())?)),
        }
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
            Err(error) => {
                assert_eq!(
                    error.message,
                    "the server rejected our request due to an error in our request"
                );
                format!("!{}", error.code)
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
