//! Declarations: the types that rules see, and how large values of them may be in one request.

use std::sync::Arc;

use super::schema::{AdditionalProperties, JsonSchema, Keywords, Literal, SchemaType};
use crate::cel::{self, Declared, Step, Type};
use crate::reflect::Name;

/// Bytes of a request at most, as estimates of cost take it.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// What rules see of a schema.
#[derive(Debug)]
pub(super) struct Decl {
    kind: Kind,
    /// Characters, bytes, items or entries at most; 0 of numbers and objects.
    max_elements: u64,
    /// Bytes that the shortest value has in JSON.
    min_size: u64,
}

#[derive(Debug)]
enum Kind {
    Scalar(Type),
    List(Arc<Decl>),
    Map(Arc<Decl>),
    /// Fields by their identifiers, in their order.
    Object(Box<[(Name, Arc<Decl>)]>),
}

impl Decl {
    /// The declaration of a schema; of the root of a resource with its type and names. `None`: rules see nothing of it.
    pub fn of(schema: &JsonSchema, root: bool) -> Option<Arc<Decl>> {
        let decl = match schema.ty {
            _ if schema.has(Keywords::INT_OR_STRING) => scalar(Type::Dyn, text_elements(schema, MAX_REQUEST - 2), 1),
            SchemaType::Array => array(schema)?,
            SchemaType::Object => match schema.additional_properties.as_deref() {
                Some(AdditionalProperties::Schema(values)) if !root => map(schema, values)?,
                _ => object(schema, root),
            },
            SchemaType::String => string(schema),
            SchemaType::Boolean => scalar(Type::Bool, 0, 4),
            SchemaType::Number => scalar(Type::Double, 0, 1),
            SchemaType::Integer => scalar(Type::Int, 0, 1),
            SchemaType::Unset | SchemaType::Other => return None,
        };
        Some(Arc::new(decl))
    }

    /// What items of a list or values of a map are.
    pub fn element(&self) -> Option<&Arc<Decl>> {
        match &self.kind {
            Kind::List(element) | Kind::Map(element) => Some(element),
            _ => None,
        }
    }

    /// The property of this name.
    pub fn property(&self, name: &str) -> Option<&Arc<Decl>> {
        self.field(&cel::escape(name)?)
    }

    /// The field of this identifier.
    pub fn field(&self, identifier: &str) -> Option<&Arc<Decl>> {
        let Kind::Object(fields) = &self.kind else { return None };
        let at = fields
            .binary_search_by(|(name, _)| name.as_str().cmp(identifier))
            .ok()?;
        fields.get(at).map(|(_, decl)| decl)
    }

    /// The type by which rules are checked. Types of objects go by their place below `name`.
    pub fn cel_type(&self, name: &str) -> Type {
        match &self.kind {
            Kind::Scalar(ty) => ty.clone(),
            Kind::List(element) => Type::list(element.cel_type(&format!("{name}.@idx"))),
            Kind::Map(element) => Type::map(Type::String, element.cel_type(&format!("{name}.@elem"))),
            Kind::Object(fields) => {
                let mut types = Vec::with_capacity(fields.len());
                for (field, decl) in fields {
                    let ty = decl.cel_type(&format!("{name}.{field}"));
                    // Words of the language may be written as they are.
                    if let Some(word) = cel::word(field) {
                        types.push((word, ty.clone()));
                    }
                    types.push((field.as_str(), ty));
                }
                Type::object(name, types)
            }
        }
    }

    /// How many fields there are in it.
    pub fn fields(&self) -> usize {
        match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::List(element) | Kind::Map(element) => element.fields(),
            Kind::Object(fields) => fields.iter().map(|(_, decl)| 1 + decl.fields()).sum(),
        }
    }

    /// How many values of this may stand in one request, where nothing bounds how many there are.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST / (self.min_size + 1)
    }
}

impl Declared for &Decl {
    fn step(self, step: Step<'_>) -> Option<Self> {
        // Keys are texts of any length.
        const KEY: &Decl = &Decl {
            kind: Kind::Scalar(Type::String),
            max_elements: 0,
            min_size: 2,
        };
        match (step, &self.kind) {
            (Step::Field(name), Kind::Object(_)) => self.field(name).map(|decl| &**decl),
            (Step::Items | Step::Values, Kind::List(element) | Kind::Map(element)) => Some(element),
            (Step::Keys, Kind::Map(_)) => Some(KEY),
            _ => None,
        }
    }

