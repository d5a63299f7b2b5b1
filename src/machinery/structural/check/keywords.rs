//! Keywords that no definition may say, or only together with others.

use std::sync::Arc;

use super::place::Place;
use super::rules::{Scope, TotalCost};
use super::{Requirements, lists, rules};
use crate::field::{ErrorList, FieldError};
use crate::structural::decl::Decl;
use crate::structural::schema::{AdditionalProperties, Items, JsonSchema, Keywords, SchemaType};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What is said of a schema and those below it.
pub(super) struct Walk<'a> {
    pub requirements: &'a Requirements,
    /// That the schema did not change, so that single rules may stay as expensive as they are.
    pub unchanged: bool,
    /// Whether all of the schema can be made a structural one.
    pub convertible: bool,
    pub errors: ErrorList,
    /// Errors of expressions, which follow all others.
    pub rule_errors: ErrorList,
    /// How many of [`Walk::errors`] there were, those that were not kept with them.
    count: usize,
    pub cost: TotalCost,
}

/// What holds of a schema because of those around it.
#[derive(Clone)]
pub(super) struct Around<'a> {
    root: bool,
    /// Why there may be no default.
    no_default: Option<&'a str>,
    /// It is of the type or metadata of a resource.
    inside_meta: bool,
    /// The outermost place below which values have no old ones that are known as theirs.
    pub uncorrelated: Option<&'a Place<'a>>,
    /// What expressions see; `None`: they are not looked at.
    pub scope: Option<Scope>,
}

impl<'a> Walk<'a> {
    pub fn new(requirements: &'a Requirements, unchanged: bool, convertible: bool) -> Walk<'a> {
        Walk {
            requirements,
            unchanged,
            convertible,
            errors: ErrorList::new(),
            rule_errors: ErrorList::new(),
            count: 0,
            cost: TotalCost::default(),
        }
    }

    pub fn push(&mut self, error: FieldError) {
        self.count += 1;
        self.errors.push(error);
    }

    /// Checks the schema of a resource.
    pub fn root(&mut self, schema: &JsonSchema, place: &Place<'_>, with_rules: bool) {
        let around = Around {
            root: true,
            no_default: None,
            inside_meta: false,
            uncorrelated: None,
            scope: with_rules.then(|| Scope::root(schema)),
        };
        self.schema(schema, place, &around);
    }

    fn schema(&mut self, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
        if self.errors.is_full() {
            return;
        }
        let before = self.count;
        self.unsupported(schema, place, around);
        if schema.has(Keywords::UNIQUE_ITEMS) {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.push(FieldError::forbidden(&place.at("uniqueItems"), detail));
        }
        self.additional(schema, place, around);
        self.properties(schema, place, around);
        self.alternatives(schema, place, around);
        self.items(schema, place, around);
        let dependencies = schema.rare.iter().filter_map(|rare| rare.dependencies.as_deref());
        for dependency in dependencies.flatten() {
            if let Some(own) = &dependency.schema {
                let place = Place::Named(place, "dependencies", &dependency.name);
                self.schema(own, &place, &around.without_rules());
            }
        }
        if schema.has(Keywords::PRESERVE_FALSE) {
            let path = place.at("x-kubernetes-preserve-unknown-fields");
            self.push(FieldError::invalid(&path, false, "must be true or undefined"));
        }
        lists::check(self, schema, place);
        rules::check_texts(self, schema, place);
        if before == self.count && !schema.rules().is_empty() {
            rules::check_expressions(self, schema, place, around);
        }
    }

    /// Keywords that no definition may say.
    fn unsupported(&mut self, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
        if self.requirements.valid_types && schema.ty == SchemaType::Other {
            let path = place.at("type");
            self.push(FieldError::not_supported(&path, schema.type_name(), &TYPES));
        }
        if let (Some(reason), Some(_)) = (around.no_default, &schema.default) {
            let path = place.at("default");
            self.push(FieldError::forbidden(&path, format!("must not be set {reason}")));
        }
        if let Some(rare) = schema.rare.as_deref() {
            let said = [
                (!rare.id.is_empty(), "id", "id is not supported"),
                (
                    rare.additional_items.is_some(),
                    "additionalItems",
                    "additionalItems is not supported",
                ),
                (
                    !rare.pattern_properties.is_empty(),
                    "patternProperties",
                    "patternProperties is not supported",
                ),
                (
                    !rare.definitions.is_empty(),
                    "definitions",
                    "definitions is not supported",
                ),
                (
                    rare.dependencies.is_some(),
                    "dependencies",
                    "dependencies is not supported",
                ),
                (rare.reference.is_some(), "$ref", "$ref is not supported"),
            ];
            for (_, keyword, detail) in said.into_iter().filter(|(said, ..)| *said) {
                self.push(FieldError::forbidden(&place.at(keyword), detail));
            }
        }
        if schema.type_name() == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.push(FieldError::forbidden(&place.at("type"), detail));
        }
        if matches!(schema.items.as_deref(), Some(Items::Each(schemas)) if !schemas.is_empty()) {
            let detail = "items must be a schema object and not an array";
            self.push(FieldError::forbidden(&place.at("items"), detail));
        }
        if around.inside_meta && schema.has(Keywords::EMBEDDED) {
            let detail = "must not be used inside of resource meta";
            self.push(FieldError::forbidden(
                &place.at("x-kubernetes-embedded-resource"),
                detail,
            ));
        }
    }

