//! Bodies: valid objects of each kind, and what they become when two of their places are large.

use keelson_machinery::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Type};
use serde_json::{Map, Value, json};

use super::spots::{Growth, Pair, Spot};

/// Where the two places are, while the object is small.
const MARKS: [&str; 2] = ["@one@", "@other@"];
/// What is different in each item: part of a text, and a whole number.
const NUMBER: &str = "@number@";
const WHOLE: &str = "\"@whole@\"";

/// How the parts of a place are made of what a valid object has there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// All alike.
    Same,
    /// With texts and keys that are different.
    Distinct,
    /// With values that no rule takes.
    Wrong,
}

impl Variant {
    pub const ALL: [Variant; 3] = [Variant::Same, Variant::Distinct, Variant::Wrong];
}

/// The first message, text or number in a value of lists and maps.
pub fn first_of<'v>(ty: &Type, value: &'v Value) -> Option<&'v Value> {
    match ty {
        Type::List(inner) => value.get(0).and_then(|value| first_of(&inner.ty, value)),
        Type::Map(inner) => {
            let first = value.as_object().and_then(|map| map.values().next());
            first.and_then(|value| first_of(&inner.ty, value))
        }
        _ => Some(value),
    }
}

/// An object with two large places: as many bytes each as `rooms` says. `backwards`: with its items in another order.
pub fn body(pair: &Pair, object: &Value, variants: [Variant; 2], rooms: usize, backwards: bool) -> String {
    let mut object = object.clone();
    let parts: Vec<Part> = (0..2)
        .map(|n| mark(&mut object, pair, &pair.spots[n], MARKS[n], variants[n]))
        .collect();
    let mut text = object.to_string();
    for part in parts {
        let grown = part.grown(rooms, backwards);
        text = text.replacen(&part.mark, &grown, 1);
    }
    text
}

/// What a mark stands for.
struct Part {
    /// As it stands in the object's text.
    mark: String,
    ends: [&'static str; 2],
    unit: String,
    is_listed: bool,
}

impl Part {
    fn grown(&self, room: usize, backwards: bool) -> String {
        if !self.is_listed {
            return format!("\"{}\"", self.unit.repeat(room / self.unit.len()));
        }
        let unit = |n: usize| {
            self.unit
                .replace(NUMBER, &n.to_string())
                .replace(WHOLE, &(n % 65_000 + 1).to_string())
        };
        let mut left = room;
        let mut units: Vec<String> = (0..)
            .map(unit)
            .take_while(|unit| {
                let fits = unit.len() < left;
                left = left.saturating_sub(unit.len() + 1);
                fits
            })
            .collect();
        if backwards {
            units.reverse();
        }
        format!("{}{}{}", self.ends[0], units.join(","), self.ends[1])
    }
}

fn mark(object: &mut Value, pair: &Pair, spot: &Spot, name: &str, variant: Variant) -> Part {
    let (at, desc) = reach(object, &pair.kind.message, &pair.above);
    let quoted = format!("\"{name}\"");
    let listed = |mark, ends, unit| Part {
        mark,
        ends,
        unit,
        is_listed: true,
    };
    let Some((last, above)) = spot.path.split_last().filter(|_| spot.growth != Growth::Unknown) else {
        let (at, _) = reach(at, desc, &spot.path);
        set(at, name, 0.into());
        return listed(format!("{quoted}:0"), ["", ""], format!("\"unknown{NUMBER}\":{NUMBER}"));
    };
    let (at, desc) = reach(at, desc, above);
    choose(at, desc, last);
    let place = at
        .as_object_mut()
        .unwrap()
        .entry(last.json.to_string())
        .or_insert(Value::Null);
    match (&last.ty, spot.growth) {
        (Type::Map(inner), Growth::Key) => {
            let value = first_of(&last.ty, place)
                .cloned()
                .unwrap_or_else(|| made(inner, &inner.ty));
            *place = json!({ name: value });
            Part {
                mark: quoted,
                ends: ["", ""],
                unit: "k".into(),
                is_listed: false,
            }
        }
        (Type::Map(_), Growth::Value) => {
            let first = place.as_object().and_then(|map| map.keys().next());
            let key = first.map_or("a", String::as_str).to_owned();
            *place = json!({ key: name });
            let unit = if variant == Variant::Wrong { "!" } else { "a" };
            Part {
                mark: quoted,
                ends: ["", ""],
                unit: unit.into(),
                is_listed: false,
            }
        }
        (Type::List(inner), _) => {
            let first = place.get(0).cloned().unwrap_or_else(|| made(last, &inner.ty));
            let unit = varied(first, last, &inner.ty, variant).to_string();
            *place = name.into();
            listed(quoted, ["[", "]"], unit)
        }
        (Type::Map(_) | Type::Leaf(LeafKind::Raw | LeafKind::Union), _) => {
            let unit = entry(place, last, variant);
            *place = name.into();
            listed(quoted, ["{", "}"], unit)
        }
        _ => {
            let known = place
                .as_str()
                .filter(|text| !text.is_empty())
                .unwrap_or("a.")
                .to_owned();
            let unit = match variant {
                Variant::Same => "a".to_owned(),
                Variant::Distinct => Value::from(known).to_string().trim_matches('"').to_owned(),
                Variant::Wrong => "!".to_owned(),
            };
            *place = name.into();
            Part {
                mark: quoted,
                ends: ["", ""],
                unit,
                is_listed: false,
            }
        }
    }
}

/// The message at the end of a path from an object of the message `desc`; what leads to it is made.
fn reach<'v>(
    object: &'v mut Value,
    desc: &'static MessageDesc,
    path: &[&'static FieldDesc],
) -> (&'v mut Value, &'static MessageDesc) {
    let (mut at, mut desc) = (object, desc);
    for field in path {
        if !field.flags.has(Flags::INLINE) {
            if !at.is_object() {
                *at = json!({});
            }
            choose(at, desc, field);
            at = &mut at[field.json.as_str()];
            at = into_first(&field.ty, at);
        }
        if let Some(inner) = field.message() {
            desc = inner;
        }
    }
    if !at.is_object() {
        *at = json!({});
    }
    (at, desc)
}

/// Takes away what the object has instead of a field that it has not, where the message is one of which objects have one
/// field: most of them are messages.
fn choose(at: &mut Value, desc: &MessageDesc, field: &FieldDesc) {
    let is_one = |field: &&FieldDesc| matches!(field.ty, Type::Message(_)) && !field.flags.has(Flags::INLINE);
    let all = desc
        .fields
        .iter()
        .filter(|field| !field.flags.has(Flags::INLINE))
        .count();
    let messages = desc.fields.iter().filter(is_one).count();
    let Some(members) = at
        .as_object_mut()
        .filter(|members| !members.contains_key(field.json.as_str()))
    else {
        return;
    };
    if is_one(&field) && messages > 2 && messages * 3 >= all * 2 {
        let is_other = |name: &str| desc.field(name).is_some_and(|(_, field)| is_one(&field));
        let is_marked = |value: &Value| MARKS.iter().any(|mark| value.to_string().contains(mark));
        members.retain(|name, value| !is_other(name) || is_marked(value));
    }
}

fn into_first<'v>(ty: &Type, at: &'v mut Value) -> &'v mut Value {
    match ty {
        Type::List(inner) => {
            if at.get(0).is_none() {
                *at = json!([null]);
            }
            into_first(&inner.ty, &mut at[0])
        }
        Type::Map(inner) => {
            if at.as_object().is_none_or(Map::is_empty) {
                *at = json!({"key": null});
            }
            let first = at.as_object_mut().and_then(|map| map.values_mut().next()).unwrap();
            into_first(&inner.ty, first)
        }
        _ => at,
    }
}

