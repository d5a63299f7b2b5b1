//! Schemas of objects as messages.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::field::{Shape, field_options};
use super::names::{json_name, pascal, snake};
use super::text::{Field, Message, option, rules};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const META: &str = "meta/v1/meta.proto";
/// How deep schemas are followed.
const MAX_DEPTH: usize = 64;

/// The messages of one version.
pub struct Messages<'a> {
    messages: Vec<Message>,
    names: BTreeSet<String>,
    imports: BTreeSet<&'static str>,
    lost: &'a mut Vec<String>,
}

/// Where a schema stands.
#[derive(Clone)]
pub struct Place {
    version: String,
    path: String,
    depth: usize,
}

impl Place {
    /// The schema of a version.
    pub fn root(version: &str) -> Place {
        Place {
            version: version.to_owned(),
            path: String::new(),
            depth: 0,
        }
    }

    pub fn below(&self, step: &str) -> Place {
        Place {
            version: self.version.clone(),
            path: format!("{}{step}", self.path),
            depth: self.depth + 1,
        }
    }
}

impl<'a> Messages<'a> {
    pub fn new(lost: &'a mut Vec<String>) -> Messages<'a> {
        Messages {
            messages: Vec::new(),
            names: BTreeSet::new(),
            imports: BTreeSet::from(["keelson/api.proto", META]),
            lost,
        }
    }

    pub fn finish(self) -> (Vec<Message>, BTreeSet<&'static str>) {
        (self.messages, self.imports)
    }

    pub fn import(&mut self, file: &'static str) {
        self.imports.insert(file);
    }

    pub fn note(&mut self, place: &Place, what: &str) {
        self.lost.push(format!("{} {}: {what}", place.version, place.path));
    }

    /// The message of the kind itself, with its metadata.
    pub fn kind(&mut self, name: &str, schema: &Value, place: Place) {
        let at = self.begin(name, schema);
        if let Some(message) = self.messages.get_mut(at) {
            message.fields.push(Field {
                comment: String::new(),
                ty: OBJECT_META.to_owned(),
                name: "metadata".to_owned(),
                json: None,
                options: Vec::new(),
            });
        }
        let without = ["apiVersion", "kind", "metadata"];
        self.fields(at, name, schema, &without, &place);
        self.note_keywords(schema, &place);
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            self.note(&place, "unknown fields are preserved");
        }
    }

    /// The message of an object, under this name or one like it, which is the answer.
    pub fn object(&mut self, name: &str, schema: &Value, place: &Place) -> String {
        let mut unique = name.to_owned();
        let mut number = 2;
        while self.names.contains(&unique) {
            unique = format!("{name}{number}");
            number += 1;
        }
        let at = self.begin(&unique, schema);
        let atomic = (schema["x-kubernetes-map-type"] == "atomic").then(|| option("map_type", "ATOMIC"));
        let options: Vec<String> = atomic.into_iter().chain(rules(schema)).collect();
        if let (false, Some(message)) = (options.is_empty(), self.messages.get_mut(at)) {
            message.options.push(Message::option_block("keelson.type", &options));
        }
        self.fields(at, &unique, schema, &[], place);
        unique
    }

    /// A message that stands for a list as the value of a map.
    pub fn list(&mut self, name: &str, element: &str) -> String {
        let unique = self.object(name, &json!({}), &Place::root(""));
        if let Some(message) = self.messages.iter_mut().find(|message| message.name == unique) {
            message
                .options
                .push("  option (keelson.type) = {list: true};\n".to_owned());
            message.fields.push(Field {
                comment: String::new(),
                ty: format!("repeated {element}"),
                name: "items".to_owned(),
                json: None,
                options: Vec::new(),
            });
        }
        unique
    }

    fn begin(&mut self, name: &str, schema: &Value) -> usize {
        self.names.insert(name.to_owned());
        self.messages.push(Message {
            name: name.to_owned(),
            comment: schema["description"].as_str().unwrap_or_default().to_owned(),
            ..Message::default()
        });
        self.messages.len() - 1
    }

    fn fields(&mut self, at: usize, owner: &str, schema: &Value, without: &[&str], place: &Place) {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let mut names = BTreeSet::from(["metadata".to_owned()]);
        for (json, property) in properties.iter().filter(|(json, _)| !without.contains(&json.as_str())) {
            let place = place.below(&format!(".{json}"));
            let Some(mut field) = self.field(owner, (json, property), is_required(schema, json), &place) else {
                continue;
            };
            let base = field.name.clone();
            let mut number = 2;
            while !names.insert(field.name.clone()) {
                field.name = format!("{base}_{number}");
                number += 1;
            }
            field.json = Some(json.clone()).filter(|json| json_name(&field.name) != *json);
            if let Some(message) = self.messages.get_mut(at) {
                message.fields.push(field);
            }
        }
    }

    fn field(&mut self, owner: &str, (json, schema): (&str, &Value), required: bool, place: &Place) -> Option<Field> {
        if place.depth > MAX_DEPTH {
            self.note(place, "what is so deep");
            return None;
        }
        let shape = self.shape(&format!("{owner}{}", pascal(json)), schema, place)?;
        self.note_keywords(schema, place);
        let label = if shape.is_optional() { "optional " } else { "" };
        let options = field_options(self, schema, (&shape, required), place);
        // What a message says of itself stands above it.
        let comment = match shape {
            Shape::Message(_) => "",
            _ => schema["description"].as_str().unwrap_or_default(),
        };
        Some(Field {
            comment: comment.to_owned(),
            ty: format!("{label}{shape}"),
            name: snake(json),
            json: None,
            options,
        })
    }

    /// Keywords that definition files have no word for.
    pub fn note_keywords(&mut self, schema: &Value, place: &Place) {
        let is_number_or_text = schema["x-kubernetes-int-or-string"] == true;
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            if !schema[keyword].is_null() && !is_number_or_text {
                self.note(place, keyword);
            }
        }
    }
}

fn is_required(schema: &Value, json: &str) -> bool {
    let mut required = schema["required"].as_array().into_iter().flatten();
    required.any(|name| name == json)
}
