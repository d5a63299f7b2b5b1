//! Schemas and rules as error texts show them: by the names of the fields that kube-apiserver holds them in.
//!
//! Text for readers (descriptions, titles, examples) is not kept of a schema, so it is not shown.

use crate::field::text::{json_float, json_list, json_string};
use crate::reflect::Name;
use crate::structural::schema::{
    AdditionalProperties, Dependency, Items, JsonSchema, Keywords, Literal, Property, Rare, Rule,
};

/// Bytes from which on no more is written: errors cut what they show.
const ENOUGH: usize = 16 * 1024;

/// A rule.
pub(super) fn rule(rule: &Rule) -> String {
    let mut out = Shown::default();
    out.rule(rule);
    out.text
}

/// What items of an array are.
pub(super) fn items(items: &Items) -> String {
    let mut out = Shown::default();
    out.items(Some(items));
    out.text
}

/// A schema.
pub(super) fn schema(schema: &JsonSchema) -> String {
    let mut out = Shown::default();
    out.schema(schema);
    out.text
}

#[derive(Default)]
struct Shown {
    text: String,
}

impl Shown {
    /// Begins a member.
    fn member(&mut self, name: &str) {
        self.comma();
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    fn plain(&mut self, name: &str, value: &str) {
        self.member(name);
        self.text.push_str(value);
    }

    fn string(&mut self, name: &str, value: &str) {
        self.member(name);
        json_string(value, &mut self.text);
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.plain(name, if value { "true" } else { "false" });
    }

    fn optional<T>(&mut self, name: &str, value: Option<T>, text: impl Fn(T) -> String) {
        let text = value.map_or("null".to_owned(), text);
        self.plain(name, &text);
    }

    fn names(&mut self, name: &str, names: &[Name]) {
        let text = match names.is_empty() {
            true => "null".to_owned(),
            false => json_list(names.iter().map(Name::as_str)),
        };
        self.plain(name, &text);
    }

    fn rule(&mut self, rule: &Rule) {
        self.text.push('{');
        self.string("Rule", &rule.rule);
        self.string("Message", &rule.message);
        self.string("MessageExpression", &rule.message_expression);
        self.optional("Reason", rule.reason.as_deref(), quoted);
        self.string("FieldPath", &rule.field_path);
        self.optional("OptionalOldSelf", rule.optional_old_self, |b| b.to_string());
        self.text.push('}');
    }

    fn schema(&mut self, schema: &JsonSchema) {
        if self.text.len() > ENOUGH {
            return;
        }
        let none = Rare::default();
        let rare = schema.rare.as_deref().unwrap_or(&none);
        self.text.push('{');
        self.string("ID", &rare.id);
        self.string("Schema", &rare.schema);
        self.optional("Ref", rare.reference.as_deref(), quoted);
        self.string("Description", "");
        self.string("Type", schema.type_name());
        self.flag("Nullable", schema.has(Keywords::NULLABLE));
        self.string("Format", &schema.format);
        self.string("Title", "");
        self.optional("Default", schema.default.as_deref(), str::to_owned);
        self.limits(schema);
        self.names("Required", &schema.required);
        self.member("Items");
        self.items(schema.items.as_deref());
        self.schemas("AllOf", schema.all_of());
        self.schemas("OneOf", schema.one_of());
        self.schemas("AnyOf", schema.any_of());
        self.member("Not");
        self.maybe(schema.not());
        match schema.properties.is_empty() && schema.has(Keywords::PROPERTIES) {
            true => self.plain("Properties", "{}"),
            false => self.properties("Properties", &schema.properties),
        }
        self.additional("AdditionalProperties", schema.additional_properties.as_deref());
        self.rare(rare);
        self.extensions(schema);
        self.text.push('}');
    }

    fn limits(&mut self, schema: &JsonSchema) {
        let limits = schema.limits();
        let whole = |n: i64| n.to_string();
        self.optional("Maximum", limits.maximum, json_float);
        self.flag("ExclusiveMaximum", limits.exclusive_maximum);
        self.optional("Minimum", limits.minimum, json_float);
        self.flag("ExclusiveMinimum", limits.exclusive_minimum);
        self.optional("MaxLength", limits.max_length, whole);
        self.optional("MinLength", limits.min_length, whole);
        self.string("Pattern", &limits.pattern);
        self.optional("MaxItems", limits.max_items, whole);
        self.optional("MinItems", limits.min_items, whole);
        self.flag("UniqueItems", schema.has(Keywords::UNIQUE_ITEMS));
        self.optional("MultipleOf", limits.multiple_of, json_float);
        let literals = (!schema.enumeration.is_empty()).then_some(&schema.enumeration);
        self.optional("Enum", literals, |list| {
            let shown = list.iter().map(|literal| match literal {
                Literal::Text(text) => quoted(text),
                other => other.shown().into_owned(),
            });
            format!("[{}]", shown.collect::<Vec<_>>().join(","))
        });
        self.optional("MaxProperties", limits.max_properties, whole);
        self.optional("MinProperties", limits.min_properties, whole);
    }

    fn rare(&mut self, rare: &Rare) {
        self.properties("PatternProperties", &rare.pattern_properties);
        self.member("Dependencies");
        self.dependencies(rare.dependencies.as_deref());
        self.additional("AdditionalItems", rare.additional_items.as_ref());
        self.properties("Definitions", &rare.definitions);
    }

    fn extensions(&mut self, schema: &JsonSchema) {
        self.plain("ExternalDocs", "null");
        self.plain("Example", "null");
        let preserve = match schema.has(Keywords::PRESERVE_FALSE) {
            true => Some(false),
            false => schema.has(Keywords::PRESERVE).then_some(true),
        };
        self.optional("XPreserveUnknownFields", preserve, |b| b.to_string());
        self.flag("XEmbeddedResource", schema.has(Keywords::EMBEDDED));
        self.flag("XIntOrString", schema.has(Keywords::INT_OR_STRING));
        self.names("XListMapKeys", schema.map_keys());
        self.optional("XListType", schema.list_type(), quoted);
        self.optional("XMapType", schema.map_type(), quoted);
        self.member("XValidations");
        self.list(schema.rules(), Shown::rule);
    }

    fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Shown, &T)) {
        if items.is_empty() {
            self.text.push_str("null");
            return;
        }
        for (index, item) in items.iter().enumerate() {
            self.text.push(if index == 0 { '[' } else { ',' });
            each(self, item);
        }
        self.text.push(']');
    }

    fn schemas(&mut self, name: &str, schemas: &[JsonSchema]) {
        self.member(name);
        self.list(schemas, Shown::schema);
    }

    fn maybe(&mut self, schema: Option<&JsonSchema>) {
        match schema {
            Some(schema) => self.schema(schema),
            None => self.text.push_str("null"),
        }
    }

    fn properties(&mut self, name: &str, properties: &[Property]) {
        self.member(name);
        if properties.is_empty() {
            self.text.push_str("null");
            return;
        }
        self.text.push('{');
        for property in properties {
            self.comma();
            json_string(&property.name, &mut self.text);
            self.text.push(':');
            self.schema(&property.schema);
        }
        self.text.push('}');
    }

    fn dependencies(&mut self, dependencies: Option<&[Dependency]>) {
        let Some(dependencies) = dependencies else {
            return self.text.push_str("null");
        };
        self.text.push('{');
        for dependency in dependencies {
            self.comma();
            json_string(&dependency.name, &mut self.text);
            self.text.push_str(":{\"Schema\":");
            self.maybe(dependency.schema.as_ref());
            self.text.push_str(",\"Property\":null}");
        }
        self.text.push('}');
    }

    fn items(&mut self, items: Option<&Items>) {
        let (one, each): (Option<&JsonSchema>, &[JsonSchema]) = match items {
            None => return self.text.push_str("null"),
            Some(Items::One(schema)) => (Some(schema), &[]),
            Some(Items::Each(schemas)) => (None, schemas),
        };
        self.text.push_str("{\"Schema\":");
        self.maybe(one);
        self.schemas("JSONSchemas", each);
        self.text.push('}');
    }

    fn additional(&mut self, name: &str, additional: Option<&AdditionalProperties>) {
        self.member(name);
        let (allows, schema) = match additional {
            None => return self.text.push_str("null"),
            Some(AdditionalProperties::Allowed(allows)) => (*allows, None),
            Some(AdditionalProperties::Schema(schema)) => (true, Some(schema)),
        };
        self.text.push('{');
        self.flag("Allows", allows);
        self.member("Schema");
        self.maybe(schema);
        self.text.push('}');
    }

    /// A comma, unless nothing stands before.
    fn comma(&mut self) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json_string(text, &mut out);
    out
}
