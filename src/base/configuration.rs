//! Files of configuration, read strictly: YAML or JSON of a known kind, where unknown and repeated fields and wrong types
//! are mistakes that name their place. The texts are those of Go's decoders.

use std::cell::RefCell;
use std::time::Duration;

use keelson_machinery::{time, yaml};
use serde_json::{Map, Value};

/// Bytes of a file of configuration.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// A document, and what it says that is unknown.
pub struct Document {
    /// The version that it is written in, `v1`.
    pub version: String,
    value: Value,
    unknown: RefCell<Vec<String>>,
}

impl Document {
    /// Reads a text of the kind `kind`; `known` are its API versions. An empty text is an empty document of the first.
    ///
    /// # Errors
    /// No YAML, repeated fields, another kind or version.
    pub fn parse(text: &[u8], kind: &str, known: &[&str]) -> Result<Document, String> {
        let (json, repeated) = yaml::to_json_strict(text).map_err(|error| error.to_string())?;
        if let Some(repeated) = repeated {
            return Err(format!("strict decoding error: {repeated}"));
        }
        let value: Value = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
        let value = match value {
            Value::Null => Value::Object(Map::new()),
            value => value,
        };
        let given = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, found) = (given("apiVersion"), given("kind"));
        let empty = value.as_object().is_some_and(Map::is_empty);
        let missing = |what| format!("Object '{what}' is missing in '{}'", String::from_utf8_lossy(text));
        match (api_version.as_str(), found.as_str()) {
            _ if empty => {}
            (_, "") => return Err(missing("Kind")),
            ("", _) => return Err(missing("apiVersion")),
            (version, name) if name == kind && known.contains(&version) => {}
            (version, name) => {
                return Err(format!("no kind {name:?} is registered for version {version:?}"));
            }
        }
        let version = api_version.rsplit('/').next().unwrap_or_default();
        Ok(Document {
            version: if empty { "v1" } else { version }.to_owned(),
            value,
            unknown: RefCell::default(),
        })
    }

    /// The fields of the document, which the Go type `name` holds.
    ///
    /// # Errors
    /// It is no object.
    pub fn root<'a>(&'a self, name: &'static str) -> Result<Fields<'a>, String> {
        let place = Place {
            path: String::new(),
            dotted: String::new(),
        };
        Fields::of(&self.value, name, place, &self.unknown)
    }

    /// Call when all was read.
    ///
    /// # Errors
    /// The fields that nobody knows.
    pub fn finish(self) -> Result<(), String> {
        let mut unknown = self.unknown.into_inner();
        unknown.sort_unstable();
        unknown.dedup();
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(format!("strict decoding error: {}", unknown.join(", "))),
        }
    }
}

/// Where a value stands: with indexes for people, without them in errors about types.
#[derive(Clone)]
struct Place {
    path: String,
    dotted: String,
}

impl Place {
    fn child(&self, name: &str) -> Place {
        let join = |before: &str| match before {
            "" => name.to_owned(),
            before => format!("{before}.{name}"),
        };
        Place {
            path: join(&self.path),
            dotted: join(&self.dotted),
        }
    }
}

/// The fields of an object. One that is null counts as absent.
pub struct Fields<'a> {
    name: &'static str,
    map: &'a Map<String, Value>,
    place: Place,
    unknown: &'a RefCell<Vec<String>>,
}

impl<'a> Fields<'a> {
    fn of(
        value: &'a Value,
        name: &'static str,
        place: Place,
        unknown: &'a RefCell<Vec<String>>,
    ) -> Result<Fields<'a>, String> {
        let map = value
            .as_object()
            .ok_or_else(|| format!("json: cannot unmarshal {} into Go value of type {name}", sort(value)))?;
        Ok(Fields {
            name,
            map,
            place,
            unknown,
        })
    }

    /// Names the fields that there may be, beside `apiVersion` and `kind` of the document itself.
    #[must_use]
    pub fn known(self, names: &[&str]) -> Fields<'a> {
        let root = self.place.path.is_empty();
        for name in self.map.keys() {
            let typed = root && matches!(name.as_str(), "apiVersion" | "kind");
            if !typed && !names.contains(&name.as_str()) {
                let path = self.place.child(name).path;
                self.unknown.borrow_mut().push(format!("unknown field {path:?}"));
            }
        }
        self
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn wrong<T>(&self, name: &str, value: &Value, wanted: &str) -> Result<T, String> {
        let (of, dotted) = (self.name, self.place.child(name).dotted);
        let found = sort(value);
        Err(format!(
            "json: cannot unmarshal {found} into Go struct field {of}.{dotted} of type {wanted}"
        ))
    }

    /// A text; empty if absent.
    pub fn text(&self, name: &str) -> Result<&'a str, String> {
        match self.get(name) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(other) => self.wrong(name, other, "string"),
        }
    }

    /// A text; `None` if absent.
    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(_) => self.text(name).map(Some),
        }
    }

    /// Yes or no; `None` if absent.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(other) => self.wrong(name, other, "bool"),
        }
    }

    /// A span as Go writes it, `1m30s`; zero if absent.
    pub fn duration(&self, name: &str) -> Result<time::Duration, String> {
        match self.text(name)? {
            "" => Ok(time::Duration::default()),
            text => time::Duration::parse(text),
        }
    }

    /// Texts; none if absent.
    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, String> {
        let mut texts = Vec::new();
        for value in self.items(name, "[]string")? {
            match value {
                Value::String(text) => texts.push(text.as_str()),
                other => return self.wrong(name, other, "string"),
            }
        }
        Ok(texts)
    }

    fn items(&self, name: &str, wanted: &str) -> Result<&'a [Value], String> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => self.wrong(name, other, wanted),
        }
    }

    /// A value of any type.
    pub fn any(&self, name: &str) -> Option<&'a Value> {
        self.get(name)
    }

    /// An object of the Go type `go`; `None` if absent.
    pub fn object(&self, name: &str, go: &'static str) -> Result<Option<Fields<'a>>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(value @ Value::Object(_)) => Fields::of(value, go, self.place.child(name), self.unknown).map(Some),
            Some(other) => self.wrong(name, other, &format!("v1.{go}")),
        }
    }

    /// Objects of the Go type `go`; none if absent.
    pub fn objects(&self, name: &str, go: &'static str) -> Result<Vec<Fields<'a>>, String> {
        let items = self.items(name, &format!("[]v1.{go}"))?;
        let place = self.place.child(name);
        let each = items.iter().enumerate().map(|(n, value)| {
            let place = Place {
                path: format!("{}[{n}]", place.path),
                dotted: place.dotted.clone(),
            };
            match value {
                Value::Object(_) => Fields::of(value, go, place, self.unknown),
                other => self.wrong(name, other, &format!("v1.{go}")),
            }
        });
        each.collect()
    }
}

/// What Go calls such a value.
pub fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A span that is not negative.
pub fn span(duration: time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or_default())
}
