//! The strict reader of encryption configurations: unknown fields and wrong types are mistakes that name their place.

use std::fmt;

use serde_json::{Map, Value};

/// Why a configuration can't be used. Never shows a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError(Vec<String>);

impl ConfigError {
    pub fn new(text: impl Into<String>) -> ConfigError {
        ConfigError(vec![text.into()])
    }

    /// `Ok` if there are none.
    pub(super) fn of(mistakes: Vec<String>) -> Result<(), ConfigError> {
        match mistakes.is_empty() {
            true => Ok(()),
            false => Err(ConfigError(mistakes)),
        }
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [only] => f.write_str(only),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

/// A value and the way to it, `resources[0].providers[1]`.
pub(super) struct Node<'a> {
    pub path: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    pub fn root(value: &'a Value) -> Node<'a> {
        Node {
            path: String::new(),
            value,
        }
    }

    fn is(&self, wanted: &str) -> ConfigError {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let path = if self.path.is_empty() {
            "the document"
        } else {
            &self.path
        };
        ConfigError::new(format!("{path}: must be {wanted}, not {found}"))
    }

    /// The fields of an object, all of which must be known.
    pub fn object(&self, known: &[&str]) -> Result<Fields<'a>, ConfigError> {
        let Value::Object(fields) = self.value else {
            return Err(self.is("an object"));
        };
        let dot = if self.path.is_empty() { "" } else { "." };
        let unknown = fields.keys().filter(|name| !known.contains(&name.as_str()));
        let unknown: Vec<String> = unknown
            .map(|name| format!("unknown field \"{}{dot}{name}\"", self.path))
            .collect();
        if !unknown.is_empty() {
            return Err(ConfigError::new(format!(
                "strict decoding error: {}",
                unknown.join(", ")
            )));
        }
        Ok(Fields {
            path: format!("{}{dot}", self.path),
            fields,
        })
    }

    pub fn list(&self) -> Result<Vec<Node<'a>>, ConfigError> {
        let Value::Array(items) = self.value else {
            return Err(self.is("a list"));
        };
        let items = items.iter().enumerate();
        Ok(items
            .map(|(n, value)| Node {
                path: format!("{}[{n}]", self.path),
                value,
            })
            .collect())
    }

    pub fn text(&self) -> Result<&'a str, ConfigError> {
        self.value.as_str().ok_or_else(|| self.is("a string"))
    }

    pub fn integer(&self) -> Result<i64, ConfigError> {
        self.value.as_i64().ok_or_else(|| self.is("an integer"))
    }
}

/// The fields of an object. One that is null counts as absent.
pub(super) struct Fields<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<Node<'a>> {
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        Some(Node {
            path: self.path(name),
            value,
        })
    }

    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    /// The text of a field; empty if it is absent.
    pub fn text(&self, name: &str) -> Result<&'a str, ConfigError> {
        self.get(name).map_or(Ok(""), |node| node.text())
    }

    /// The elements of a field; none if it is absent.
    pub fn list(&self, name: &str) -> Result<Vec<Node<'a>>, ConfigError> {
        self.get(name).map_or(Ok(Vec::new()), |node| node.list())
    }
}
