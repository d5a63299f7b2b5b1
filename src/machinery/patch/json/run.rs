//! The run of a JSON patch over a document: what each operation does, and in which words it fails.

use std::collections::BTreeMap;

use super::{MAX_MOVED_ELEMENTS, Operation};
use crate::patch::node::Node;

/// Most parts of one path. No value that is really there is so deep, and what a path opens is worked on recursively.
const MAX_PATH_PARTS: usize = 300;
/// What kube-apiserver's errors end with.
const MISSING: &str = "missing value";
const INVALID_INDEX: &str = "invalid index referenced";

/// Why an operation fails, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperationError {
    /// The value at this path is another one than the operation `test` wants.
    #[error("testing value {0} failed: test failed")]
    Test(String),
    /// It moves too many elements of lists, with the operations before it.
    #[error("the operations of a JSON patch may move {MAX_MOVED_ELEMENTS} elements of lists in all")]
    Moves,
    /// It can't be done; the text says why.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for OperationError {
    fn from(why: String) -> OperationError {
        OperationError::Failed(why)
    }
}

/// What a part of an operation comes to. The error is the text of [`OperationError::Failed`].
type Done<T> = Result<T, String>;

/// A document while it is patched.
pub(super) struct Run<'a> {
    root: Node<'a>,
    /// What copies may still add.
    copy_bytes: usize,
    most_copy_bytes: usize,
    /// Elements that may still be moved.
    moves: usize,
}

/// Where a path leads: an object or a list, and a key in it.
enum Place<'n, 'a> {
    Object(&'n mut BTreeMap<String, Node<'a>>, String),
    Array(&'n mut Vec<Node<'a>>, String),
}

/// The path of an operation.
fn path<'b>(operation: &'b Operation<'_>, verb: &str) -> Done<&'b str> {
    let path = operation.path.as_deref();
    path.ok_or_else(|| match verb {
        // So the library of kube-apiserver words it.
        "add" | "remove" | "copy" => format!("{verb} operation failed to decode path: {MISSING}"),
        _ => format!("{verb} operation failed to decode path: operation missing path field: {MISSING}"),
    })
}

/// Where an operation takes from.
fn from<'b>(operation: &'b Operation<'_>, verb: &str) -> Done<&'b str> {
    let missing = || format!("{verb} operation failed to decode from: operation, missing from field: {MISSING}");
    operation.from.as_deref().ok_or_else(missing)
}

impl<'a> Run<'a> {
    /// Of a JSON object. Copies may add so many bytes.
    pub fn new(document: &'a [u8], copy_bytes: usize) -> Run<'a> {
        let mut root = Node::new(document);
        root.open();
        Run {
            root,
            copy_bytes,
            most_copy_bytes: copy_bytes,
            moves: MAX_MOVED_ELEMENTS,
        }
    }

    /// Appends what the document has become.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.root.write(out);
    }

    /// Does one operation.
    pub fn step<'p: 'a>(&mut self, operation: &Operation<'p>) -> Result<(), OperationError> {
        self.count_moves(operation)?;
        let done = match operation.op.as_deref() {
            Some("add") => self.add(operation),
            Some("remove") => self.remove(operation),
            Some("replace") => self.replace(operation),
            Some("move") => self.relocate(operation),
            Some("copy") => self.copy(operation),
            Some("test") => return self.test(operation),
            other => Err(format!("Unexpected kind: {}", other.unwrap_or("unknown"))),
        };
        Ok(done?)
    }

    /// Counts the elements that move because of the operation, where it is one that can be done.
    fn count_moves(&mut self, operation: &Operation<'_>) -> Result<(), OperationError> {
        let (comes, goes) = match operation.op.as_deref() {
            Some("add" | "copy") => (operation.path.as_deref(), None),
            Some("remove") => (None, operation.path.as_deref()),
            Some("move") => (operation.path.as_deref(), operation.from.as_deref()),
            _ => (None, None),
        };
        for path in [comes, goes].into_iter().flatten() {
            if let Some(Place::Array(elements, key)) = self.place(path)
                && let Ok(at) = index(&key, elements.len() + 1)
            {
                let behind = elements.len() - at;
                self.moves = self.moves.checked_sub(behind).ok_or(OperationError::Moves)?;
            }
        }
        Ok(())
    }

    fn add<'p: 'a>(&mut self, operation: &Operation<'p>) -> Done<()> {
        let path = path(operation, "add")?;
        let missing = || format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}");
        let place = self.place(path).ok_or_else(missing)?;
        let added = place.add(operation.value());
        added.map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(&mut self, operation: &Operation<'_>) -> Done<()> {
        let path = path(operation, "remove")?;
        let missing = || format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}");
        let place = self.place(path).ok_or_else(missing)?;
        let removed = place.remove().map(drop);
        removed.map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace<'p: 'a>(&mut self, operation: &Operation<'p>) -> Done<()> {
        let path = path(operation, "replace")?;
        if path.is_empty() {
            return self.replace_all(operation.value());
        }
        let missing = |what| format!("replace operation does not apply: doc is missing {what}: {path}: {MISSING}");
        let place = self.place(path).ok_or_else(|| missing("path"))?;
        place.replace(operation.value()).map_err(|_| missing("key"))
    }

    fn replace_all(&mut self, mut value: Node<'a>) -> Done<()> {
        match value.open() {
            Node::Object(_) | Node::Array(_) => {
                self.root = value;
                Ok(())
            }
            // It shows an error that it has not got.
            _ => Err("replace operation value must be object or array: %!w(<nil>)".to_owned()),
        }
    }

