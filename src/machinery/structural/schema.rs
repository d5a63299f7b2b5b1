//! The data of a schema: every keyword of `JSONSchemaProps`, those that most schemas lack behind a pointer.

use std::borrow::Cow;

use crate::field::text::json_float;
use crate::reflect::{Compiled, Name};

/// The declared type of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SchemaType {
    /// None is declared.
    #[default]
    Unset,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// A word that is no type: [`Rare::ty`].
    Other,
}

impl SchemaType {
    /// The type of this name; [`SchemaType::Other`] for a name of none.
    pub fn named(name: &str) -> SchemaType {
        match name {
            "" => SchemaType::Unset,
            "object" => SchemaType::Object,
            "array" => SchemaType::Array,
            "string" => SchemaType::String,
            "integer" => SchemaType::Integer,
            "number" => SchemaType::Number,
            "boolean" => SchemaType::Boolean,
            _ => SchemaType::Other,
        }
    }

    /// Its name; "" where there is none.
    pub const fn name(self) -> &'static str {
        match self {
            SchemaType::Unset | SchemaType::Other => "",
            SchemaType::Object => "object",
            SchemaType::Array => "array",
            SchemaType::String => "string",
            SchemaType::Integer => "integer",
            SchemaType::Number => "number",
            SchemaType::Boolean => "boolean",
        }
    }
}

/// Keywords that are said or not: a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Keywords(u16);

impl Keywords {
    pub const NONE: Keywords = Keywords(0);
    pub const NULLABLE: Keywords = Keywords(1);
    pub const UNIQUE_ITEMS: Keywords = Keywords(2);
    /// `x-kubernetes-preserve-unknown-fields: true`.
    pub const PRESERVE: Keywords = Keywords(4);
    /// `x-kubernetes-preserve-unknown-fields: false`, which no definition may say.
    pub const PRESERVE_FALSE: Keywords = Keywords(8);
    /// `x-kubernetes-embedded-resource`.
    pub const EMBEDDED: Keywords = Keywords(16);
    /// `x-kubernetes-int-or-string`.
    pub const INT_OR_STRING: Keywords = Keywords(32);
    pub const DESCRIPTION: Keywords = Keywords(64);
    pub const TITLE: Keywords = Keywords(128);
    pub const EXAMPLE: Keywords = Keywords(256);
    pub const EXTERNAL_DOCS: Keywords = Keywords(512);
    /// There are [`JsonSchema::properties`], even if these are none.
    pub const PROPERTIES: Keywords = Keywords(1024);
    /// It or a schema below it has `x-kubernetes-validations`.
    pub const RULES_BELOW: Keywords = Keywords(2048);
    /// It or a schema below it, of those that say what values are made of, is an embedded resource.
    pub const EMBEDDED_BELOW: Keywords = Keywords(4096);
    /// It or a schema below it, of those that say what values are made of, is a list of type set or map.
    pub const UNIQUE_BELOW: Keywords = Keywords(8192);

    pub const fn has(self, other: Keywords) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub const fn with(self, other: Keywords) -> Keywords {
        Keywords(self.0 | other.0)
    }

    /// Those of them that are in both.
    #[must_use]
    pub const fn and(self, other: Keywords) -> Keywords {
        Keywords(self.0 & other.0)
    }
}

/// A schema. Text that is for readers alone (`description`, `title`, `example`, `externalDocs`) is not kept, only that
/// it was there.
#[derive(Clone, Debug, Default)]
pub struct JsonSchema {
    pub ty: SchemaType,
    pub keywords: Keywords,
    /// "": none.
    pub format: Name,
    /// JSON text, with its keys sorted and never `null`.
    pub default: Option<Name>,
    /// In the order of their names.
    pub properties: Box<[Property]>,
    pub items: Option<Box<Items>>,
    pub additional_properties: Option<Box<AdditionalProperties>>,
    pub required: Box<[Name]>,
    pub enumeration: Box<[Literal]>,
    /// `x-kubernetes-validations`.
    pub rules: Option<Box<Rules>>,
    pub limits: Option<Box<Limits>>,
    pub junctors: Option<Box<Junctors>>,
    /// `x-kubernetes-list-type`, `-list-map-keys` and `-map-type`.
    pub topology: Option<Box<Topology>>,
    pub rare: Option<Box<Rare>>,
}

