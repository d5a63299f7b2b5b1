//! Every field of an object, changed alone.

use keelson_machinery::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Type};
use serde_json::{Map, Value, json};

/// How deep absent messages are made up, and present ones are walked.
const MADE_UP: usize = 3;
const WALKED: usize = 12;
/// Of metadata, what the server itself keeps account with.
const UNTOUCHED: [&str; 2] = ["managedFields", "resourceVersion"];

/// One step of a path.
#[derive(Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Place(usize),
}

/// `spec.csi.driver`, `spec.containers[0].image`.
pub fn path_name(path: &[Step]) -> String {
    let mut name = String::new();
    for step in path {
        match step {
            Step::Key(key) if name.is_empty() => name += key,
            Step::Key(key) if key.contains('.') => name += &format!("[{key}]"),
            Step::Key(key) => name += &format!(".{key}"),
            Step::Place(place) => name += &format!("[{place}]"),
        }
    }
    name
}

/// A change of one field.
pub struct Change {
    path: Vec<Step>,
    /// `other`: another value; `gone`: none; `more`: one more; `new`: a value where none was.
    what: &'static str,
    /// `None`: none.
    value: Option<Value>,
}

impl Change {
    /// `spec.csi.driver other`, `spec.containers[0].image gone`.
    pub fn name(&self) -> String {
        format!("{} {}", path_name(&self.path), self.what)
    }

    /// How many steps lead to it.
    pub fn depth(&self) -> usize {
        self.path.len()
    }

    /// The object with the change.
    pub fn applied(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let (last, parents) = self.path.split_last().unwrap();
        let mut at = &mut object;
        for step in parents {
            at = match step {
                Step::Key(key) => &mut at[key.as_str()],
                Step::Place(place) => &mut at[*place],
            };
        }
        match (last, &self.value) {
            (Step::Key(key), Some(value)) => at[key.as_str()] = value.clone(),
            (Step::Key(key), None) => {
                at.as_object_mut().map(|object| object.remove(key));
            }
            (Step::Place(place), Some(value)) => match at.as_array_mut() {
                Some(list) if *place < list.len() => list[*place] = value.clone(),
                Some(list) => list.push(value.clone()),
                None => {}
            },
            (Step::Place(place), None) => {
                at.as_array_mut().map(|list| list.remove(*place));
            }
        }
        object
    }

    /// What stands in the place of the change.
    pub fn found<'a>(&self, object: &'a Value) -> &'a Value {
        self.path.iter().fold(object, |at, step| match step {
            Step::Key(key) => &at[key.as_str()],
            Step::Place(place) => &at[*place],
        })
    }
}

/// All changes of an object of a message.
pub fn of_object(object: &Value, desc: &MessageDesc) -> Vec<Change> {
    let mut changes = Changes::default();
    changes.of_message(object, desc);
    changes.all
}

#[derive(Default)]
struct Changes {
    all: Vec<Change>,
    path: Vec<Step>,
}

impl Changes {
    fn push(&mut self, what: &'static str, value: Option<Value>) {
        let path = self.path.clone();
        self.all.push(Change { path, what, value });
    }

    fn below(&mut self, step: Step, f: impl FnOnce(&mut Self)) {
        self.path.push(step);
        f(self);
        self.path.pop();
    }

    fn of_message(&mut self, value: &Value, desc: &MessageDesc) {
        for field in &desc.fields {
            match &field.ty {
                Type::Message(inner) if field.flags.has(Flags::INLINE) => self.of_message(value, inner),
                _ if UNTOUCHED.contains(&field.json.as_str()) => {}
                _ => {
                    let step = Step::Key(field.json.to_string());
                    self.below(step, |changes| changes.of_field(&value[field.json.as_str()], field));
                }
            }
        }
    }

    fn of_field(&mut self, value: &Value, field: &FieldDesc) {
        match (value, &field.ty) {
            // Fields of a status that is not there yet are set one by one.
            (Value::Null, Type::Message(desc)) if self.path.len() == 1 => self.of_message(&json!({}), desc),
            (Value::Null, ty) => {
                if let Some(made) = made_up(field, ty, 0) {
                    self.push("new", Some(made));
                }
            }
            (value, ty) => {
                self.of_value(value, field, ty);
                if self.path.len() > 1 {
                    self.push("gone", None);
                }
            }
        }
    }

    fn of_value(&mut self, value: &Value, field: &FieldDesc, ty: &Type) {
        if self.path.len() > WALKED {
            return;
        }
        match (ty, value) {
            (Type::Message(desc), value) => self.of_message(value, desc),
            (Type::List(item), Value::Array(list)) => {
                if let Some(first) = list.first() {
                    self.below(Step::Place(0), |changes| changes.of_value(first, field, &item.ty));
                }
                if let Some(more) = one_more(list.last(), field, &item.ty) {
                    self.below(Step::Place(list.len()), |changes| changes.push("more", Some(more)));
                }
            }
            (Type::Map(item), Value::Object(map)) => {
                if let Some((key, first)) = map.iter().next() {
                    self.below(Step::Key(key.clone()), |changes| {
                        changes.of_value(first, field, &item.ty)
                    });
                }
                if let Some(more) = made_up(field, &item.ty, 1) {
                    self.below(Step::Key("more".to_owned()), |changes| changes.push("more", Some(more)));
                }
            }
            (ty, value) => {
                if let Some(other) = other(field, ty, value) {
                    self.push("other", Some(other));
                }
            }
        }
    }
}