    fn additional(&mut self, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
        let Some(additional) = schema.additional_properties.as_deref() else {
            return;
        };
        if !schema.properties.is_empty() && !matches!(additional, AdditionalProperties::Allowed(true)) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.push(FieldError::forbidden(&place.at("additionalProperties"), detail));
        }
        if let AdditionalProperties::Schema(values) = additional {
            let mut below = around.below(schema, values, |decl| decl.element());
            if around.inside_meta {
                below.no_default = Some("inside additionalProperties applying to object metadata");
            }
            self.schema(values, &Place::Keyword(place, "additionalProperties"), &below);
        }
    }

    fn properties(&mut self, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
        let correlated = matches!(schema.map_type(), None | Some("granular" | "atomic"));
        for property in &schema.properties {
            let name = property.name.as_str();
            let mut below = around.below(schema, &property.schema, |decl| decl.property(name));
            if !correlated {
                below.uncorrelated = around.uncorrelated.or(Some(place));
            }
            let reason = format!("in top-level {name}");
            if (around.root || schema.has(Keywords::EMBEDDED)) && matches!(name, "apiVersion" | "kind" | "metadata") {
                below.inside_meta = true;
                if around.root {
                    below.no_default = Some(&reason);
                }
            }
            self.schema(&property.schema, &place.property(name), &below);
        }
    }

    fn alternatives(&mut self, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
        let around = around.without_rules();
        if let Some(not) = schema.not() {
            self.schema(not, &Place::Keyword(place, "not"), &around);
        }
        let lists = [
            ("allOf", schema.all_of()),
            ("oneOf", schema.one_of()),
            ("anyOf", schema.any_of()),
        ];
        for (keyword, schemas) in lists {
            for (index, one) in schemas.iter().enumerate() {
                self.schema(one, &Place::Numbered(place, keyword, index), &around);
            }
        }
        for definition in schema.rare.iter().flat_map(|rare| &rare.definitions) {
            let place = Place::Named(place, "definitions", &definition.name);
            self.schema(&definition.schema, &place, &around);
        }
    }

    fn items(&mut self, schema: &JsonSchema, place: &Place<'_>, around: &Around<'_>) {
        let Some(items) = schema.items.as_deref() else { return };
        let uncorrelated = match schema.list_type() {
            Some("map") => around.uncorrelated,
            _ => around.uncorrelated.or(Some(place)),
        };
        match items {
            Items::One(items) => {
                let below = around.below(schema, items, |decl| decl.element());
                let below = Around { uncorrelated, ..below };
                self.schema(items, &Place::Keyword(place, "items"), &below);
            }
            Items::Each(schemas) => {
                let below = Around {
                    uncorrelated,
                    ..around.without_rules()
                };
                for (index, one) in schemas.iter().enumerate() {
                    self.schema(one, &Place::Numbered(place, "items", index), &below);
                }
            }
        }
    }
}

impl<'a> Around<'a> {
    /// What holds of a part of a schema. `of` finds what expressions see of it in what they see of the whole.
    fn below(&self, schema: &JsonSchema, part: &JsonSchema, of: impl Fn(&Decl) -> Option<&Arc<Decl>>) -> Around<'a> {
        let scope = self.scope.as_ref().map(|scope| scope.below(schema, part, of));
        Around {
            root: false,
            scope,
            ..*self
        }
    }

    fn without_rules(&self) -> Around<'a> {
        Around {
            root: false,
            scope: None,
            ..*self
        }
    }
}