/// A property and its schema.
#[derive(Clone, Debug)]
pub struct Property {
    pub name: Name,
    pub schema: JsonSchema,
}

/// What items of an array are.
#[derive(Clone, Debug)]
pub enum Items {
    One(JsonSchema),
    /// One for each place, which no definition may say.
    Each(Box<[JsonSchema]>),
}

/// What the values of a map are.
#[derive(Clone, Debug)]
pub enum AdditionalProperties {
    Allowed(bool),
    Schema(JsonSchema),
}

/// A value of an enum.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    Text(Name),
    /// A number that was not written as a whole one.
    Double(f64),
    /// JSON text of anything else, with its keys sorted.
    Json(Name),
}

impl Literal {
    /// As errors list it: texts as they are, all else as JSON.
    pub fn shown(&self) -> Cow<'_, str> {
        match self {
            Literal::Text(text) | Literal::Json(text) => Cow::Borrowed(text),
            Literal::Double(n) => Cow::Owned(json_float(*n)),
        }
    }
}

/// What numbers, texts, arrays and objects may be. `None` and empty: it is not said.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Limits {
    pub maximum: Option<f64>,
    pub minimum: Option<f64>,
    pub exclusive_maximum: bool,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub pattern: Name,
}

/// Schemas that a value has to fit too.
#[derive(Clone, Debug, Default)]
pub struct Junctors {
    pub all_of: Box<[JsonSchema]>,
    pub any_of: Box<[JsonSchema]>,
    pub one_of: Box<[JsonSchema]>,
    pub not: Option<JsonSchema>,
}

/// How lists and maps are merged.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// `atomic`, `set`, `map`, or what was said instead.
    pub list_type: Option<Name>,
    pub map_keys: Box<[Name]>,
    /// `atomic`, `granular`, or what was said instead.
    pub map_type: Option<Name>,
}

/// Keywords that no definition may say.
#[derive(Clone, Debug, Default)]
pub struct Rare {
    /// The type, if it is [`SchemaType::Other`].
    pub ty: Name,
    pub id: Name,
    /// `$schema`.
    pub schema: Name,
    /// `$ref`.
    pub reference: Option<Name>,
    pub pattern_properties: Box<[Property]>,
    pub definitions: Box<[Property]>,
    pub dependencies: Option<Box<[Dependency]>>,
    pub additional_items: Option<AdditionalProperties>,
}

/// What else must be there where a property is.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub name: Name,
    /// `None`: properties are named instead.
    pub schema: Option<JsonSchema>,
}

/// The rules of a schema.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub list: Box<[Rule]>,
    /// What validation makes of them when it first needs them.
    pub(super) compiled: Compiled,
}

/// One of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    pub rule: Name,
    pub message: Name,
    pub message_expression: Name,
    pub reason: Option<Name>,
    pub field_path: Name,
    pub optional_old_self: Option<bool>,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == NO_LIMITS
    }
}

static NO_LIMITS: Limits = Limits {
    maximum: None,
    minimum: None,
    exclusive_maximum: false,
    exclusive_minimum: false,
    multiple_of: None,
    max_length: None,
    min_length: None,
    max_items: None,
    min_items: None,
    max_properties: None,
    min_properties: None,
    pattern: Name::new_static(""),
};

impl JsonSchema {
    pub fn has(&self, keyword: Keywords) -> bool {
        self.keywords.has(keyword)
    }

