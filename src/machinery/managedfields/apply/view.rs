//! Views of messages for server-side apply: which fields are there, which are atomic, what items are known by.
//!
//! What counts is the JSON form: a field is there if JSON shows it, and null is something else than absent.

use crate::fieldset::{KeyField, Name, PathElement, Scalar};
use crate::json::{Shape as Json, parse_shape};
use crate::reflect::{
    self, FieldDesc, Flags, Leaf, LeafKind, ListType, Map, MessageDesc, Reflect, Type, Value, member,
};

/// What a value is to server-side apply.
#[derive(Clone, Copy)]
pub(super) enum Shape<'d> {
    /// Owned as a whole.
    Leaf,
    /// Every field has its owners.
    Message,
    /// Every item has its owners; the field says what items are known by.
    List(&'d FieldDesc),
    /// Every key has its owners.
    Map(&'d FieldDesc),
    /// Nothing is declared: of an object every key has its owners, anything else is owned as a whole.
    Any,
}

impl<'d> Shape<'d> {
    pub(super) fn of(field: &'d FieldDesc) -> Shape<'d> {
        let atomic = field.flags.has(Flags::ATOMIC);
        match field.ty {
            Type::Message(_) if !atomic => Shape::Message,
            Type::Map(_) if !atomic => Shape::Map(field),
            Type::List(_) if matches!(field.list, ListType::Set | ListType::Map) => Shape::List(field),
            Type::Any | Type::Untyped if !atomic => Shape::Any,
            _ => Shape::Leaf,
        }
    }

    /// The shape of the items of a list.
    pub(super) fn of_item(field: &'d FieldDesc) -> Shape<'d> {
        match &field.ty {
            Type::List(element) if !field.flags.has(Flags::ATOMIC) => Shape::of(element),
            _ => Shape::Leaf,
        }
    }

    /// The shape of the values of a map, or of a value of which nothing is declared.
    pub(super) fn of_entry(field: &'d FieldDesc) -> Shape<'d> {
        match &field.ty {
            Type::Map(element) => Shape::of(element),
            Type::Any | Type::Untyped => Shape::Any,
            _ => Shape::Leaf,
        }
    }

    /// What it is to a value, of which it matters where nothing is declared.
    pub(super) fn with(self, value: Value<'_>) -> Shape<'d> {
        match (self, value) {
            (Shape::Any, Value::Map(_)) => Shape::Map(FieldDesc::ANY),
            (Shape::Any, _) => Shape::Leaf,
            (shape, _) => shape,
        }
    }

    /// What it is to a value and the one that takes its place: a map where there is nothing else.
    pub(super) fn with_both(self, old: Presence<'_>, new: Presence<'_>) -> Shape<'d> {
        match (self, old, new) {
            (Shape::Any, Presence::Value(old), Presence::Value(new)) => match self.with(old) {
                Shape::Leaf => Shape::Leaf,
                _ => self.with(new),
            },
            (Shape::Any, Presence::Value(value), _) | (Shape::Any, _, Presence::Value(value)) => self.with(value),
            (Shape::Any, ..) => Shape::Leaf,
            (shape, ..) => shape,
        }
    }
}

/// What JSON shows of a field.
#[derive(Clone, Copy)]
pub(super) enum Presence<'a> {
    Absent,
    Null,
    Value(Value<'a>),
}

impl<'a> Presence<'a> {
    /// Of a field of a message.
    #[inline]
    pub(super) fn of(field: &FieldDesc, value: Value<'a>) -> Presence<'a> {
        let zero = match value {
            Value::Absent => true,
            Value::Null => return Presence::Null,
            _ if field.flags.has(Flags::OPTIONAL) => return Presence::of_element(value),
            Value::Bool(b) => !b,
            Value::Int32(n) => n == 0,
            Value::Int64(n) => n == 0,
            Value::Double(n) => n == 0.0,
            Value::Str(s) => s.is_empty(),
            Value::Bytes(b) => b.is_empty(),
            Value::List(l) => l.is_empty(),
            Value::Map(m) => m.is_empty(),
            Value::Message(m) => {
                let hidden = field.flags.has(Flags::OMIT_ZERO) && crate::reflect::equality::is_zero(m);
                return if hidden {
                    Presence::Absent
                } else {
                    Presence::Value(value)
                };
            }
            Value::Leaf(l) => {
                let hidden = field.flags.has(Flags::OMIT_ZERO) && l.is_zero();
                return if hidden {
                    Presence::Absent
                } else {
                    Presence::of_element(value)
                };
            }
        };
        if !zero {
            return Presence::Value(value);
        }
        if !field.flags.has(Flags::ALWAYS) {
            return Presence::Absent;
        }
        match value {
            Value::Absent | Value::Map(_) | Value::Bytes(_) => Presence::Null,
            Value::List(_) if field.json != "items" => Presence::Null,
            _ => Presence::Value(value),
        }
    }

    /// Of an item of a list or a value of a map.
    pub(super) fn of_element(value: Value<'a>) -> Presence<'a> {
        match value {
            Value::Absent | Value::Null => Presence::Null,
            Value::Leaf(l) if is_null(l) => Presence::Null,
            value => Presence::Value(value),
        }
    }

    /// Nothing, null, or a container without content.
    pub(super) fn is_hollow(self) -> bool {
        match self {
            Presence::Absent | Presence::Null => true,
            Presence::Value(Value::Message(m)) => is_hollow(m),
            Presence::Value(Value::List(l)) => l.is_empty(),
            Presence::Value(Value::Map(m)) => m.is_empty(),
            Presence::Value(_) => false,
        }
    }
}

/// Leaves whose zero value shows as null.
fn is_null(leaf: &dyn Leaf) -> bool {
    matches!(leaf.kind(), LeafKind::Time | LeafKind::MicroTime | LeafKind::Raw) && leaf.is_zero()
}

/// Whether JSON shows the message as `{}`.
pub(super) fn is_hollow(message: &dyn Reflect) -> bool {
    is_hollow_without(message, &|_| false)
}

/// The same, were the fields of the names that are `gone` not there.
pub(super) fn is_hollow_without(message: &dyn Reflect, gone: &dyn Fn(&str) -> bool) -> bool {
    let fields = reflect::fields(message).all(|(_, field, value)| match value {
        Value::Message(inlined) if field.flags.has(Flags::INLINE) => is_hollow_without(inlined, gone),
        _ if field.flags.has(Flags::INLINE) => true,
        _ => matches!(Presence::of(field, value), Presence::Absent) || gone(&field.json),
    });
    let mut rest = true;
    if let Some(map) = message.rest() {
        map.for_each(&mut |key, _| rest = rest && gone(key));
    }
    fields && rest
}

/// Whether JSON shows two values of one field as the same text.
pub(super) fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Leaf(a), Value::Leaf(b)) => same_leaf(a, b),
        (Value::Message(a), Value::Message(b)) => same_message(a, b),
        (Value::List(a), Value::List(b)) => a.len() == b.len() && (0..a.len()).all(|i| same(a.get(i), b.get(i))),
        (Value::Map(a), Value::Map(b)) => same_maps(a, b),
        // Of values known at run time alone: a number without a fraction is written as a whole one.
        (Value::Int64(a), Value::Double(b)) | (Value::Double(b), Value::Int64(a)) => a as f64 == b,
        (a, b) => crate::reflect::equality::equal_values(a, b),
    }
}

fn same_maps(a: &dyn Map, b: &dyn Map) -> bool {
    let mut same_all = a.len() == b.len();
    if same_all {
        a.for_each(&mut |key, value| {
            same_all = same_all && b.get(key).is_some_and(|other| same(value, other));
        });
    }
    same_all
}

/// Quantities of one value may have several texts, and raw JSON of one text is the same whatever the order of its keys;
/// of the rest equal values have equal texts.
fn same_leaf(a: &dyn Leaf, b: &dyn Leaf) -> bool {
    if a.eq_leaf(b) && !matches!(a.kind(), LeafKind::Quantity | LeafKind::Union) {
        return true;
    }
    let text = |leaf: &dyn Leaf| {
        let mut out = Vec::new();
        leaf.write_json(&mut out);
        out
    };
    match a.kind() {
        LeafKind::Raw => crate::json::sorted(&text(a)) == crate::json::sorted(&text(b)),
        LeafKind::Quantity | LeafKind::Union => text(a) == text(b),
        _ => false,
    }
}

/// Whether JSON shows two messages of one type as the same text.
pub(super) fn same_message(a: &dyn Reflect, b: &dyn Reflect) -> bool {
    let rest = match (a.rest(), b.rest()) {
        (Some(a), Some(b)) => same_maps(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let fields = &a.desc().fields;
    let same_field = |index: usize| {
        let Some(field) = fields.get(index) else { return true };
        if field.flags.has(Flags::INLINE) {
            return same(a.get(index), b.get(index));
        }
        match (Presence::of(field, a.get(index)), Presence::of(field, b.get(index))) {
            (Presence::Absent, Presence::Absent) | (Presence::Null, Presence::Null) => true,
            (Presence::Value(a), Presence::Value(b)) => same(a, b),
            _ => false,
        }
    };
    rest && match a.sparse() {
        None => (0..fields.len()).all(same_field),
        Some(_) => reflect::indexes_of_both(a, b).into_iter().all(same_field),
    }
}

/// Whether two items of a list are known by the same keys. Says no where it would take a closer look.
pub(super) fn same_key(field: &FieldDesc, a: Value<'_>, b: Value<'_>) -> bool {
    let (Value::Message(a), Value::Message(b)) = (a, b) else {
        return crate::reflect::equality::equal_values(a, b);
    };
    field
        .map_keys()
        .iter()
        .all(|key| match (member(a, key), member(b, key)) {
            (Some((_, a)), Some((_, b))) => crate::reflect::equality::equal_values(a, b),
            _ => false,
        })
}

/// What an item of a list is known by.
pub(super) fn item_element(field: &FieldDesc, item: Value<'_>) -> PathElement {
    let Value::Message(message) = item else {
        return PathElement::Value(scalar(item));
    };
    if field.list == ListType::Set {
        let mut json = Vec::new();
        crate::json::write(message, &mut json);
        return PathElement::Value(Scalar::Json(String::from_utf8_lossy(&json).into()));
    }
    let mut keys: Vec<KeyField> = field
        .map_keys()
        .names()
        .map(|name| (name.clone(), key_value(message, &name)))
        .collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    PathElement::Key(keys.into())
}

/// Whether an item of a list that is known by its keys lacks one, and nothing stands in for it.
pub(super) fn lacks_key(field: &FieldDesc, item: Value<'_>) -> bool {
    let Value::Message(message) = item else { return false };
    let lacks = |name: &str| {
        let is_missing = member(message, name).is_none_or(|(field, value)| is_missing(field, value));
        is_missing && absent_key(message.desc(), name).is_none()
    };
    field.list == ListType::Map && field.map_keys().names().any(|name| lacks(&name))
}

fn is_missing(field: &FieldDesc, value: Value<'_>) -> bool {
    match value {
        Value::Absent | Value::Null => true,
        value => !field.flags.has(Flags::OPTIONAL) && crate::reflect::equality::is_zero_value(value),
    }
}

fn key_value(message: &dyn Reflect, name: &str) -> Scalar {
    let Some((field, value)) = member(message, name) else {
        return Scalar::Null;
    };
    let missing = is_missing(field, value);
    match field.default().filter(|_| missing) {
        Some(default) => scalar_of_json(default.as_bytes()),
        None => scalar(value),
    }
}

fn scalar(value: Value<'_>) -> Scalar {
    match value {
        Value::Bool(b) => Scalar::Bool(b),
        Value::Int32(n) => Scalar::Int(n.into()),
        Value::Int64(n) => Scalar::Int(n),
        Value::Double(n) => Scalar::Double(n),
        Value::Str(s) => Scalar::Str(Name::from(s)),
        Value::Leaf(leaf) => {
            let mut json = Vec::new();
            leaf.write_json(&mut json);
            scalar_of_json(&json)
        }
        // What no schema of such a list allows.
        Value::List(_) | Value::Map(_) => {
            let mut json = Vec::new();
            crate::validation::write_value(value, &mut json);
            Scalar::Json(String::from_utf8_lossy(&json).into())
        }
        _ => Scalar::Null,
    }
}

/// The scalar that valid JSON text says.
pub(super) fn scalar_of_json(json: &[u8]) -> Scalar {
    match parse_shape(json) {
        Ok(Json::String(text)) => Scalar::Str(Name::from(text.decode())),
        Ok(Json::Number(digits)) => match digits.parse() {
            Ok(n) => Scalar::Int(n),
            Err(_) => Scalar::Double(digits.parse().unwrap_or_default()),
        },
        Ok(Json::Literal("null")) | Err(_) => Scalar::Null,
        Ok(Json::Literal(word)) => Scalar::Bool(word == "true"),
        Ok(_) => Scalar::Json(String::from_utf8_lossy(json).into()),
    }
}

/// The value that an absent key of a list item counts as; `None`: the key must be there.
pub(super) fn absent_key(message: &MessageDesc, name: &str) -> Option<Scalar> {
    let field = message.declared(name)?;
    if let Some(default) = field.default() {
        return Some(scalar_of_json(default.as_bytes()));
    }
    let zero = match field.ty {
        Type::String => Scalar::Str(Name::new_static("")),
        Type::Int32 | Type::Int64 => Scalar::Int(0),
        Type::Bool => Scalar::Bool(false),
        _ => return None,
    };
    let always = field.flags.has(Flags::ALWAYS) && !field.flags.has(Flags::OPTIONAL);
    always.then_some(zero)
}
