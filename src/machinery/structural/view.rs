//! Views of values: an object as its JSON would be read, without a copy.

use std::borrow::Cow;

use crate::cel::is_shown;
use crate::field::BadValue;
use crate::field::text::json_float;
use crate::json_text::kind_name;
use crate::reflect::object::Gvk;
use crate::reflect::{self, Leaf, List, Map, Reflect, Value};
use crate::structural::schema::{JsonSchema, Property};
use crate::validation::declarative::shown;

/// How many properties are asked for in the time that the property of a member takes to be found.
const SEARCH: usize = 4;

/// A value that is there.
#[derive(Clone)]
pub(super) enum View<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    List(&'a dyn List),
    Object(Object<'a>),
}

/// An object or map.
#[derive(Clone, Copy)]
pub(super) enum Object<'a> {
    Message(&'a dyn Reflect),
    /// A kind, whose type is not among its fields.
    Root(&'a dyn Reflect, &'a TypeMeta),
    Map(&'a dyn Map),
    /// Raw JSON, such as that of owned fields.
    Opaque,
}

/// `apiVersion` and `kind` of the objects of a schema.
#[derive(Debug)]
pub(super) struct TypeMeta {
    api_version: String,
    kind: String,
}

impl TypeMeta {
    pub fn of(gvk: &Gvk) -> TypeMeta {
        TypeMeta {
            api_version: gvk.api_version(),
            kind: gvk.kind.to_string(),
        }
    }
}

impl<'a> View<'a> {
    /// `None`: there is no value.
    pub fn of(value: Value<'a>) -> Option<View<'a>> {
        Some(match value {
            Value::Absent => return None,
            Value::Null => View::Null,
            Value::Bool(b) => View::Bool(b),
            Value::Int32(n) => View::Int(n.into()),
            Value::Int64(n) => View::Int(n),
            Value::Double(n) => View::Double(n),
            Value::Str(text) => View::Text(Cow::Borrowed(text)),
            Value::Bytes(bytes) => View::Text(String::from_utf8_lossy(bytes)),
            Value::Message(message) => View::Object(Object::Message(message)),
            Value::Map(map) => View::Object(Object::Map(map)),
            Value::List(list) => View::List(list),
            Value::Leaf(leaf) => View::of_leaf(leaf),
        })
    }

    /// An object of a kind.
    pub fn root(object: &'a dyn Reflect, ty: &'a TypeMeta) -> View<'a> {
        View::Object(Object::Root(object, ty))
    }

    fn of_leaf(leaf: &dyn Leaf) -> View<'a> {
        let mut json = Vec::new();
        leaf.write_json(&mut json);
        match kind_name(&json) {
            "object" | "array" => View::Object(Object::Opaque),
            "string" => serde_json::from_slice(&json).map_or(View::Null, |text: String| View::Text(Cow::Owned(text))),
            "null" => View::Null,
            _ => match serde_json::from_slice::<serde_json::Value>(&json) {
                Ok(serde_json::Value::Bool(b)) => View::Bool(b),
                Ok(serde_json::Value::Number(n)) => n.as_i64().map_or(View::Null, View::Int),
                _ => View::Null,
            },
        }
    }

    /// What schemas call its type.
    pub fn type_name(&self) -> &'static str {
        match self {
            View::Null => "null",
            View::Bool(_) => "boolean",
            View::Int(_) => "integer",
            View::Double(_) => "number",
            View::Text(_) => "string",
            View::List(_) => "array",
            View::Object(_) => "object",
        }
    }

    /// It as error texts show it.
    pub fn shown(&self) -> BadValue {
        match self {
            View::Null => BadValue::null(),
            View::Bool(b) => (*b).into(),
            View::Int(n) => (*n).into(),
            View::Double(n) => (*n).into(),
            View::Text(text) => BadValue::Str(text.to_string()),
            View::List(list) => shown(Value::List(*list)),
            View::Object(Object::Message(message) | Object::Root(message, _)) => shown(Value::Message(*message)),
            View::Object(Object::Map(map)) => shown(Value::Map(*map)),
            View::Object(Object::Opaque) => BadValue::json("{}"),
        }
    }

    /// Its JSON text, with sorted keys.
    pub fn json(&self) -> String {
        if let View::Double(n) = self {
            return json_float(*n);
        }
        match self.shown() {
            BadValue::Str(text) => {
                let mut out = Vec::new();
                crate::json::write_string(&text, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            }
            BadValue::Text(text) => text,
            BadValue::Omitted => String::new(),
        }
    }

    pub fn as_object(&self) -> Option<Object<'a>> {
        match self {
            View::Object(object) => Some(*object),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&'a dyn List> {
        match self {
            View::List(list) => Some(*list),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, View::Null)
    }

    /// Whether two values are the same to the last: whole numbers and fractions never are.
    pub fn same(&self, other: &View<'_>) -> bool {
        match (self, other) {
            (View::Null, View::Null) => true,
            (View::Bool(a), View::Bool(b)) => a == b,
            (View::Int(a), View::Int(b)) => a == b,
            (View::Double(a), View::Double(b)) => a == b,
            (View::Text(a), View::Text(b)) => a == b,
            (View::List(a), View::List(b)) => {
                a.len() == b.len() && (0..a.len()).all(|i| same_items(item(*a, i), item(*b, i)))
            }
            (View::Object(a), View::Object(b)) => {
                let mut same = a.len() == b.len();
                a.for_each(&mut |key, value| same = same && b.get(key).is_some_and(|other| value.same(&other)));
                same
            }
            _ => false,
        }
    }
}

fn same_items(a: Option<View<'_>>, b: Option<View<'_>>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a.same(&b))
}

