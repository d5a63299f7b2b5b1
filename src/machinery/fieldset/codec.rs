//! FieldsV1: the JSON form of a set of fields.
//!
//! A level is an object whose keys are elements: `f:name` for a field, `k:{"name":"c"}` for a list item by its keys,
//! `v:"x"` for an item of a set, `i:3` for a place. `.` says that the path to this level is in the set; the empty
//! object says that and that nothing is below. Keys stand in the order of the elements.

use super::{Entry, FieldSet, KeyField, Name, PathElement, Scalar};
use crate::json::{self, Cursor, Scanner, Shape, compact, parse_shape};
use crate::json_text as text;

/// How deep a set may nest. No kind comes near it; custom resources may.
pub(super) const MAX_DEPTH: usize = 200;

/// Why a text is no set of fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(&'static str);

const NOT_JSON: FieldsError = FieldsError("the fields are not valid JSON");

impl FieldSet {
    /// Reads FieldsV1. Keys of an unknown kind are passed over, as those of a later version.
    pub fn read(json: &[u8]) -> Result<FieldSet, FieldsError> {
        let mut scan = Scanner::new(json);
        let read = read_level(&mut scan, 0).and_then(|(_, set)| match scan.end() {
            Ok(()) => Ok(set),
            Err(_) => Err(NOT_JSON),
        });
        // A mistake in the JSON goes before all others, wherever it is.
        read.map_err(|error| json::validate(json).map_or(NOT_JSON, |()| error))
    }

    /// Appends FieldsV1.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_without(&FieldSet::EMPTY, &FieldSet::EMPTY, out);
    }

    /// Appends FieldsV1 of `self.recursive_difference(below).difference(exact)`, without a copy of what stays whole.
    pub(crate) fn write_without(&self, below: &FieldSet, exact: &FieldSet, out: &mut Vec<u8>) {
        let (mut first, mut scratch) = (true, Vec::new());
        out.push(b'{');
        for entry in &self.entries {
            if below.get(&entry.element).is_none() && exact.get(&entry.element).is_none() {
                write_entries(std::slice::from_ref(entry), &mut first, &mut scratch, out);
                continue;
            }
            let only = FieldSet {
                entries: vec![entry.clone()],
            };
            let rest = only.recursive_difference(below).difference(exact);
            write_entries(&rest.entries, &mut first, &mut scratch, out);
        }
        out.push(b'}');
    }
}

/// `scratch` is for JSON within JSON.
fn write_entries(entries: &[Entry], first: &mut bool, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    for entry in entries {
        if !std::mem::take(first) {
            out.push(b',');
        }
        write_element(&entry.element, scratch, out);
        out.extend_from_slice(b":{");
        if !entry.children.is_empty() {
            if entry.member {
                out.extend_from_slice(b"\".\":{}");
            }
            write_entries(&entry.children.entries, &mut !entry.member, scratch, out);
        }
        out.push(b'}');
    }
}

/// Appends the key of the element of a named field, with its quotes.
pub(crate) fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"f:");
    write_rest(name, out);
}

/// Appends the key of an element, with its quotes.
pub(crate) fn write_element(element: &PathElement, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    match element {
        PathElement::Field(name) => return write_name(name, out),
        PathElement::Key(fields)
            if let [(name, Scalar::Str(value))] = &**fields
                && name.bytes().chain(value.bytes()).all(is_plain) =>
        {
            for part in [r#""k:{\""#, name, r#"\":\""#, value, r#"\"}""#] {
                out.extend_from_slice(part.as_bytes());
            }
            return;
        }
        PathElement::Key(fields) => {
            scratch.extend_from_slice(b"k:{");
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    scratch.push(b',');
                }
                text::write_string(name, scratch);
                scratch.push(b':');
                value.write_json(scratch);
            }
            scratch.push(b'}');
        }
        PathElement::Value(value) => {
            scratch.extend_from_slice(b"v:");
            value.write_json(scratch);
        }
        PathElement::Index(index) => {
            scratch.extend_from_slice(b"i:");
            json::write_int(*index, scratch);
        }
    }
    out.push(b'"');
    write_rest(&String::from_utf8_lossy(scratch), out);
}

/// Appends the rest of a string whose quote stands already.
fn write_rest(rest: &str, out: &mut Vec<u8>) {
    if rest.bytes().all(is_plain) {
        out.extend_from_slice(rest.as_bytes());
        return out.push(b'"');
    }
    let start = out.len();
    text::write_string(rest, out);
    out.remove(start);
}

/// Whether the byte stands in JSON as it is.
pub(super) fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&')
}

