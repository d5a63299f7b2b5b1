//! Structural rules: types are said outside of alternatives, and alternatives only restrict what is said there.

use super::place::Place;
use crate::field::{FieldError, Path};
use crate::pattern;
use crate::structural::schema::{AdditionalProperties, JsonSchema, Keywords, SchemaType};

/// Errors that are kept of one schema, before they are sorted.
const MAX_FOUND: usize = 4096;

/// What makes a schema no structural one, in the order of the texts.
pub(super) fn check(schema: &JsonSchema, path: &Path) -> Vec<FieldError> {
    let mut walk = Walk { errors: Vec::new() };
    let place = Place::Root(path);
    walk.invariants(schema, Level::Root, &place);
    walk.complete_parts(schema, Some(schema), &place, &place);
    walk.errors.sort_by_cached_key(ToString::to_string);
    walk.errors
}

/// Whether a schema is a structural one.
pub(in crate::structural) fn is_structural(schema: &JsonSchema) -> bool {
    super::convertible::obstacle(schema).is_none() && check(schema, &Path::root()).is_empty()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

struct Walk {
    errors: Vec<FieldError>,
}

impl Walk {
    fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.errors.push(error);
        }
    }

    /// Whether no more errors are kept, so that none need be looked for.
    fn is_full(&self) -> bool {
        self.errors.len() >= MAX_FOUND
    }

    fn forbid(&mut self, place: &Place<'_>, keyword: &'static str, detail: &'static str) {
        self.push(FieldError::forbidden(&place.at(keyword), detail));
    }

    fn require(&mut self, place: &Place<'_>, keyword: &'static str, detail: &'static str) {
        self.push(FieldError::required(&place.at(keyword), detail));
    }

    fn invariants(&mut self, schema: &JsonSchema, level: Level, place: &Place<'_>) {
        if self.is_full() {
            return;
        }
        match schema.item() {
            Some(items) => self.invariants(items, Level::Item, &Place::Keyword(place, "items")),
            None if schema.ty == SchemaType::Array => self.require(place, "items", "must be specified"),
            None => {}
        }
        for property in &schema.properties {
            self.invariants(&property.schema, Level::Field, &place.property(&property.name));
        }
        if schema.additional_properties.is_some() && level == Level::Root {
            self.forbid(place, "additionalProperties", "must not be used at the root");
        }
        if let Some(values) = schema.additional() {
            self.invariants(values, Level::Field, &Place::Keyword(place, "additionalProperties"));
        }
        self.extensions(schema, place);
        let any = is_int_or_string(schema.any_of());
        let first = schema
            .all_of()
            .first()
            .is_some_and(|all| is_int_or_string(all.any_of()));
        self.restrictions(schema, any, first, place);
        self.types(schema, level, place);
        self.metadata(schema, level, place);
        if schema.has(Keywords::EMBEDDED) {
            self.resource(schema, place);
        }
    }

    fn extensions(&mut self, schema: &JsonSchema, place: &Place<'_>) {
        const DETAIL: &str = "must be false if x-kubernetes-int-or-string is true";
        if !schema.has(Keywords::INT_OR_STRING) {
            return;
        }
        for (keyword, name) in [
            (Keywords::PRESERVE, "x-kubernetes-preserve-unknown-fields"),
            (Keywords::EMBEDDED, "x-kubernetes-embedded-resource"),
        ] {
            if schema.has(keyword) {
                self.push(FieldError::invalid(&place.at(name), true, DETAIL));
            }
        }
    }

    fn types(&mut self, schema: &JsonSchema, level: Level, place: &Place<'_>) {
        const EMBEDDED: &str = "must be object if x-kubernetes-embedded-resource is true";
        let free = schema.has(Keywords::INT_OR_STRING) || schema.has(Keywords::PRESERVE);
        match schema.ty {
            SchemaType::Object => {}
            SchemaType::Unset if schema.has(Keywords::EMBEDDED) => self.require(place, "type", EMBEDDED),
            SchemaType::Unset if free => {}
            SchemaType::Unset => {
                let detail = match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                };
                self.require(place, "type", detail);
            }
            _ if schema.has(Keywords::EMBEDDED) => {
                self.push(FieldError::invalid(&place.at("type"), schema.type_name(), EMBEDDED));
            }
            _ => {}
        }
        if level == Level::Root && !matches!(schema.ty, SchemaType::Unset | SchemaType::Object) {
            let detail = "must be object at the root";
            self.push(FieldError::invalid(&place.at("type"), schema.type_name(), detail));
        }
    }

    /// What is said of the type and names of a resource.
    fn metadata(&mut self, schema: &JsonSchema, level: Level, place: &Place<'_>) {
        let is_resource = level == Level::Root || schema.has(Keywords::EMBEDDED);
        let expected = [
            ("kind", SchemaType::String, "must be string"),
            ("apiVersion", SchemaType::String, "must be string"),
            ("metadata", SchemaType::Object, "must be object"),
        ];
        for (name, ty, detail) in expected {
            let Some(own) = schema.property(name) else { continue };
            if is_resource && own.ty != ty {
                let path = place.property(name).at("type");
                self.push(FieldError::invalid(&path, own.type_name(), detail));
            }
            if name == "metadata" && level == Level::Root && !says_names_alone(own) {
                let detail = "must not specify anything other than name and generateName, \
                    but metadata is implicitly specified";
                self.push(FieldError::forbidden(&place.property(name).path(), detail));
            }
        }
    }

    fn resource(&mut self, schema: &JsonSchema, place: &Place<'_>) {
        if schema.additional_properties.is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbid(place, "additionalProperties", detail);
        }
        if !schema.has(Keywords::PRESERVE) && schema.properties.is_empty() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true \
                without x-kubernetes-preserve-unknown-fields";
            self.require(place, "properties", detail);
        }
    }

    /// Alternatives and patterns. Those that say that a value is a number or text are let through.
    fn restrictions(&mut self, schema: &JsonSchema, skip_any: bool, skip_first_any: bool, place: &Place<'_>) {
        let any: &[JsonSchema] = if skip_any { &[] } else { schema.any_of() };
        for (keyword, schemas) in [("anyOf", any), ("allOf", schema.all_of()), ("oneOf", schema.one_of())] {
            for (index, one) in schemas.iter().enumerate() {
                let skip_any = keyword == "allOf" && index == 0 && skip_first_any;
                self.nested(one, skip_any, &Place::Numbered(place, keyword, index));
            }
        }
        if let Some(not) = schema.not() {
            self.nested(not, false, &Place::Keyword(place, "not"));
        }
        let pattern = &schema.limits().pattern;
        if let Some(Err(error)) = (!pattern.is_empty()).then(|| pattern::compiled(pattern)) {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.push(FieldError::invalid(&place.at("pattern"), pattern.as_str(), detail));
        }
    }

    /// A schema within an alternative.
    fn nested(&mut self, schema: &JsonSchema, skip_any: bool, place: &Place<'_>) {
        if self.is_full() {
            return;
        }
        self.restrictions(schema, skip_any, false, place);
        if let Some(items) = schema.item() {
            self.nested(items, false, &Place::Keyword(place, "items"));
        }
        for property in &schema.properties {
            self.nested(&property.schema, false, &place.property(&property.name));
        }
        let allowed = matches!(
            schema.additional_properties.as_deref(),
            Some(AdditionalProperties::Schema(_) | AdditionalProperties::Allowed(true))
        );
        const EMPTY: &str = "must be empty to be structural";
        const UNDEFINED: &str = "must be undefined to be structural";
        const FALSE: &str = "must be false to be structural";
        let has = |keyword| schema.has(keyword);
        let forbidden = [
            (schema.ty != SchemaType::Unset, "type", EMPTY),
            (allowed, "additionalProperties", UNDEFINED),
            (schema.default.is_some(), "default", UNDEFINED),
            (has(Keywords::TITLE), "title", EMPTY),
            (has(Keywords::DESCRIPTION), "description", EMPTY),
            (has(Keywords::NULLABLE), "nullable", FALSE),
            (has(Keywords::PRESERVE), "x-kubernetes-preserve-unknown-fields", FALSE),
            (has(Keywords::EMBEDDED), "x-kubernetes-embedded-resource", FALSE),
            (has(Keywords::INT_OR_STRING), "x-kubernetes-int-or-string", FALSE),
            (!schema.map_keys().is_empty(), "x-kubernetes-list-map-keys", EMPTY),
            (schema.list_type().is_some(), "x-kubernetes-list-type", UNDEFINED),
            (schema.map_type().is_some(), "x-kubernetes-map-type", UNDEFINED),
            (!schema.rules().is_empty(), "x-kubernetes-validations", EMPTY),
        ];
        for (_, keyword, detail) in forbidden.into_iter().filter(|(said, ..)| *said) {
            self.forbid(place, keyword, detail);
        }
        if schema.property("metadata").is_some() {
            let detail = "must not be specified in a nested context";
            self.push(FieldError::forbidden(&place.property("metadata").path(), detail));
        }
    }

    /// That what the alternatives of a schema restrict is said outside of them too.
    fn complete_parts(
        &mut self,
        schema: &JsonSchema,
        outside: Option<&JsonSchema>,
        outside_place: &Place<'_>,
        place: &Place<'_>,
    ) {
        if let Some(not) = schema.not() {
            self.complete(not, outside, outside_place, &Place::Keyword(place, "not"));
        }
        let lists = [
            ("allOf", schema.all_of()),
            ("anyOf", schema.any_of()),
            ("oneOf", schema.one_of()),
        ];
        for (keyword, schemas) in lists {
            for (index, one) in schemas.iter().enumerate() {
                self.complete(one, outside, outside_place, &Place::Numbered(place, keyword, index));
            }
        }
    }

    fn complete(
        &mut self,
        schema: &JsonSchema,
        outside: Option<&JsonSchema>,
        outside_place: &Place<'_>,
        place: &Place<'_>,
    ) {
        if self.is_full() {
            return;
        }
        let Some(own) = outside else {
            let detail = format!("because it is defined in {}", place.path());
            return self.push(FieldError::required(&outside_place.path(), detail));
        };
        self.complete_parts(schema, outside, outside_place, place);
        if let Some(items) = schema.item() {
            let outside_items = Place::Keyword(outside_place, "items");
            self.complete(items, own.item(), &outside_items, &Place::Keyword(place, "items"));
        }
        for property in &schema.properties {
            let (name, own) = (&property.name, own.property(&property.name));
            let outside_property = outside_place.property(name);
            self.complete(&property.schema, own, &outside_property, &place.property(name));
        }
    }
}

