//! Types of messages and fields: what `self` is in the validation rules of a definition or schema.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Type;
use crate::meta::v1::ObjectMeta;
use crate::reflect::{self, FieldDesc, Flags, LeafKind, MessageDesc};

/// Names that are words of the language.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// What can't stand in an identifier, and how it is written in one.
const ESCAPES: [(&str, &str); 4] = [
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
];

impl Type {
    /// The type of a message: an object with the fields that rules may name. Of metadata these are `name` and
    /// `generateName`.
    pub fn of_message(desc: &MessageDesc) -> Type {
        Types::default().message(desc)
    }

    /// The type of a field's value.
    pub fn of_field(field: &FieldDesc) -> Type {
        Types::default().field(field)
    }
}

/// Types that were made on the way; a message that leads back to itself is any value there.
#[derive(Default)]
struct Types {
    known: HashMap<u64, Type>,
}

impl Types {
    fn message(&mut self, desc: &MessageDesc) -> Type {
        let id = desc.id.get();
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        self.known.insert(id, Type::Dyn);
        let mut fields = Vec::new();
        if desc.gvk.is_some() {
            fields.extend(["apiVersion", "kind"].map(|name| (Cow::Borrowed(name), Type::String)));
        }
        self.fields(desc, &mut fields);
        let fields = fields.iter().map(|(name, ty)| (&**name, ty.clone()));
        let ty = Type::object(&desc.name, fields);
        self.known.insert(id, ty.clone());
        ty
    }

    fn fields<'a>(&mut self, desc: &'a MessageDesc, fields: &mut Vec<(Cow<'a, str>, Type)>) {
        let metadata = desc.id.get() == ObjectMeta::message_desc().id.get();
        for field in desc.fields.iter() {
            if metadata && !matches!(field.json.as_str(), "name" | "generateName") {
                continue;
            }
            match &field.ty {
                reflect::Type::Message(inner) if field.flags.has(Flags::INLINE) => self.fields(inner, fields),
                _ => fields.extend(escape(&field.json).map(|name| (name, self.field(field)))),
            }
        }
    }

    fn field(&mut self, field: &FieldDesc) -> Type {
        match &field.ty {
            reflect::Type::Bool => Type::Bool,
            reflect::Type::Int32 | reflect::Type::Int64 => Type::Int,
            reflect::Type::Double => Type::Double,
            reflect::Type::String => match field.rules.format.as_str() {
                "date-time" | "date" => Type::Timestamp,
                "duration" => Type::Duration,
                "byte" => Type::Bytes,
                _ => Type::String,
            },
            reflect::Type::Bytes => Type::Bytes,
            reflect::Type::Message(desc) => self.message(desc),
            reflect::Type::Leaf(LeafKind::Time | LeafKind::MicroTime) => Type::Timestamp,
            reflect::Type::Leaf(LeafKind::Quantity | LeafKind::Duration) => Type::String,
            reflect::Type::Leaf(_) | reflect::Type::Any | reflect::Type::Untyped => Type::Dyn,
            reflect::Type::List(element) => Type::list(self.field(element)),
            reflect::Type::Map(element) => Type::map(Type::String, self.field(element)),
        }
    }
}

/// Whether this is a word of the language, which can be no name.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The identifier of a field; `None`: no rule can name it.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    let first = name.bytes().next()?;
    let spelt = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/');
    if first.is_ascii_digit() || !name.bytes().all(spelt) {
        return None;
    }
    if is_reserved(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if !ESCAPES.iter().any(|(plain, _)| name.contains(plain)) {
        return Some(Cow::Borrowed(name));
    }
    let (mut out, mut rest) = (String::new(), name);
    while let Some(next) = rest.chars().next() {
        let escape = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain));
        let (taken, written) = match escape {
            Some((plain, written)) => (plain.len(), *written),
            None => (next.len_utf8(), ""),
        };
        let (head, tail) = rest.split_at(taken);
        out.push_str(if written.is_empty() { head } else { written });
        rest = tail;
    }
    Some(Cow::Owned(out))
}

/// The word of the language that an identifier stands for, `namespace` of `__namespace__`.
pub(crate) fn word(identifier: &str) -> Option<&str> {
    let word = identifier.strip_prefix("__")?.strip_suffix("__")?;
    is_reserved(word).then_some(word)
}

/// The name of the field that an identifier stands for.
pub(crate) fn unescape(identifier: &str) -> Cow<'_, str> {
    if !identifier.contains("__") {
        return Cow::Borrowed(identifier);
    }
    let inner = identifier.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = inner.filter(|word| is_reserved(word)) {
        return Cow::Owned(word.to_owned());
    }
    let (mut out, mut rest) = (String::new(), identifier);
    while let Some(next) = rest.chars().next() {
        let escape = ESCAPES.iter().find(|(_, written)| rest.starts_with(written));
        let (taken, plain) = match escape {
            Some((plain, written)) => (written.len(), *plain),
            None => (next.len_utf8(), ""),
        };
        let (head, tail) = rest.split_at(taken);
        out.push_str(if plain.is_empty() { head } else { plain });
        rest = tail;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_become_identifiers_and_back() {
        let cases = [
            ("size", "size"),
            ("namespace", "__namespace__"),
            ("x-y", "x__dash__y"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("_x", "_x"),
            ("a___b", "a__underscores___b"),
        ];
        for (name, identifier) in cases {
            assert_eq!(escape(name).as_deref(), Some(identifier));
            assert_eq!(unescape(identifier), name);
        }
        for name in ["", "1st", "a b", "ü", "$ref"] {
            assert_eq!(escape(name), None, "{name}");
        }
    }
}
