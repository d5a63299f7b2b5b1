//! Places of an object that a client can make as large as a body, found through the field tables, and bodies in which
//! one of them is.

use keelson_machinery::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Type};
use keelson_machinery::scheme::KindDesc;

/// Messages within messages that are looked at.
const MAX_DEPTH: usize = 9;

/// A place: the fields that lead to it, the last of which grows.
#[derive(Clone)]
pub struct Place {
    pub kind: &'static KindDesc,
    fields: Vec<&'static FieldDesc>,
    /// The message that has the last field.
    pub owner: &'static str,
}

/// What grows there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Items or values without anything in them.
    Empty,
    /// Items in which each text and number has a small value, all different.
    Small,
    /// Items with values that no rule takes.
    Wrong,
    /// `null`, which counts as an item too.
    Null,
}

impl Shape {
    pub const ALL: [Shape; 4] = [Shape::Empty, Shape::Small, Shape::Wrong, Shape::Null];
}

/// All places of a kind, each field of each message once.
pub fn of_kind(kind: &'static KindDesc) -> Vec<Place> {
    let mut walk = Walk {
        kind,
        found: Vec::new(),
        seen: Vec::new(),
        path: Vec::new(),
    };
    walk.message(&kind.message);
    walk.found
}

struct Walk {
    kind: &'static KindDesc,
    found: Vec<Place>,
    /// Messages that were looked at.
    seen: Vec<&'static str>,
    path: Vec<&'static FieldDesc>,
}

impl Walk {
    fn message(&mut self, desc: &'static MessageDesc) {
        if self.path.len() > MAX_DEPTH || self.seen.contains(&desc.name.as_str()) {
            return;
        }
        self.seen.push(&desc.name);
        for field in &desc.fields {
            self.path.push(field);
            if grows(&field.ty) {
                self.found.push(Place {
                    kind: self.kind,
                    fields: self.path.clone(),
                    owner: &desc.name,
                });
            }
            if let Some(inner) = field.message() {
                self.message(inner);
            }
            self.path.pop();
        }
    }
}

fn grows(ty: &Type) -> bool {
    match ty {
        Type::String | Type::Bytes | Type::List(_) | Type::Map(_) | Type::Leaf(_) => true,
        Type::Bool | Type::Int32 | Type::Int64 | Type::Double | Type::Message(_) | Type::Any | Type::Untyped => false,
    }
}

impl Place {
    pub fn name(&self) -> String {
        let path: Vec<&str> = self.fields.iter().map(|field| field.json.as_str()).collect();
        format!("{}.{} {}", self.kind.version, self.kind.kind, path.join("."))
    }

    /// The last field's name, which with `owner` says what is the same in other kinds.
    pub fn field(&self) -> &'static str {
        self.fields.last().map_or("", |field| &field.json)
    }

    /// An object of the kind in which so many items, entries or characters are in this place, or as many as fit into
    /// `max` bytes.
    pub fn body(&self, shape: Shape, count: usize, max: usize) -> String {
        let api_version = match self.kind.group.as_str() {
            "" => self.kind.version.to_string(),
            group => format!("{group}/{}", self.kind.version),
        };
        let (open, close) = self.around();
        let metadata = match self.fields.first() {
            Some(first) if first.json == "metadata" => String::new(),
            _ => r#","metadata":{"name":"grown"}"#.to_owned(),
        };
        let mut out = format!(
            r#"{{"apiVersion":"{api_version}","kind":"{}"{metadata},{open}"#,
            self.kind.kind
        );
        let room = max.saturating_sub(out.len() + close.len() + 1);
        if let Some(last) = self.fields.last() {
            grown(&last.ty, shape, count, room, &mut out);
        }
        out.push_str(&close);
        out.push('}');
        out
    }

    /// The same in protobuf, for a place below messages and lists: two bytes an item where it can be empty. `None`: the
    /// way there has no numbers of its own.
    pub fn protobuf(&self, max: usize) -> Option<Vec<u8>> {
        let (last, above) = self.fields.split_last()?;
        let is_plain = |field: &FieldDesc| !field.flags.has(Flags::INLINE) && !matches!(field.ty, Type::Leaf(_));
        if !self.fields.iter().all(|field| is_plain(field)) {
            return None;
        }
        let room = max - 1024;
        let mut value = match last.ty {
            Type::List(_) | Type::Map(_) => [tag(last.number), vec![0]].concat().repeat(room / 4),
            _ => delimited(last.number, &vec![b'a'; room]),
        };
        for field in above.iter().rev() {
            value = match field.ty {
                // An entry of a map: its key is the empty text.
                Type::Map(_) => delimited(field.number, &delimited(2, &value)),
                _ => delimited(field.number, &value),
            };
        }
        let named = delimited(1, &delimited(1, b"grown"));
        let api_version = match self.kind.group.as_str() {
            "" => self.kind.version.to_string(),
            group => format!("{group}/{}", self.kind.version),
        };
        let types = [
            delimited(1, api_version.as_bytes()),
            delimited(2, self.kind.kind.as_bytes()),
        ]
        .concat();
        let raw = [named, value].concat();
        Some([b"k8s\0".to_vec(), delimited(1, &types), delimited(2, &raw)].concat())
    }

    /// What stands before and after the value.
    fn around(&self) -> (String, String) {
        let (mut open, mut close) = (String::new(), String::new());
        for (n, field) in self.fields.iter().enumerate() {
            let last = n + 1 == self.fields.len();
            // Fields of an inlined message stand in the object around it.
            if field.flags.has(Flags::INLINE) && !last {
                continue;
            }
            open.push_str(&format!("\"{}\":", field.json));
            if last {
                break;
            }
            if n == 0 && field.json == "metadata" {
                open.push_str("{\"name\":\"grown\",");
                close.insert(0, '}');
                continue;
            }
            enter(&field.ty, &mut open, &mut close);
        }
        (open, close)
    }
}

