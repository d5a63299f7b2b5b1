//! Values as rules see them: by the types that the schema declares, borrowed from the object.

use std::borrow::Cow;
use std::rc::Rc;

use crate::cel::{Elements, Entries, List, Map, Matching, Moment, Text, Value, escape, unescape};
use crate::json::base64;
use crate::reflect::time::{Duration, Time};
use crate::reflect::{self};
use crate::structural::schema::{JsonSchema, Keywords, SchemaType};
use crate::structural::view::{Object, View, item};

/// A value of a schema. What is of another type than the schema says has no value that a rule could work with.
pub(super) fn value<'a>(schema: &'a JsonSchema, view: &View<'a>, root: bool) -> Value<'a> {
    match view {
        View::Null if schema.has(Keywords::NULLABLE) => Value::Null,
        View::Null => invalid("invalid data, got null for schema with nullable=false"),
        view if schema.has(Keywords::INT_OR_STRING) => match view {
            View::Text(text) => Value::String(borrowed(text)),
            View::Int(n) => Value::Int(*n),
            _ => invalid("invalid data, expected XIntOrString value to be either a string or integer"),
        },
        view => typed(schema, view, root),
    }
}

fn typed<'a>(schema: &'a JsonSchema, view: &View<'a>, root: bool) -> Value<'a> {
    match (schema.ty, view) {
        (SchemaType::Object, View::Object(object)) => Value::Map(Map::Borrowed(Rc::new(Members {
            schema,
            object: *object,
            root: root || schema.has(Keywords::EMBEDDED),
        }))),
        (SchemaType::Object, _) => invalid("invalid data, expected a map for the provided schema with type=object"),
        (SchemaType::Array, View::List(list)) => match schema.item() {
            Some(items) => Value::List(List::Borrowed(Rc::new(ItemsOf {
                schema,
                items,
                list: *list,
            }))),
            None => invalid("invalid array type, expected Items with a non-empty Schema"),
        },
        (SchemaType::Array, _) => invalid("invalid data, expected an array for the provided schema with type=array"),
        (SchemaType::String, View::Text(text)) => of_text(schema, text),
        (SchemaType::String, other) => invalid(&format!("invalid data, expected string, got {}", go_type(other))),
        (SchemaType::Number, View::Int(n)) => Value::Double(*n as f64),
        (SchemaType::Number, View::Double(n)) => Value::Double(*n),
        (SchemaType::Number, other) => invalid(&format!("invalid data, expected float, got {}", go_type(other))),
        (SchemaType::Integer, View::Int(n)) => Value::Int(*n),
        (SchemaType::Integer, other) => invalid(&format!("invalid data, expected int, got {}", go_type(other))),
        (SchemaType::Boolean, View::Bool(b)) => Value::Bool(*b),
        (SchemaType::Boolean, other) => invalid(&format!("invalid data, expected bool, got {}", go_type(other))),
        (SchemaType::Unset | SchemaType::Other, view) => untyped(view),
    }
}

fn invalid<'a>(why: &str) -> Value<'a> {
    Value::Invalid(Rc::from(why))
}

fn borrowed<'a>(text: &Cow<'a, str>) -> Text<'a> {
    match text {
        Cow::Borrowed(text) => Text::Borrowed(text),
        Cow::Owned(text) => Text::Own(Rc::from(text.as_str())),
    }
}

/// What Go calls the type of a value in a tree.
fn go_type(view: &View<'_>) -> &'static str {
    match view {
        View::Null => "<nil>",
        View::Bool(_) => "bool",
        View::Int(_) => "int64",
        View::Double(_) => "float64",
        View::Text(_) => "string",
        View::List(_) => "[]interface {}",
        View::Object(_) => "map[string]interface {}",
    }
}

/// A text by its format.
fn of_text<'a>(schema: &JsonSchema, text: &Cow<'a, str>) -> Value<'a> {
    let parsed = match schema.format.as_str() {
        "duration" => duration(text)
            .map(Value::Duration)
            .ok_or_else(|| format!("duration {text}: unable to parse {text} as duration")),
        "date" => Time::parse(&format!("{text}T00:00:00Z"))
            .map(|time| Value::Timestamp(time.into()))
            .map_err(|_| format!("date formatted string {text}")),
        "date-time" => date_time(text)
            .map(Value::Timestamp)
            .ok_or_else(|| format!("date-time formatted string {text}")),
        "byte" => match url_safe(text) {
            Ok(bytes) => Ok(Value::Bytes(Rc::from(bytes))),
            Err(at) => Err(format!(
                "byte formatted string {text}: illegal base64 data at input byte {at}"
            )),
        },
        _ => return Value::String(borrowed(text)),
    };
    parsed.unwrap_or_else(|what| invalid(&format!("Invalid {what}")))
}

/// Base64 with the letters that may stand in URLs; the error is where it is wrong.
fn url_safe(text: &str) -> Result<Vec<u8>, usize> {
    let plain = text.bytes().map(|b| match b {
        b'-' => b'+',
        b'_' => b'/',
        b'+' | b'/' => b'-',
        b => b,
    });
    base64::decode(&plain.collect::<Vec<u8>>())
}

/// The empty text is the beginning of time; a zone may be missing.
fn date_time(text: &str) -> Option<Moment> {
    if text.is_empty() {
        return Some(Time::from_unix(0, 0).into());
    }
    Moment::parse(text).or_else(|_| Moment::parse(&format!("{text}Z"))).ok()
}