/// The object at hand: whether the path to it is in the set, and what is below.
fn read_level(scan: &mut Scanner<'_>, depth: usize) -> Result<(bool, FieldSet), FieldsError> {
    if depth == MAX_DEPTH {
        return Err(FieldsError("the fields nest too deep"));
    }
    if scan.peek() != Some(b'{') {
        return Err(FieldsError("a level of the fields is not an object"));
    }
    scan.pos += 1;
    if scan.peek() == Some(b'}') {
        scan.pos += 1;
        return Ok((true, FieldSet::EMPTY));
    }
    let (mut member, mut entries) = (false, Vec::new());
    loop {
        let key = scan.key().map_err(|_| NOT_JSON)?.decode();
        let (below, children) = read_level(scan, depth + 1)?;
        if key == "." {
            member = true;
        } else if let Some(element) = read_element(&key)? {
            entries.push(Entry {
                element,
                member: below,
                children,
            });
        }
        match scan.peek() {
            Some(b',') => scan.pos += 1,
            Some(b'}') => break,
            _ => return Err(NOT_JSON),
        }
    }
    scan.pos += 1;
    Ok((member, in_order(entries)))
}

/// The entries of a level; those of one element are joined.
fn in_order(mut entries: Vec<Entry>) -> FieldSet {
    entries.retain(|e| !e.is_empty());
    if entries.is_sorted_by(|a, b| a.element < b.element) {
        return FieldSet { entries };
    }
    entries.sort_by(|a, b| a.element.cmp(&b.element));
    entries.dedup_by(|next, kept| {
        let same = next.element == kept.element;
        if same {
            kept.member |= next.member;
            let (one, other) = (&mut kept.children, &mut next.children);
            *one = std::mem::take(one).union(std::mem::take(other));
        }
        same
    });
    FieldSet { entries }
}

pub(super) fn read_element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let Some((kind, rest)) = key.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
        return Err(FieldsError("a key of the fields has no type"));
    };
    Ok(match kind {
        "f" => Some(PathElement::Field(rest.into())),
        "k" => Some(PathElement::Key(read_keys(rest)?)),
        "v" => Some(PathElement::Value(read_scalar(rest.as_bytes())?)),
        "i" => {
            let index = rest.parse().map_err(|_| FieldsError("an index is not a number"))?;
            Some(PathElement::Index(index))
        }
        _ => None,
    })
}

fn read_keys(json: &str) -> Result<Box<[KeyField]>, FieldsError> {
    if let Some(only) = read_only_key(json) {
        return Ok(Box::new([only]));
    }
    json::validate(json.as_bytes()).map_err(|_| FieldsError("a key is not valid JSON"))?;
    let mut cursor = Cursor::new(json.as_bytes());
    if cursor.peek() != Some(b'{') {
        return Err(FieldsError("a key is not an object"));
    }
    cursor.open();
    // Most items are known by one field.
    let mut fields = Vec::with_capacity(1);
    while cursor.more() {
        let name = Name::from(cursor.key().decode());
        cursor.peek();
        fields.push((name, scalar(cursor.skip())?));
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(fields.into())
}

/// Of `{"name":"text"}`, as most keys are: a name and a text without escapes, and no white space. `None`: anything
/// else.
fn read_only_key(json: &str) -> Option<KeyField> {
    let (name, value) = json.strip_prefix("{\"")?.strip_suffix("\"}")?.split_once("\":\"")?;
    let plain = |text: &str| text.bytes().all(is_plain);
    (plain(name) && plain(value)).then(|| (Name::from(name), Scalar::Str(Name::from(value))))
}

fn read_scalar(json: &[u8]) -> Result<Scalar, FieldsError> {
    json::validate(json).map_err(|_| FieldsError("a value is not valid JSON"))?;
    scalar(json)
}

/// The scalar that valid JSON text says.
fn scalar(json: &[u8]) -> Result<Scalar, FieldsError> {
    let shape = parse_shape(json).map_err(|_| FieldsError("a value is not valid JSON"))?;
    Ok(match shape {
        Shape::String(text) => Scalar::Str(text.decode().into()),
        Shape::Number(digits) => match digits.parse() {
            Ok(n) => Scalar::Int(n),
            Err(_) => Scalar::Double(digits.parse().map_err(|_| FieldsError("a number is out of range"))?),
        },
        Shape::Literal("null") => Scalar::Null,
        Shape::Literal(word) => Scalar::Bool(word == "true"),
        Shape::Object(_) | Shape::Array(_) => {
            let mut text = Vec::with_capacity(json.len());
            compact(json, &mut text);
            Scalar::Json(String::from_utf8_lossy(&text).into())
        }
    })
}
