//! Variables: names in braces that stand for values of the run, filled in wherever a case has strings.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The variables of a case that is being played.
#[derive(Debug, Default, Clone)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The value, unless it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// `text` with every `{name}` of a known name replaced.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            match self.0.get(&rest[..end]) {
                Some(value) if rest[end..].starts_with('}') => {
                    out.push_str(value);
                    rest = &rest[end + 1..];
                }
                _ => out.push('{'),
            }
        }
        out + rest
    }

    /// A value with the variables of all its strings and keys filled in; a string that is only `{name:int}` becomes a
    /// number.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.number(text).unwrap_or_else(|| Value::String(self.text(text))),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => Value::Object(self.object(fields)),
            other => other.clone(),
        }
    }

    /// The same of an object.
    pub fn object(&self, fields: &Map<String, Value>) -> Map<String, Value> {
        let filled = fields.iter().map(|(key, value)| (self.text(key), self.value(value)));
        filled.collect()
    }

    fn number(&self, text: &str) -> Option<Value> {
        let name = text.strip_prefix('{')?.strip_suffix(":int}")?;
        let number: i64 = self.0.get(name)?.parse().ok()?;
        Some(number.into())
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn known_names_are_filled_in_and_others_stay() {
        let mut variables = Variables::default();
        variables.set("ns", "t1");
        variables.set("port", "443");
        assert_eq!(variables.text("/a/{ns}/{{ns}}/{other}/{"), "/a/t1/{t1}/{other}/{");
        let value = json!({"{ns}": ["{ns}", "{port:int}", "x{port:int}", 1, null]});
        assert_eq!(
            variables.value(&value),
            json!({"t1": ["t1", 443, "x{port:int}", 1, null]})
        );
    }
}
