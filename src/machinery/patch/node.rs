//! A JSON value that is opened only where somebody looks into it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::text;
use crate::field::text::float;
use crate::json::compact;
use crate::json_text::{kind_name, write_string};

/// How deep values are opened by what goes down all of a value; what nests deeper stays text. No field of a definition
/// is that deep, and recursion stays shallow.
pub(super) const MAX_OPEN: u32 = 300;

/// A value of a document or a patch.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Null,
    /// Checked text, neither null nor surrounded by white space.
    Raw(&'a [u8]),
    Object(Members<'a>),
    Array(Vec<Node<'a>>),
    /// A string that stands in no document.
    Text(String),
}

pub(super) type Members<'a> = BTreeMap<String, Node<'a>>;

/// Adds members that are not there yet, in the order of their keys. Many are added at once, for one by one each looks
/// for its place; beside many that are there a few look for theirs, for what is added at once goes through all.
pub(super) fn add<'a>(members: &mut Members<'a>, fresh: Vec<(String, Node<'a>)>) {
    if fresh.len() < members.len() / 8 {
        members.extend(fresh);
    } else {
        members.append(&mut fresh.into_iter().collect());
    }
}

impl<'a> Node<'a> {
    /// The node of checked text.
    pub(super) fn new(text: &'a [u8]) -> Node<'a> {
        match text::trim(text) {
            b"null" => Node::Null,
            text => Node::Raw(text),
        }
    }

    /// Opens an object or array; scalars stay as they are.
    pub(super) fn open(&mut self) -> &mut Node<'a> {
        if let Node::Raw(text) = self {
            match text.first() {
                Some(b'{') => {
                    let members = text::members(text).into_iter();
                    *self = Node::Object(members.map(|(k, v)| (k.into_owned(), Node::new(v))).collect());
                }
                Some(b'[') => *self = Node::Array(text::elements(text, Node::new)),
                _ => {}
            }
        }
        self
    }

    /// Whether this is a scalar, or the text of a list of scalars alone: many of them need not be opened by what looks
    /// for objects.
    pub(super) fn is_flat(&self) -> bool {
        match self {
            Node::Raw(text) => match text {
                [b'{', ..] => false,
                [b'[', rest @ ..] => text::is_flat(rest),
                _ => true,
            },
            Node::Object(_) | Node::Array(_) => false,
            Node::Null | Node::Text(_) => true,
        }
    }

    /// What `look` finds in a member of an object, without a copy of what is open already.
    pub(super) fn member<R>(&self, key: &str, look: impl FnOnce(&Node<'a>) -> Option<R>) -> Option<R> {
        match self {
            Node::Object(members) => look(members.get(key)?),
            Node::Raw(text) => look(Node::Raw(text).object()?.get(key)?),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub(super) fn object(&mut self) -> Option<&mut Members<'a>> {
        match self.open() {
            Node::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The type that the value has in a tree of Go.
    pub(super) fn go_kind(&self) -> &'static str {
        match self {
            Node::Null => "nil",
            Node::Object(_) => "map",
            Node::Array(_) => "slice",
            Node::Text(_) => "string",
            Node::Raw(text) => match kind_name(text) {
                "object" => "map",
                "array" => "slice",
                "number" if is_whole(text) => "int64",
                "number" => "float64",
                other => other,
            },
        }
    }

    /// The content of a string.
    pub(super) fn string(&self) -> Option<String> {
        match self {
            Node::Raw(text) if text.first() == Some(&b'"') => Some(text::string(text).into_owned()),
            Node::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Whether both are the same value; scalars are compared as they are written, as is what nests very deep.
    pub(super) fn equals(&mut self, other: &mut Node<'a>) -> bool {
        self.equals_within(other, MAX_OPEN)
    }

    fn equals_within(&mut self, other: &mut Node<'a>, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return self.to_text() == other.to_text();
        };
        match (self.open(), other.open()) {
            (Node::Null, Node::Null) => true,
            (Node::Raw(a), Node::Raw(b)) => a == b,
            (Node::Object(a), Node::Object(b)) => {
                a.len() == b.len()
                    && a.iter_mut()
                        .zip(b.iter_mut())
                        .all(|((ka, va), (kb, vb))| ka == kb && va.equals_within(vb, depth))
            }
            (Node::Array(a), Node::Array(b)) => {
                a.len() == b.len() && a.iter_mut().zip(b.iter_mut()).all(|(a, b)| a.equals_within(b, depth))
            }
            _ => false,
        }
    }

    /// What is the same for equal values: their text without white space.
    pub(super) fn comparable(&self) -> Cow<'a, [u8]> {
        match self {
            Node::Raw(text) if !matches!(text.first(), Some(b'{' | b'[')) => Cow::Borrowed(text),
            node => {
                let mut node = node.clone();
                node.open_within(MAX_OPEN);
                Cow::Owned(node.to_text())
            }
        }
    }

    /// Opens all of it; what nests deeper stays text.
    fn open_within(&mut self, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match self.open() {
            Node::Object(members) => members.values_mut().for_each(|value| value.open_within(depth)),
            Node::Array(elements) => elements.iter_mut().for_each(|value| value.open_within(depth)),
            _ => {}
        }
    }

    /// Drops the members that are null, also in objects within lists.
    pub(super) fn prune(&mut self) {
        self.prune_within(MAX_OPEN);
    }

    fn prune_within(&mut self, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if self.is_flat() {
            return;
        }
        match self.open() {
            Node::Object(members) => {
                members.retain(|_, value| !matches!(value, Node::Null));
                members.values_mut().for_each(|value| value.prune_within(depth));
            }
            Node::Array(elements) => elements.iter_mut().for_each(|value| value.prune_within(depth)),
            _ => {}
        }
    }

    fn to_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// The value as Go's `%v` prints a tree of them.
    pub(super) fn to_go(&self) -> String {
        let mut out = String::new();
        self.clone().write_go(MAX_OPEN, &mut out);
        out
    }

    fn write_go(&mut self, depth: u32, out: &mut String) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match self.open() {
            Node::Null => out.push_str("<nil>"),
            Node::Raw(text) if text.first() == Some(&b'"') => out.push_str(&text::string(text)),
            Node::Raw(text) => out.push_str(&go_scalar(text)),
            Node::Text(text) => out.push_str(text),
            Node::Object(members) => {
                out.push_str("map[");
                for (i, (key, value)) in members.iter_mut().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    out.push_str(key);
                    out.push(':');
                    value.write_go(depth, out);
                }
                out.push(']');
            }
            Node::Array(elements) => {
                out.push('[');
                for (i, value) in elements.iter_mut().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    value.write_go(depth, out);
                }
                out.push(']');
            }
        }
    }

    /// Appends the JSON text: without white space, `<`, `>` and `&` escaped, keys of opened objects sorted.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Node::Null => out.extend_from_slice(b"null"),
            Node::Raw(text) => compact(text, out),
            Node::Text(text) => write_string(text, out),
            Node::Object(members) => {
                out.push(b'{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    write_string(name, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
            Node::Array(elements) => {
                out.push(b'[');
                for (i, value) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    value.write(out);
                }
                out.push(b']');
            }
        }
    }
}

fn is_whole(number: &[u8]) -> bool {
    std::str::from_utf8(number).is_ok_and(|n| n.parse::<i64>().is_ok())
}

/// A number or a word.
fn go_scalar(text: &[u8]) -> String {
    let text = std::str::from_utf8(text).unwrap_or_default();
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Err(_), Ok(n)) => float(n),
        _ => text.to_owned(),
    }
}