/// As Go writes durations, or as a sum of numbers with units that Scala has: `3 days`.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(span) = Duration::parse(text) {
        return Some(span);
    }
    let (mut nanos, mut found) = (0i64, false);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (_, from) = rest.split_at(start);
        let (number, after) = from.split_at(from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len()));
        let after = after.trim_start();
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len()));
        if let Some(each) = unit_nanos(&unit.to_lowercase()) {
            found = true;
            nanos = nanos.wrapping_add(number.parse::<i64>().ok()?.wrapping_mul(each));
        }
        rest = after;
    }
    found.then(|| Duration::from_nanos(nanos))
}

fn unit_nanos(unit: &str) -> Option<i64> {
    const UNITS: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", 1_000_000_000),
        (&["m"], "min", 60_000_000_000),
        (&["h", "hr"], "hour", 3_600_000_000_000),
        (&["d"], "day", 86_400_000_000_000),
        (&["w", "wk"], "week", 604_800_000_000_000),
    ];
    let found = UNITS
        .iter()
        .find(|(whole, begin, _)| whole.contains(&unit) || unit.starts_with(begin));
    found.map(|(_, _, nanos)| *nanos)
}

/// A value of which nothing is declared: only equality looks at it.
fn untyped<'a>(view: &View<'a>) -> Value<'a> {
    match view {
        View::Null => Value::Null,
        View::Bool(b) => Value::Bool(*b),
        View::Int(n) => Value::Int(*n),
        View::Double(n) => Value::Double(*n),
        View::Text(text) => Value::String(borrowed(text)),
        View::List(_) | View::Object(_) => Value::text(view.json()),
    }
}

/// An object or map.
struct Members<'a> {
    schema: &'a JsonSchema,
    object: Object<'a>,
    /// Its type and names are there whatever the schema says.
    root: bool,
}

impl<'a> Members<'a> {
    /// Whether it has fields, which go by identifiers.
    fn has_fields(&self) -> bool {
        self.root || !self.schema.properties.is_empty()
    }

    /// A member by its name in JSON.
    fn member(&self, name: &str) -> Option<Value<'a>> {
        let view = self.object.get(name)?;
        if view.is_null() && self.has_fields() {
            // A field that is null is not there.
            return None;
        }
        if self.root && matches!(name, "apiVersion" | "kind") {
            return Some(untyped(&view));
        }
        if self.root && name == "metadata" && self.schema.property(name).is_none() {
            return Some(Value::Map(Map::Borrowed(Rc::new(Names(view.as_object()?)))));
        }
        let schema = match self.schema.property(name) {
            Some(schema) => schema,
            None => self.schema.additional().filter(|_| !self.has_fields())?,
        };
        Some(value(schema, &view, false))
    }

    fn is_seen(&self, name: &str) -> bool {
        let implied = self.root && matches!(name, "apiVersion" | "kind" | "metadata");
        implied || self.schema.property(name).is_some() || (!self.has_fields() && self.schema.additional().is_some())
    }
}

impl<'a> Entries<'a> for Members<'a> {
    fn count(&self) -> usize {
        self.object.len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        match self.has_fields() {
            true => self.member(&unescape(key)),
            false => self.member(key),
        }
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let fields = self.has_fields();
        let mut keys = Vec::new();
        self.object.for_each(&mut |name, value| {
            if !self.is_seen(name) || (fields && value.is_null()) {
                return;
            }
            let identifier = if fields { escape(name) } else { None };
            keys.push(borrowed(&identifier.unwrap_or(Cow::Borrowed(name))));
        });
        keys
    }

    fn unseen(&self) -> Vec<(Text<'a>, String)> {
        let mut unseen = Vec::new();
        self.object.for_each(&mut |name, value| {
            if !self.is_seen(name) {
                unseen.push((Text::Borrowed(name), value.json()));
            }
        });
        unseen
    }
}

/// The names in metadata.
struct Names<'a>(Object<'a>);

impl<'a> Entries<'a> for Names<'a> {
    fn count(&self) -> usize {
        self.keys().len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        let known = matches!(key, "name" | "generateName");
        known.then(|| self.0.get(key)).flatten().map(|view| untyped(&view))
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let names = ["generateName", "name"].into_iter().filter(|name| self.0.has(name));
        names.map(Text::Borrowed).collect()
    }
}

/// A list.
struct ItemsOf<'a> {
    schema: &'a JsonSchema,
    items: &'a JsonSchema,
    list: &'a dyn reflect::List,
}

impl<'a> Elements<'a> for ItemsOf<'a> {
    fn count(&self) -> usize {
        self.list.len()
    }

    fn get(&self, index: usize) -> Option<Value<'a>> {
        let view = item(self.list, index)?;
        Some(value(self.items, &view, false))
    }

    fn matching(&self) -> Matching<'a> {
        match self.schema.list_type() {
            Some("set") => Matching::Set,
            Some("map") => Matching::Keys(self.schema.map_keys()),
            _ => Matching::InOrder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_times_keep_their_zone() {
        for (text, shown) in [
            ("2020-01-01T00:00:00.5+01:00", Some("2020-01-01T00:00:00.5+01:00")),
            ("2020-01-01T00:00:00", Some("2020-01-01T00:00:00Z")),
            ("", Some("1970-01-01T00:00:00Z")),
            ("yesterday", None),
        ] {
            assert_eq!(date_time(text).map(|time| time.to_string()).as_deref(), shown, "{text}");
        }
    }
}