/// Whether alternatives say nothing but that a value is a number or text.
fn is_int_or_string(any: &[JsonSchema]) -> bool {
    let is = |schema: &JsonSchema, ty| schema.ty == ty && says_nothing_else(schema) && schema.default.is_none();
    matches!(any, [a, b] if [a, b].iter().all(|s| !s.has(Keywords::PROPERTIES))
        && is(a, SchemaType::Integer) && is(b, SchemaType::String))
}

/// Whether a schema of metadata says nothing but that it has names.
fn says_names_alone(schema: &JsonSchema) -> bool {
    let known = |name: &str| matches!(name, "name" | "generateName");
    says_nothing_else(schema) && schema.properties.iter().all(|property| known(&property.name))
}

/// Whether a schema says nothing, its type, default and properties aside.
fn says_nothing_else(schema: &JsonSchema) -> bool {
    const NOTES: Keywords = Keywords::RULES_BELOW
        .with(Keywords::EMBEDDED_BELOW)
        .with(Keywords::UNIQUE_BELOW)
        .with(Keywords::PROPERTIES);
    let limits = schema.limits();
    NOTES.has(schema.keywords)
        && schema.format.is_empty()
        && schema.item().is_none()
        && schema.additional_properties.is_none()
        && schema.required.is_empty()
        && schema.enumeration.is_empty()
        && schema.rules().is_empty()
        && limits.is_empty()
        && [schema.all_of(), schema.any_of(), schema.one_of()]
            .iter()
            .all(|list| list.is_empty())
        && schema.not().is_none()
        && schema.list_type().is_none()
        && schema.map_type().is_none()
        && schema.map_keys().is_empty()
}