/// One more element of a list: like the last one, but for its name.
fn one_more(last: Option<&Value>, field: &FieldDesc, item: &Type) -> Option<Value> {
    let mut more = match last {
        Some(Value::Object(last)) => Value::Object(last.clone()),
        Some(last) => return other(field, item, last),
        None => return made_up(field, item, 1),
    };
    for key in ["name", "key", "type", "ip", "devicePath"] {
        if let Some(text) = more[key].as_str() {
            more[key] = format!("{text}-more").into();
        }
    }
    Some(more)
}

/// Another value than this one.
fn other(field: &FieldDesc, ty: &Type, value: &Value) -> Option<Value> {
    let enums = if field.rules.item_enum.is_empty() {
        &field.rules.enum_values
    } else {
        &field.rules.item_enum
    };
    Some(match (ty, value) {
        (Type::Bool, Value::Bool(is)) => json!(!is),
        (Type::Int32 | Type::Int64, Value::Number(number)) => json!(number.as_i64()? + 1),
        (Type::Double, Value::Number(number)) => json!(number.as_f64()? + 1.0),
        (Type::String, Value::String(text)) => match enums.iter().find(|one| *one != text.as_str()) {
            Some(one) => json!(one),
            None => json!(other_text(&field.json, text)),
        },
        (Type::Bytes, _) => json!("b3RoZXI="),
        (Type::Leaf(kind), value) => other_leaf(*kind, value)?,
        _ => return None,
    })
}

fn other_text(name: &str, text: &str) -> String {
    if let Some((before, last)) = text.rsplit_once('.')
        && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && let Ok(last) = last.parse::<u8>()
    {
        return format!("{before}.{}", last.wrapping_add(1));
    }
    match name {
        "path" | "mountPath" => format!("{text}/x"),
        _ => format!("{text}x"),
    }
}

fn other_leaf(kind: LeafKind, value: &Value) -> Option<Value> {
    Some(match (kind, value) {
        (LeafKind::Quantity, _) => json!("7Gi"),
        (LeafKind::IntOrString, Value::Number(number)) => json!(number.as_i64()? + 1),
        (LeafKind::IntOrString, _) => json!("51%"),
        (LeafKind::Time, _) => json!("2031-02-03T04:05:06Z"),
        (LeafKind::MicroTime, _) => json!("2031-02-03T04:05:06.000007Z"),
        (LeafKind::Duration, _) => json!("17s"),
        (LeafKind::Raw, _) => json!({"other": 7}),
        _ => return None,
    })
}

/// A value of a field that has none.
fn made_up(field: &FieldDesc, ty: &Type, depth: usize) -> Option<Value> {
    Some(match ty {
        Type::Bool => json!(true),
        Type::Int32 | Type::Int64 => json!(field.rules.minimum.map_or(1, |least| (least as i64).max(1))),
        Type::Double => json!(1.0),
        Type::String => match field
            .rules
            .enum_values
            .iter()
            .chain(field.rules.item_enum.iter())
            .next()
        {
            Some(first) => json!(first),
            None => json!(text(&field.json)),
        },
        Type::Bytes => json!("b3RoZXI="),
        Type::Leaf(LeafKind::IntOrString) => json!(1),
        Type::Leaf(kind) => other_leaf(*kind, &Value::Null)?,
        Type::List(item) => json!([made_up(field, &item.ty, depth + 1)?]),
        Type::Map(item) => json!({"other": made_up(field, &item.ty, depth + 1)?}),
        Type::Message(desc) if depth < MADE_UP => message(desc, depth),
        Type::Message(_) | Type::Any | Type::Untyped => return None,
    })
}

/// A message with its texts, and with what it must have.
fn message(desc: &MessageDesc, depth: usize) -> Value {
    if desc.name.ends_with(".LabelSelector") {
        return json!({"matchLabels": {"other": "other"}});
    }
    let mut object = Map::new();
    for field in &desc.fields {
        match &field.ty {
            Type::Message(inner) if field.flags.has(Flags::INLINE) => {
                if let Value::Object(inner) = message(inner, depth + 1) {
                    object.extend(inner);
                }
            }
            Type::String if !field.flags.has(Flags::OPTIONAL) => {
                object.extend(made_up(field, &field.ty, depth + 1).map(|made| (field.json.to_string(), made)));
            }
            ty if field.flags.has(Flags::REQUIRED) => {
                object.extend(made_up(field, ty, depth + 1).map(|made| (field.json.to_string(), made)));
            }
            _ => {}
        }
    }
    Value::Object(object)
}

/// A text that the field may well take.
fn text(name: &str) -> &'static str {
    match name {
        "apiVersion" => "v1",
        "kind" => "Other",
        "ip" | "podIP" | "hostIP" | "clusterIP" | "loadBalancerIP" | "clusterIPs" | "externalIPs" => "10.0.0.77",
        "podCIDR" | "podCIDRs" | "cidr" | "cidrs" => "10.7.0.0/24",
        "path" | "mountPath" | "devicePath" => "/other",
        "server" | "host" | "hostname" => "other.example.com",
        "expression" => "true",
        _ => "other",
    }
}
