//! Messages that expressions write: `Object{spec: Object.spec{replicas: 3}}` and `JSONPatch{op: "add", …}`.
//!
//! Objects are made without knowledge of their kind: any field may be set to anything. A message is a map that knows
//! its name; whoever takes it looks at the names.

use std::rc::Rc;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, StructExpr, StructFieldExpr};

use super::check::{Checked, Checker};
use super::error::Fault;
use super::eval::{Kind, Node};
use super::types::Type;
use super::value::{Entries, Map, Text, Value};

/// The type of a whole object, and with a dot and a path behind it the types of its parts.
const OBJECT: &str = "Object";
const PATCH: &str = "JSONPatch";
/// The fields of [`PATCH`] that are texts.
const PATCH_TEXTS: [&str; 3] = ["op", "path", "from"];

/// The name of a message, and its fields, with whether each is optional.
pub(super) type Written = (Arc<str>, Vec<(Arc<str>, Node, bool)>);

/// Whether a type of this name has fields of any name.
fn is_open(name: &str) -> bool {
    name == OBJECT || name.strip_prefix(OBJECT).is_some_and(|rest| rest.starts_with('.'))
}

/// The type of a field of a message; `None`: there is none of this name.
pub(super) fn field_type(message: &str, field: &str) -> Option<Type> {
    match field {
        _ if is_open(message) => Some(Type::Dyn),
        _ if message != PATCH => None,
        field if PATCH_TEXTS.contains(&field) => Some(Type::String),
        "value" => Some(Type::Dyn),
        _ => None,
    }
}

impl Checker<'_> {
    /// A message, where the environment has such.
    pub(super) fn message(&mut self, id: u64, message: &StructExpr) -> Checked {
        let name = message.type_name.trim_start_matches('.');
        if !self.messages || !(is_open(name) || name == PATCH) {
            return self.undeclared(id, &message.type_name);
        }
        let mut fields = Vec::new();
        for entry in &message.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return self.fault(entry.id, "unexpected entry".to_owned());
            };
            match self.message_field(entry.id, name, field) {
                Ok(checked) => fields.push((field.field.as_str().into(), checked, field.optional)),
                Err(checked) => return checked,
            }
        }
        (Node::of(Kind::Message((name.into(), fields))), Type::object(name, []))
    }

    fn message_field(&mut self, id: u64, message: &str, field: &StructFieldExpr) -> Result<Node, Checked> {
        let (node, found) = self.node(&field.value);
        let name = &field.field;
        let Some(wanted) = field_type(message, name) else {
            return Err(self.fault(id, format!("undefined field '{name}'")));
        };
        let expected = match field.optional {
            true => Type::optional(wanted.clone()),
            false => wanted.clone(),
        };
        if !self.inference.accept(&expected, &found) {
            let (wanted, found) = (wanted.shown(), self.inference.finish(&found).shown());
            let text = format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'");
            return Err(self.fault(id, text));
        }
        Ok(node)
    }
}

/// A message with the values of its fields, in the order in which they were written.
struct Message<'a> {
    name: Arc<str>,
    fields: Vec<(Arc<str>, Value<'a>)>,
}

impl<'a> Entries<'a> for Message<'a> {
    fn count(&self) -> usize {
        self.fields.len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        let found = self.fields.iter().find(|(name, _)| **name == *key);
        found.map(|(_, value)| value.clone())
    }

    fn keys(&self) -> Vec<Text<'a>> {
        self.fields
            .iter()
            .map(|(name, _)| Text::Own(Rc::from(&**name)))
            .collect()
    }

    fn message(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// A message of these values.
pub(super) fn made<'a>(name: &Arc<str>, fields: Vec<(Arc<str>, Value<'a>)>) -> Result<Value<'a>, Fault> {
    if &**name == PATCH {
        let is_text =
            |(field, value): &(Arc<str>, Value<'_>)| !PATCH_TEXTS.contains(&&**field) || value.as_str().is_some();
        if let Some((field, value)) = fields.iter().find(|field| !is_text(field)) {
            let found = value.type_name();
            return Err(Fault::function(format!(
                "unexpected type {found} for JSONPatchType '{field}' field"
            )));
        }
    }
    let name = name.clone();
    Ok(Value::Map(Map::Borrowed(Rc::new(Message { name, fields }))))
}

#[cfg(test)]
mod tests {
    use super::super::{CALL_LIMIT, Environment};

    fn evaluate(source: &str) -> Result<String, String> {
        let environment = Environment::new().variable("x", Type::Dyn).with_patches();
        let program = environment.compile(source).map_err(|error| error.to_string())?;
        let done = program.evaluate(&[("x", Value::Int(1))], CALL_LIMIT);
        let shown = |value: Value<'_>| format!("{} {value:?}", value.type_name());
        done.map(|done| shown(done.value)).map_err(|fault| fault.to_string())
    }

    use super::*;

    #[test]
    fn messages_are_maps_with_a_name() {
        for (source, want) in [
            ("Object{}", "Object {}"),
            ("Object{a: x, b: [1]}", r#"Object {"a": 1, "b": [1]}"#),
            ("Object{a: Object.a{b: 'c'}}.a", r#"Object.a {"b": "c"}"#),
            ("Object{?a: optional.none(), b: 1}", r#"Object {"b": 1}"#),
            ("JSONPatch{op: 'add', path: '/a', value: 1}.path", r#"string "/a""#),
            ("Object{a: 1} == Object{a: 1}", "bool true"),
            ("dyn(Object{a: 1}) == dyn(Object.b{a: 1})", "bool false"),
            ("jsonpatch.escapeKey('k8s.io/a~b')", r#"string "k8s.io~1a~0b""#),
        ] {
            assert_eq!(evaluate(source).as_deref(), Ok(want), "{source}");
        }
    }

    #[test]
    fn mistakes_in_messages_are_told() {
        for (source, want) in [
            (
                "Object{a: 1} == Object.b{a: 1}",
                "found no matching overload for '_==_' applied to '(Object, Object.b)'",
            ),
            ("Other{}", "undeclared reference to 'Other' (in container '')"),
            ("Objects{}", "undeclared reference to 'Objects' (in container '')"),
            (
                "JSONPatch{op: 1}",
                "expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            ("JSONPatch{x: 1}", "undefined field 'x'"),
            ("JSONPatch{op: x}", "unexpected type int for JSONPatchType 'op' field"),
        ] {
            let error = evaluate(source).unwrap_err();
            assert!(error.contains(want), "{source}: {error}");
        }
        assert!(Environment::new().compile("Object{}").is_err());
        assert!(Environment::new().compile("jsonpatch.escapeKey('a')").is_err());
    }
}