    fn max_elements(self) -> u64 {
        self.max_elements
    }
}

fn scalar(ty: Type, max_elements: u64, min_size: u64) -> Decl {
    Decl {
        kind: Kind::Scalar(ty),
        max_elements,
        min_size,
    }
}

/// Bytes of a text: a character has up to four.
fn text_elements(schema: &JsonSchema, unbounded: u64) -> u64 {
    match schema.limits().max_length {
        Some(most) => positive(most).saturating_mul(4),
        None => unbounded,
    }
}

fn positive(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}

fn string(schema: &JsonSchema) -> Decl {
    match schema.format.as_str() {
        "byte" => {
            let most = schema.limits().max_length.map_or(MAX_REQUEST - 2, positive);
            scalar(Type::Bytes, most, 2)
        }
        "duration" => scalar(Type::Duration, 32, 3),
        "date" => scalar(Type::Timestamp, 12, 12),
        "date-time" => scalar(Type::Timestamp, 32, 21),
        _ => {
            let unbounded = match schema.enumeration.is_empty() {
                true => MAX_REQUEST - 2,
                false => longest(&schema.enumeration),
            };
            scalar(Type::String, text_elements(schema, unbounded), 2)
        }
    }
}

/// Bytes of the longest text of an enum.
fn longest(literals: &[Literal]) -> u64 {
    let lengths = literals.iter().map(|literal| match literal {
        Literal::Text(text) => text.len() as u64,
        Literal::Double(_) | Literal::Json(_) => 0,
    });
    lengths.max().unwrap_or_default()
}

fn array(schema: &JsonSchema) -> Option<Decl> {
    let items = schema.item()?;
    let element = Decl::of(items, items.has(Keywords::EMBEDDED))?;
    let most = match schema.limits().max_items {
        Some(most) => positive(most),
        None => (MAX_REQUEST - 2) / (element.min_size + 1),
    };
    Some(Decl {
        kind: Kind::List(element),
        max_elements: most,
        min_size: 2,
    })
}

fn map(schema: &JsonSchema, values: &JsonSchema) -> Option<Decl> {
    let element = Decl::of(values, values.has(Keywords::EMBEDDED))?;
    let most = match schema.limits().max_properties {
        Some(most) => positive(most),
        // A key with quotes, colon and comma.
        None => (MAX_REQUEST - 2) / (element.min_size + 6),
    };
    Some(Decl {
        kind: Kind::Map(element),
        max_elements: most,
        min_size: 2,
    })
}

fn object(schema: &JsonSchema, root: bool) -> Decl {
    let implied = root && !declares_type_and_names(schema);
    let mut fields = Vec::with_capacity(schema.properties.len() + 3);
    let mut min_size = 2;
    let mut add = |name: &str, decl: Arc<Decl>, default: bool| {
        if !default && schema.required.iter().any(|required| required == name) {
            min_size += name.len() as u64 + decl.min_size + 4;
        }
        if let Some(identifier) = cel::escape(name) {
            fields.push((Name::new(identifier), decl));
        }
    };
    for property in &schema.properties {
        if implied && matches!(property.name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let own = &property.schema;
        if let Some(decl) = Decl::of(own, own.has(Keywords::EMBEDDED)) {
            add(&property.name, decl, own.default.is_some());
        }
    }
    if implied {
        let text = || Arc::new(scalar(Type::String, MAX_REQUEST - 2, 2));
        let names = ["generateName", "name"].map(|name| (Name::new_static(name), text()));
        let metadata = Decl {
            kind: Kind::Object(names.into()),
            max_elements: 0,
            min_size: 2,
        };
        add("apiVersion", text(), false);
        add("kind", text(), false);
        add("metadata", Arc::new(metadata), false);
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Decl {
        kind: Kind::Object(fields.into()),
        max_elements: 0,
        min_size,
    }
}

/// Whether a schema says itself what rules see of every resource.
fn declares_type_and_names(schema: &JsonSchema) -> bool {
    let is = |schema: Option<&JsonSchema>, ty: SchemaType| schema.is_some_and(|schema| schema.ty == ty);
    let metadata = schema.property("metadata");
    is(schema.property("kind"), SchemaType::String)
        && is(schema.property("apiVersion"), SchemaType::String)
        && is(metadata, SchemaType::Object)
        && ["name", "generateName"].iter().all(|name| {
            is(
                metadata.and_then(|metadata| metadata.property(name)),
                SchemaType::String,
            )
        })
}