    fn relocate(&mut self, operation: &Operation<'_>) -> Done<()> {
        let from = from(operation, "move")?;
        let missing = || format!("move operation does not apply: doc is missing from path: {from}: {MISSING}");
        let place = self.place(from).ok_or_else(missing)?;
        let key = place.key().to_owned();
        let moved = place
            .remove()
            .map_err(|why| format!("error in move for path: '{key}': {why}"))?;
        let path = path(operation, "move")?;
        let missing = || format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}");
        let place = self.place(path).ok_or_else(missing)?;
        let added = place.add(moved);
        added.map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    fn copy(&mut self, operation: &Operation<'_>) -> Done<()> {
        let from = from(operation, "copy")?;
        let missing =
            |what, path| format!("copy operation does not apply: doc is missing {what} path: {path}: {MISSING}");
        let no_source = || missing("from", from);
        let found = self.place(from).ok_or_else(no_source)?.get();
        found.map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
        let path = path(operation, "copy")?;
        let no_target = || missing("destination", path);
        // Opens what the copy goes into, which may be what is copied: opened objects have sorted keys.
        self.place(path).ok_or_else(no_target)?;
        let source = self.place(from).ok_or_else(no_source)?.get()?;
        let copy = source.cloned().unwrap_or(Node::Null);
        let mut text = Vec::new();
        copy.write(&mut text);
        let left = self.copy_bytes.checked_sub(text.len());
        self.copy_bytes = left.ok_or_else(|| self.too_much(text.len()))?;
        let place = self.place(path).ok_or_else(no_target)?;
        let added = place.add(copy);
        added.map_err(|why| format!("error while adding value during copy: {why}"))
    }

    fn too_much(&self, more: usize) -> String {
        let most = self.most_copy_bytes;
        format!(
            "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {most}",
            most - self.copy_bytes + more
        )
    }

    fn test<'p: 'a>(&mut self, operation: &Operation<'p>) -> Result<(), OperationError> {
        let path = path(operation, "test")?;
        let mut expected = operation.value();
        let same = if path.is_empty() {
            self.root.equals(&mut expected)
        } else {
            let missing = || format!("test operation does not apply: is missing path: {path}: {MISSING}");
            let found = self.place(path).ok_or_else(missing)?.get();
            match found.map_err(|why| format!("error in test for path: '{path}': {why}"))? {
                Some(value) => value.equals(&mut expected),
                None => matches!(expected, Node::Null),
            }
        };
        match same {
            true => Ok(()),
            false => Err(OperationError::Test(path.to_owned())),
        }
    }

    /// Walks to the object or list that holds the last part of the path; `None`: there is none.
    fn place(&mut self, path: &str) -> Option<Place<'_, 'a>> {
        if path.bytes().filter(|b| *b == b'/').count() > MAX_PATH_PARTS {
            return None;
        }
        let mut parts = path
            .split('/')
            .skip(1)
            .map(|part| part.replace("~1", "/").replace("~0", "~"));
        let mut key = parts.next()?;
        let mut node = &mut self.root;
        for next in parts {
            let part = std::mem::replace(&mut key, next);
            node = match node.open() {
                Node::Object(members) => members.get_mut(&part),
                Node::Array(elements) => {
                    let at = index(&part, elements.len()).ok()?;
                    elements.get_mut(at)
                }
                _ => None,
            }?;
        }
        match node.open() {
            Node::Object(members) => Some(Place::Object(members, key)),
            Node::Array(elements) => Some(Place::Array(elements, key)),
            _ => None,
        }
    }
}

/// An index below `length`; negative ones count from the end.
fn index(text: &str, length: usize) -> Done<usize> {
    let unreadable = |why: std::num::ParseIntError| {
        let why = match why.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {text:?}: {why}")
    };
    let given: i64 = text.parse().map_err(unreadable)?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let index = if given < 0 { given.saturating_add(length) } else { given };
    let invalid = || format!("Unable to access invalid index: {given}: {INVALID_INDEX}");
    let index = usize::try_from(index).ok().filter(|_| index < length);
    index.ok_or_else(invalid)
}

impl<'n, 'a> Place<'n, 'a> {
    fn key(&self) -> &str {
        match self {
            Place::Object(_, key) | Place::Array(_, key) => key,
        }
    }

    /// The value; `None` for a member that is absent.
    fn get(self) -> Done<Option<&'n mut Node<'a>>> {
        match self {
            Place::Object(members, key) => Ok(members.get_mut(&key)),
            Place::Array(elements, key) => {
                let at = index(&key, elements.len())?;
                Ok(elements.get_mut(at))
            }
        }
    }

    fn add(self, value: Node<'a>) -> Done<()> {
        match self {
            Place::Object(members, key) => {
                members.insert(key, value);
            }
            Place::Array(elements, key) if key == "-" => elements.push(value),
            Place::Array(elements, key) => {
                let improper = |why: String| match why.starts_with("strconv") {
                    true => format!("value was not a proper array index: '{key}': {why}"),
                    false => why,
                };
                let at = index(&key, elements.len() + 1).map_err(improper)?;
                elements.insert(at, value);
            }
        }
        Ok(())
    }

    fn replace(self, value: Node<'a>) -> Done<()> {
        match self {
            Place::Object(members, key) => {
                members.insert(key, value);
                Ok(())
            }
            array => array.get()?.map(|old| *old = value).ok_or_else(String::new),
        }
    }

    fn remove(self) -> Done<Node<'a>> {
        match self {
            Place::Object(members, key) => {
                let missing = || format!("Unable to remove nonexistent key: {key}: {MISSING}");
                members.remove(&key).ok_or_else(missing)
            }
            Place::Array(elements, key) => Ok(elements.remove(index(&key, elements.len())?)),
        }
    }
}