fn set(at: &mut Value, key: &str, value: Value) {
    at.as_object_mut().unwrap().insert(key.to_owned(), value);
}

/// A value of which only the type is known.
fn made(field: &FieldDesc, ty: &Type) -> Value {
    let known = field
        .rules
        .enum_values
        .iter()
        .chain(field.rules.item_enum.iter())
        .next();
    match ty {
        Type::Bool => true.into(),
        Type::Int32 | Type::Int64 | Type::Double => 1.into(),
        Type::Message(desc) => {
            let is_plain = |ty: &Type| matches!(ty, Type::String | Type::Int32 | Type::Int64);
            let fields = desc.fields.iter().filter(|field| {
                let is_needed = field.flags.has(Flags::REQUIRED) || is_plain(&field.ty);
                is_needed && !field.flags.has(Flags::INLINE)
            });
            let fields = fields
                .take(6)
                .map(|field| (field.json.to_string(), made(field, &field.ty)));
            Value::Object(fields.collect())
        }
        Type::List(inner) => json!([made(field, &inner.ty)]),
        Type::Map(inner) => json!({ "key": made(field, &inner.ty) }),
        Type::Leaf(LeafKind::Time) => "2020-02-29T12:34:56Z".into(),
        Type::Leaf(LeafKind::MicroTime) => "2020-02-29T12:34:56.000001Z".into(),
        Type::Leaf(LeafKind::Duration) => "1s".into(),
        Type::Leaf(LeafKind::Quantity | LeafKind::IntOrString) => 1.into(),
        Type::Leaf(LeafKind::Raw | LeafKind::Union) | Type::Any | Type::Untyped => json!({}),
        Type::Bytes => "YQ==".into(),
        Type::String => known.unwrap_or("a").into(),
    }
}

/// An item of the list in `field`, with what is different in each of them.
fn varied(mut item: Value, field: &FieldDesc, ty: &Type, variant: Variant) -> Value {
    let keys = &field.details.map_keys;
    match (&mut item, ty) {
        (Value::String(text), _) => match variant {
            Variant::Same => {}
            Variant::Distinct => text.push_str(NUMBER),
            Variant::Wrong => *text = "!".to_owned(),
        },
        (Value::Object(map), Type::Message(desc)) if variant != Variant::Same => {
            for (name, value) in map.iter_mut() {
                let Some((_, field)) = desc.field(name) else { continue };
                let is_key = keys.iter().any(|key| key == name.as_str());
                let is_free = field.rules.enum_values.iter().next().is_none();
                let differs = if keys.iter().next().is_some() { is_key } else { is_free };
                match value {
                    Value::String(text) if variant == Variant::Wrong => *text = "!".to_owned(),
                    Value::Number(_) if variant == Variant::Wrong => *value = (-1).into(),
                    Value::String(text) if differs && matches!(field.ty, Type::String) => text.push_str(NUMBER),
                    Value::Number(_) if differs && is_key => *value = WHOLE.trim_matches('"').into(),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    item
}

/// An entry of a map; keys are always different.
fn entry(map: &Value, field: &FieldDesc, variant: Variant) -> String {
    let first = map.as_object().and_then(|map| map.iter().next());
    let key = match variant {
        Variant::Same => first.map_or("k", |(key, _)| key.as_str()),
        Variant::Distinct => "example.com/k",
        Variant::Wrong => "!",
    };
    let value = match (first, &field.ty) {
        (_, Type::Map(inner)) if variant == Variant::Wrong && matches!(inner.ty, Type::String) => "!".into(),
        (Some((_, value)), _) => value.clone(),
        (None, Type::Map(inner)) => made(inner, &inner.ty),
        (None, _) => json!({}),
    };
    format!("{}:{value}", Value::from(format!("{key}{NUMBER}")))
}