/// An item of a list.
pub(super) fn item<'a>(list: &'a dyn List, index: usize) -> Option<View<'a>> {
    View::of(list.get(index))
}

impl<'a> Object<'a> {
    /// The member of this name.
    pub fn get(&self, name: &str) -> Option<View<'a>> {
        match self {
            Object::Root(_, ty) if name == "apiVersion" => Some(View::Text(Cow::Borrowed(&ty.api_version))),
            Object::Root(_, ty) if name == "kind" => Some(View::Text(Cow::Borrowed(&ty.kind))),
            Object::Message(message) | Object::Root(message, _) => {
                let (field, value) = reflect::member(*message, name)?;
                is_shown(field, value).then(|| View::of(value)).flatten()
            }
            Object::Map(map) => View::of(map.get(name)?),
            Object::Opaque => None,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn len(&self) -> usize {
        match self {
            Object::Map(map) => map.len(),
            _ => {
                let mut count = 0;
                self.for_each(&mut |_, _| count += 1);
                count
            }
        }
    }

    /// The members that are properties of a schema, in the order of their names. What is gone through is the shorter:
    /// a schema may name very many that each of very many objects lacks.
    pub fn properties<'s>(&self, schema: &'s JsonSchema, f: &mut dyn FnMut(&'s Property, View<'a>)) {
        let properties = &schema.properties;
        if self.len_if_few().is_none_or(|count| count * SEARCH > properties.len()) {
            let there = properties
                .iter()
                .filter_map(|property| Some((property, self.get(&property.name)?)));
            return there.for_each(|(property, value)| f(property, value));
        }
        let mut found = Vec::new();
        self.for_each(&mut |name, value| {
            let at = properties.binary_search_by(|property| property.name.as_str().cmp(name));
            found.extend(at.ok().map(|at| (at, value)));
        });
        found.sort_by_key(|(at, _)| *at);
        for (at, value) in found {
            if let Some(property) = properties.get(at) {
                f(property, value);
            }
        }
    }

    /// How many members there are, where that is known without a look at each.
    fn len_if_few(&self) -> Option<usize> {
        match self {
            Object::Map(map) => Some(map.len()),
            Object::Message(message) | Object::Root(message, _) => {
                let rest = message.rest().map_or(0, Map::len);
                Some(message.sparse()?.len() + rest)
            }
            Object::Opaque => Some(0),
        }
    }

    /// All members, those of maps in the order of their keys.
    pub fn for_each(&self, f: &mut dyn FnMut(&'a str, View<'a>)) {
        match self {
            Object::Message(message) => members(*message, f),
            Object::Root(message, ty) => {
                f("apiVersion", View::Text(Cow::Borrowed(&ty.api_version)));
                f("kind", View::Text(Cow::Borrowed(&ty.kind)));
                members(*message, f);
            }
            Object::Map(map) => map.for_each(&mut |key, value| {
                if let Some(value) = View::of(value) {
                    f(key, value);
                }
            }),
            Object::Opaque => {}
        }
    }
}

fn members<'a>(message: &'a dyn Reflect, f: &mut dyn FnMut(&'a str, View<'a>)) {
    for (_, field, value) in reflect::fields(message) {
        match value {
            Value::Message(inner) if field.flags.has(reflect::Flags::INLINE) => members(inner, f),
            value if is_shown(field, value) => {
                if let Some(value) = View::of(value) {
                    f(&field.json, value);
                }
            }
            _ => {}
        }
    }
    if let Some(rest) = message.rest() {
        rest.for_each(&mut |key, value| {
            if let Some(value) = View::of(value) {
                f(key, value);
            }
        });
    }
}
