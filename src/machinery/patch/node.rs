//! A JSON value that is opened only where somebody looks into it.

use std::collections::BTreeMap;

use super::scan;
use crate::field::text::{general_float, json_string};

/// A value of a document or a patch.
#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Null,
    /// Checked text, neither null nor surrounded by white space.
    Raw(&'a [u8]),
    Object(BTreeMap<String, Node<'a>>),
    Array(Vec<Node<'a>>),
}

impl<'a> Node<'a> {
    /// The node of checked text.
    pub(super) fn new(text: &'a [u8]) -> Node<'a> {
        match scan::trim(text) {
            b"null" => Node::Null,
            text => Node::Raw(text),
        }
    }

    /// Opens an object or array; scalars stay as they are.
    pub(super) fn open(&mut self) -> &mut Node<'a> {
        if let Node::Raw(text) = self {
            match text.first() {
                Some(b'{') => {
                    let members = scan::members(text).into_iter();
                    *self = Node::Object(members.map(|(k, v)| (k.into_owned(), Node::new(v))).collect());
                }
                Some(b'[') => *self = Node::Array(scan::elements(text).into_iter().map(Node::new).collect()),
                _ => {}
            }
        }
        self
    }

    /// The members, if this is an object.
    pub(super) fn object(&mut self) -> Option<&mut BTreeMap<String, Node<'a>>> {
        match self.open() {
            Node::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Whether both are the same value; scalars are compared as they are written.
    pub(super) fn equals(&mut self, other: &mut Node<'a>) -> bool {
        match (self.open(), other.open()) {
            (Node::Null, Node::Null) => true,
            (Node::Raw(a), Node::Raw(b)) => a == b,
            (Node::Object(a), Node::Object(b)) => {
                a.len() == b.len()
                    && a.iter_mut()
                        .zip(b.iter_mut())
                        .all(|((ka, va), (kb, vb))| ka == kb && va.equals(vb))
            }
            (Node::Array(a), Node::Array(b)) => {
                a.len() == b.len() && a.iter_mut().zip(b.iter_mut()).all(|(a, b)| a.equals(b))
            }
            _ => false,
        }
    }

    /// Appends the value as Go's `%v` prints a tree of them.
    pub(super) fn write_go(&mut self, out: &mut String) {
        match self.open() {
            Node::Null => out.push_str("<nil>"),
            Node::Raw(text) if text.first() == Some(&b'"') => out.push_str(&scan::string(text)),
            Node::Raw(text) => match std::str::from_utf8(text).unwrap_or_default() {
                word @ ("true" | "false") => out.push_str(word),
                number => match (number.parse::<i64>(), number.parse::<f64>()) {
                    (Err(_), Ok(n)) => out.push_str(&general_float(n)),
                    _ => out.push_str(number),
                },
            },
            Node::Object(members) => {
                out.push_str("map[");
                for (i, (key, value)) in members.iter_mut().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    out.push_str(key);
                    out.push(':');
                    value.write_go(out);
                }
                out.push(']');
            }
            Node::Array(elements) => {
                out.push('[');
                for (i, value) in elements.iter_mut().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    value.write_go(out);
                }
                out.push(']');
            }
        }
    }

    /// Appends the JSON text: without white space, `<`, `>` and `&` escaped, keys of opened objects sorted.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Node::Null => out.extend_from_slice(b"null"),
            Node::Raw(text) => write_compact(text, out),
            Node::Object(members) => {
                let mut key = String::new();
                out.push(b'{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    key.clear();
                    json_string(name, &mut key);
                    out.extend_from_slice(key.as_bytes());
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

fn write_compact(text: &[u8], out: &mut Vec<u8>) {
    let mut in_string = false;
    let mut at = 0;
    while let Some(&b) = text.get(at) {
        match b {
            b'\\' if in_string => {
                out.extend_from_slice(text.get(at..at + 2).unwrap_or_default());
                at += 1;
            }
            b'"' => {
                in_string = !in_string;
                out.push(b);
            }
            b' ' | b'\t' | b'\r' | b'\n' if !in_string => {}
            b'<' => out.extend_from_slice(br"\u003c"),
            b'>' => out.extend_from_slice(br"\u003e"),
            b'&' => out.extend_from_slice(br"\u0026"),
            0xe2 if text.get(at..at + 3) == Some(&[0xe2, 0x80, 0xa8]) => {
                out.extend_from_slice(br"\u2028");
                at += 2;
            }
            0xe2 if text.get(at..at + 3) == Some(&[0xe2, 0x80, 0xa9]) => {
                out.extend_from_slice(br"\u2029");
                at += 2;
            }
            b => out.push(b),
        }
        at += 1;
    }
}
