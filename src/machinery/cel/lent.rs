//! What others have, as values: JSON trees and reflected objects. Nothing is copied but what an expression looks at.

use std::rc::Rc;

use serde_json::Value as Json;

use super::value::{Elements, Entries, List, Map, Text, Value};
use crate::object::Gvk;
use crate::reflect::{self, FieldDesc, Flags, Leaf, Reflect};

impl<'a> From<&'a Json> for Value<'a> {
    /// Whole numbers are `int`, others `double`.
    fn from(json: &'a Json) -> Value<'a> {
        match json {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(n), _) => Value::Int(n),
                (None, Some(n)) => Value::Uint(n),
                (None, None) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::String(Text::Lent(text)),
            Json::Array(array) => Value::List(List::Lent(Rc::new(JsonList(array)))),
            Json::Object(object) => Value::Map(Map::Lent(Rc::new(JsonMap(object)))),
        }
    }
}

struct JsonList<'a>(&'a [Json]);

impl<'a> Elements<'a> for JsonList<'a> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'a>> {
        self.0.get(index).map(Value::from)
    }
}

struct JsonMap<'a>(&'a serde_json::Map<String, Json>);

impl<'a> Entries<'a> for JsonMap<'a> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.0.get(key).map(Value::from)
    }

    fn keys(&self) -> Vec<Text<'a>> {
        self.0.keys().map(|key| Text::Lent(key)).collect()
    }
}

/// A JSON value that is given away.
fn owned<'a>(json: Json) -> Value<'a> {
    match json {
        Json::String(text) => Value::text(text),
        Json::Array(array) => Value::list(array.into_iter().map(owned).collect()),
        Json::Object(object) => {
            let pairs = object.into_iter().map(|(key, value)| (Value::text(key), owned(value)));
            Value::Map(Map::Own(Rc::new(pairs.collect())))
        }
        scalar => match (&scalar).into() {
            Value::Bool(b) => Value::Bool(b),
            Value::Int(n) => Value::Int(n),
            Value::Uint(n) => Value::Uint(n),
            Value::Double(n) => Value::Double(n),
            _ => Value::Null,
        },
    }
}

impl<'a> Value<'a> {
    /// An API object as its JSON would be read: fields that JSON leaves out are absent.
    pub fn object(message: &'a dyn Reflect) -> Value<'a> {
        let gvk = message.desc().gvk;
        Value::Map(Map::Lent(Rc::new(Message { message, gvk })))
    }
}

struct Message<'a> {
    message: &'a dyn Reflect,
    /// Shown as `apiVersion` and `kind`.
    gvk: Option<Gvk>,
}

impl<'a> Message<'a> {
    /// The fields that JSON would show, those of inlined messages too.
    fn shown(&self) -> Vec<(&'static FieldDesc, reflect::Value<'a>)> {
        fields(self.message)
    }
}

fn fields(message: &dyn Reflect) -> Vec<(&'static FieldDesc, reflect::Value<'_>)> {
    let mut shown = Vec::new();
    for (index, field) in message.desc().fields.iter().enumerate() {
        match message.get(index) {
            reflect::Value::Message(inner) if field.flags.has(Flags::INLINE) => shown.extend(fields(inner)),
            value if is_shown(field, value) => shown.push((field, value)),
            _ => {}
        }
    }
    shown
}

fn is_shown(field: &FieldDesc, value: reflect::Value<'_>) -> bool {
    let optional = field.flags.has(Flags::OPTIONAL);
    match value {
        reflect::Value::Absent => false,
        reflect::Value::Message(inner) => optional || !field.flags.has(Flags::OMIT_ZERO) || !fields(inner).is_empty(),
        _ if optional || field.flags.has(Flags::ALWAYS) => true,
        reflect::Value::Bool(b) => b,
        reflect::Value::Int32(n) => n != 0,
        reflect::Value::Int64(n) => n != 0,
        reflect::Value::Double(n) => n != 0.0,
        reflect::Value::Str(text) => !text.is_empty(),
        reflect::Value::Bytes(bytes) => !bytes.is_empty(),
        reflect::Value::Leaf(leaf) => !leaf.is_zero(),
        reflect::Value::List(list) => !list.is_empty(),
        reflect::Value::Map(map) => !map.is_empty(),
    }
}

fn lent<'a>(value: reflect::Value<'a>) -> Value<'a> {
    match value {
        reflect::Value::Absent => Value::Null,
        reflect::Value::Bool(b) => Value::Bool(b),
        reflect::Value::Int32(n) => Value::Int(i64::from(n)),
        reflect::Value::Int64(n) => Value::Int(n),
        reflect::Value::Double(n) => Value::Double(n),
        reflect::Value::Str(text) => Value::String(Text::Lent(text)),
        reflect::Value::Bytes(bytes) => Value::Bytes(Rc::from(&**bytes)),
        reflect::Value::Message(message) => Value::Map(Map::Lent(Rc::new(Message { message, gvk: None }))),
        reflect::Value::Leaf(leaf) => of_leaf(leaf),
        reflect::Value::List(list) => Value::List(List::Lent(Rc::new(ReflectList(list)))),
        reflect::Value::Map(map) => Value::Map(Map::Lent(Rc::new(ReflectMap(map)))),
    }
}

fn of_leaf<'a>(leaf: &dyn Leaf) -> Value<'a> {
    let mut json = Vec::new();
    leaf.write_json(&mut json);
    serde_json::from_slice(&json).map_or(Value::Null, owned)
}

impl<'a> Entries<'a> for Message<'a> {
    fn count(&self) -> usize {
        self.keys().len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        match (key, &self.gvk) {
            ("kind", Some(gvk)) => return Some(Value::text(gvk.kind)),
            ("apiVersion", Some(gvk)) => return Some(Value::text(gvk.api_version())),
            _ => {}
        }
        let found = self.shown().into_iter().find(|(field, _)| field.json == key);
        found.map(|(_, value)| lent(value))
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let typed = self.gvk.iter().flat_map(|_| ["apiVersion", "kind"]);
        let own = self.shown().into_iter().map(|(field, _)| field.json);
        typed.chain(own).map(Text::Lent).collect()
    }
}

struct ReflectList<'a>(&'a dyn reflect::List);

impl<'a> Elements<'a> for ReflectList<'a> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'a>> {
        (index < self.0.len()).then(|| lent(self.0.get(index)))
    }
}

struct ReflectMap<'a>(&'a dyn reflect::Map);

impl<'a> Entries<'a> for ReflectMap<'a> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.0.get(key).map(lent)
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let mut keys = Vec::new();
        self.0.for_each(&mut |key, _| keys.push(Text::Lent(key)));
        keys
    }
}
