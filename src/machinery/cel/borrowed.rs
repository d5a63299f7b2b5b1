//! Borrowed values: JSON trees and reflected objects. Nothing is copied but what an expression looks at.

use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine;
use serde_json::Value as Json;

use super::schema::unescape;
use super::value::{Elements, Entries, List, Map, Text, Value};
use crate::reflect::object::Gvk;
use crate::reflect::time::{Duration, MicroTime, Time};
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
            Json::String(text) => Value::String(Text::Borrowed(text)),
            Json::Array(array) => Value::List(List::Borrowed(Rc::new(JsonList(array)))),
            Json::Object(object) => Value::Map(Map::Borrowed(Rc::new(JsonMap(object)))),
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
        self.0.keys().map(|key| Text::Borrowed(key)).collect()
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
        let gvk = message.desc().gvk.as_deref();
        Value::Map(Map::Borrowed(Rc::new(Message {
            message,
            gvk,
            form: Form::Json,
        })))
    }

    /// A message as [`Type::of_message`](super::Type::of_message) describes it.
    pub fn message(message: &'a dyn Reflect) -> Value<'a> {
        let gvk = message.desc().gvk.as_deref();
        Value::Map(Map::Borrowed(Rc::new(Message {
            message,
            gvk,
            form: Form::Typed,
        })))
    }

    /// The value of a field as [`Type::of_field`](super::Type::of_field) describes it.
    pub fn field(field: &FieldDesc, value: reflect::Value<'a>) -> Value<'a> {
        borrowed(field, value, Form::Typed)
    }
}

/// How what is reflected is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As its JSON would be read: times are texts.
    Json,
    /// By the types of its fields: times are times, and fields go by identifiers.
    Typed,
}

struct Message<'a> {
    message: &'a dyn Reflect,
    /// Shown as `apiVersion` and `kind`.
    gvk: Option<&'a Gvk>,
    form: Form,
}

impl<'a> Message<'a> {
    /// The names of the fields that JSON would show, those of inlined messages too.
    fn shown(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        add_shown(self.message, &mut names);
        names
    }
}

fn add_shown<'a>(message: &'a dyn Reflect, names: &mut Vec<&'a str>) {
    for (_, field, value) in reflect::fields(message) {
        match value {
            reflect::Value::Message(inner) if field.flags.has(Flags::INLINE) => add_shown(inner, names),
            value if is_shown(field, value) => names.push(&field.json),
            _ => {}
        }
    }
    if let Some(rest) = message.rest() {
        rest.for_each(&mut |key, _| names.push(key));
    }
}

/// Whether JSON would show any field.
fn shows_any(message: &dyn Reflect) -> bool {
    message.rest().is_some()
        || reflect::fields(message).any(|(_, field, value)| match value {
            reflect::Value::Message(inner) if field.flags.has(Flags::INLINE) => shows_any(inner),
            value => is_shown(field, value),
        })
}

/// Whether JSON shows a field.
pub(crate) fn is_shown(field: &FieldDesc, value: reflect::Value<'_>) -> bool {
    let optional = field.flags.has(Flags::OPTIONAL);
    match value {
        reflect::Value::Absent => false,
        reflect::Value::Null => true,
        reflect::Value::Message(inner) => optional || !field.flags.has(Flags::OMIT_ZERO) || shows_any(inner),
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

fn borrowed<'a>(field: &FieldDesc, value: reflect::Value<'a>, form: Form) -> Value<'a> {
    match value {
        reflect::Value::Absent | reflect::Value::Null => Value::Null,
        reflect::Value::Bool(b) => Value::Bool(b),
        reflect::Value::Int32(n) => Value::Int(i64::from(n)),
        reflect::Value::Int64(n) => Value::Int(n),
        reflect::Value::Double(n) => Value::Double(n),
        reflect::Value::Str(text) if form == Form::Typed => of_text(field, text),
        reflect::Value::Str(text) => Value::String(Text::Borrowed(text)),
        reflect::Value::Bytes(bytes) => Value::Bytes(Rc::from(&**bytes)),
        reflect::Value::Message(message) => Value::Map(Map::Borrowed(Rc::new(Message {
            message,
            gvk: message.desc().gvk.as_deref().filter(|_| form == Form::Typed),
            form,
        }))),
        reflect::Value::Leaf(leaf) if form == Form::Typed => of_time(leaf).unwrap_or_else(|| of_leaf(leaf)),
        reflect::Value::Leaf(leaf) => of_leaf(leaf),
        reflect::Value::List(list) => Value::List(List::Borrowed(Rc::new(ReflectList(list, form)))),
        reflect::Value::Map(map) => Value::Map(Map::Borrowed(Rc::new(ReflectMap(map, form)))),
    }
}

/// A text by its format; as it is where it does not fit, which has been told by then.
fn of_text<'a>(field: &FieldDesc, text: &'a str) -> Value<'a> {
    let parsed = match field.rules.format.as_str() {
        "date-time" => Time::parse(text).ok().map(|time| Value::Timestamp(time.into())),
        "date" => {
            let time = Time::parse(&format!("{text}T00:00:00Z")).ok();
            time.map(|time| Value::Timestamp(time.into()))
        }
        "duration" => Duration::parse(text).ok().map(Value::Duration),
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.ok().map(|bytes| Value::Bytes(Rc::from(bytes)))
        }
        _ => None,
    };
    parsed.unwrap_or(Value::String(Text::Borrowed(text)))
}

fn of_time<'a>(leaf: &dyn Leaf) -> Option<Value<'a>> {
    if let Some(time) = leaf.as_any().downcast_ref::<Time>() {
        return Some(Value::Timestamp((*time).into()));
    }
    let micro = leaf.as_any().downcast_ref::<MicroTime>()?;
    Some(Value::Timestamp(micro.0.into()))
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
        match (key, self.gvk) {
            ("kind", Some(gvk)) => return Some(Value::String(Text::Borrowed(&gvk.kind))),
            ("apiVersion", Some(gvk)) => return Some(Value::text(gvk.api_version())),
            _ => {}
        }
        let name = match self.form {
            Form::Json => Cow::Borrowed(key),
            Form::Typed => unescape(key),
        };
        let (field, value) = reflect::member(self.message, &name)?;
        is_shown(field, value).then(|| borrowed(field, value, self.form))
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let typed = self.gvk.iter().flat_map(|_| ["apiVersion", "kind"]);
        typed.chain(self.shown()).map(Text::Borrowed).collect()
    }
}

struct ReflectList<'a>(&'a dyn reflect::List, Form);

impl<'a> Elements<'a> for ReflectList<'a> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'a>> {
        (index < self.0.len()).then(|| borrowed(self.0.element(), self.0.get(index), self.1))
    }
}

struct ReflectMap<'a>(&'a dyn reflect::Map, Form);

impl<'a> Entries<'a> for ReflectMap<'a> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.0.get(key).map(|value| borrowed(self.0.element(), value, self.1))
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let mut keys = Vec::new();
        self.0.for_each(&mut |key, _| keys.push(Text::Borrowed(key)));
        keys
    }
}