/// Opens lists, maps and messages down to the object of a message.
fn enter(ty: &Type, open: &mut String, close: &mut String) {
    match ty {
        Type::List(inner) => {
            open.push('[');
            close.insert(0, ']');
            enter(&inner.ty, open, close);
        }
        Type::Map(inner) => {
            open.push_str("{\"key\":");
            close.insert(0, '}');
            enter(&inner.ty, open, close);
        }
        _ => {
            open.push('{');
            close.insert(0, '}');
        }
    }
}

fn grown(ty: &Type, shape: Shape, count: usize, room: usize, out: &mut String) {
    let start = out.len();
    let (marks, keyed, inner) = match ty {
        Type::List(inner) => (['[', ']'], false, Some(&inner.ty)),
        Type::Map(inner) => (['{', '}'], true, Some(&inner.ty)),
        Type::Leaf(LeafKind::Raw | LeafKind::Union) => (['{', '}'], true, None),
        _ => {
            text(shape, count, room, out);
            return;
        }
    };
    out.push(marks[0]);
    let mut one = String::new();
    for n in 0..count {
        one.clear();
        if n > 0 {
            one.push(',');
        }
        if keyed {
            one.push_str(&format!("\"{n}\":"));
        }
        value(inner, shape, n, &mut one);
        if out.len() - start + one.len() + 1 > room {
            break;
        }
        out.push_str(&one);
    }
    out.push(marks[1]);
}

/// One long text.
fn text(shape: Shape, count: usize, room: usize, out: &mut String) {
    let unit = match shape {
        Shape::Empty => " ",
        Shape::Small => "a",
        Shape::Wrong => "!",
        Shape::Null => "\\u0001",
    };
    let units = count.min(room.saturating_sub(2) / unit.len());
    out.push('"');
    out.push_str(&unit.repeat(units));
    out.push('"');
}

fn value(ty: Option<&Type>, shape: Shape, n: usize, out: &mut String) {
    let Some(ty) = ty.filter(|_| shape != Shape::Null) else {
        out.push_str("null");
        return;
    };
    match (ty, shape) {
        (Type::Message(_), Shape::Empty) => out.push_str("{}"),
        (Type::Message(desc), _) => message(desc, shape, n, out),
        (Type::List(_), _) => out.push_str("[]"),
        (Type::Map(_), _) => out.push_str("{}"),
        (_, Shape::Empty) => scalar(ty, "\"\"", "0", out),
        (_, Shape::Small) => scalar(ty, &format!("\"a{n}\""), &n.to_string(), out),
        (_, _) => scalar(ty, "\"!\"", "-1", out),
    }
}

/// An object in which each plain field has a value.
fn message(desc: &MessageDesc, shape: Shape, n: usize, out: &mut String) {
    let plain = |field: &&FieldDesc| matches!(field.ty, Type::String | Type::Int32 | Type::Int64 | Type::Bool);
    out.push('{');
    for (place, field) in desc.fields.iter().filter(plain).take(4).enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push_str(&format!("\"{}\":", field.json));
        value(Some(&field.ty), shape, n, out);
    }
    out.push('}');
}

fn scalar(ty: &Type, text: &str, number: &str, out: &mut String) {
    out.push_str(match ty {
        Type::Bool => "true",
        Type::Int32 | Type::Int64 | Type::Double => number,
        Type::Leaf(LeafKind::Raw | LeafKind::Union) => "{}",
        Type::Leaf(LeafKind::Quantity) => "\"1\"",
        Type::Leaf(LeafKind::Time) => "\"2020-02-29T12:34:56Z\"",
        Type::Leaf(LeafKind::MicroTime) => "\"2020-02-29T12:34:56.000001Z\"",
        Type::Leaf(LeafKind::Duration) => "\"1s\"",
        Type::Bytes => "\"\"",
        _ => text,
    });
}

/// The tag of a length-delimited field.
fn tag(number: u32) -> Vec<u8> {
    varint((number << 3 | 2) as usize)
}

pub fn delimited(number: u32, value: &[u8]) -> Vec<u8> {
    [tag(number), varint(value.len()), value.to_vec()].concat()
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}