    /// The type as it was written.
    pub fn type_name(&self) -> &str {
        match (self.ty, &self.rare) {
            (SchemaType::Other, Some(rare)) => &rare.ty,
            (ty, _) => ty.name(),
        }
    }

    /// The schema of the property of this name.
    pub fn property(&self, name: &str) -> Option<&JsonSchema> {
        let at = self.properties.binary_search_by(|p| p.name.as_str().cmp(name)).ok()?;
        self.properties.get(at).map(|property| &property.schema)
    }

    /// The schema of all items.
    pub fn item(&self) -> Option<&JsonSchema> {
        match self.items.as_deref()? {
            Items::One(schema) => Some(schema),
            Items::Each(_) => None,
        }
    }

    /// The schema of values that no property names.
    pub fn additional(&self) -> Option<&JsonSchema> {
        match self.additional_properties.as_deref()? {
            AdditionalProperties::Schema(schema) => Some(schema),
            AdditionalProperties::Allowed(_) => None,
        }
    }

    pub fn limits(&self) -> &Limits {
        self.limits.as_deref().unwrap_or(&NO_LIMITS)
    }

    /// `x-kubernetes-validations`.
    pub fn rules(&self) -> &[Rule] {
        self.rules.as_ref().map_or(&[], |rules| &rules.list)
    }

    /// `x-kubernetes-list-type`.
    pub fn list_type(&self) -> Option<&str> {
        self.topology.as_ref()?.list_type.as_deref()
    }

    /// `x-kubernetes-list-map-keys`.
    pub fn map_keys(&self) -> &[Name] {
        self.topology.as_ref().map_or(&[], |topology| &topology.map_keys)
    }

    /// `x-kubernetes-map-type`.
    pub fn map_type(&self) -> Option<&str> {
        self.topology.as_ref()?.map_type.as_deref()
    }

    pub fn all_of(&self) -> &[JsonSchema] {
        self.junctors.as_ref().map_or(&[], |junctors| &junctors.all_of)
    }

    pub fn any_of(&self) -> &[JsonSchema] {
        self.junctors.as_ref().map_or(&[], |junctors| &junctors.any_of)
    }

    pub fn one_of(&self) -> &[JsonSchema] {
        self.junctors.as_ref().map_or(&[], |junctors| &junctors.one_of)
    }

    pub fn not(&self) -> Option<&JsonSchema> {
        self.junctors.as_ref()?.not.as_ref()
    }

    /// The schemas that say what values are made of: properties, items, values of maps.
    pub fn parts(&self) -> impl Iterator<Item = &JsonSchema> {
        let properties = self.properties.iter().map(|property| &property.schema);
        properties.chain(self.item()).chain(self.additional())
    }

    /// All schemas directly in it.
    pub fn children(&self) -> impl Iterator<Item = &JsonSchema> {
        let junctors = self.junctors.iter().flat_map(|j| {
            let lists = [&j.all_of, &j.any_of, &j.one_of];
            lists.into_iter().flat_map(|list| list.iter()).chain(&j.not)
        });
        let each = match self.items.as_deref() {
            Some(Items::Each(schemas)) => &**schemas,
            _ => &[],
        };
        let rare = self.rare.iter().flat_map(|rare| {
            let properties = rare.pattern_properties.iter().chain(&rare.definitions);
            let dependencies = rare.dependencies.iter().flat_map(|d| d.iter());
            let additional = match &rare.additional_items {
                Some(AdditionalProperties::Schema(schema)) => Some(schema),
                _ => None,
            };
            let properties = properties.map(|property| &property.schema);
            properties
                .chain(dependencies.filter_map(|dependency| dependency.schema.as_ref()))
                .chain(additional)
        });
        self.parts().chain(each).chain(junctors).chain(rare)
    }

    /// Whether a schema here or anywhere below is such a one.
    pub fn any(&self, is: &dyn Fn(&JsonSchema) -> bool) -> bool {
        is(self) || self.children().any(|child| child.any(is))
    }
}
