//! Keywords that structural schemas do not have at all.

use crate::structural::schema::{AdditionalProperties, Items, JsonSchema, Keywords};

/// The first thing in a schema that no structural schema has; `None`: there is none.
pub(super) fn obstacle(schema: &JsonSchema) -> Option<&'static str> {
    let junctors = || {
        let lists = [schema.all_of(), schema.any_of(), schema.one_of()];
        schema.not().into_iter().chain(lists.into_iter().flatten())
    };
    own(schema)
        .or_else(|| junctors().find_map(obstacle))
        .or_else(|| preserve(schema))
        .or_else(|| items(schema))
        .or_else(|| schema.properties.iter().find_map(|property| obstacle(&property.schema)))
        .or_else(|| match schema.additional_properties.as_deref() {
            Some(AdditionalProperties::Schema(values)) => obstacle(values),
            _ => None,
        })
}

fn own(schema: &JsonSchema) -> Option<&'static str> {
    let rare = schema.rare.as_deref()?;
    let said = |said: bool, text: &'static str| said.then_some(text);
    said(!rare.id.is_empty(), "OpenAPIV3Schema 'id' is not supported")
        .or(said(
            !rare.schema.is_empty(),
            "OpenAPIV3Schema 'schema' is not supported",
        ))
        .or(said(
            rare.reference.as_ref().is_some_and(|reference| !reference.is_empty()),
            "OpenAPIV3Schema '$ref' is not supported",
        ))
        .or(said(
            !rare.pattern_properties.is_empty(),
            "OpenAPIV3Schema 'patternProperties' is not supported",
        ))
        .or(said(
            rare.dependencies.as_ref().is_some_and(|list| !list.is_empty()),
            "OpenAPIV3Schema 'dependencies' is not supported",
        ))
        .or(said(
            rare.additional_items.is_some(),
            "OpenAPIV3Schema 'additionalItems' is not supported",
        ))
        .or(said(
            !rare.definitions.is_empty(),
            "OpenAPIV3Schema 'definitions' is not supported",
        ))
}

fn preserve(schema: &JsonSchema) -> Option<&'static str> {
    let wrong = schema.has(Keywords::PRESERVE_FALSE);
    wrong.then_some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")
}

fn items(schema: &JsonSchema) -> Option<&'static str> {
    match schema.items.as_deref()? {
        Items::Each(schemas) if !schemas.is_empty() => {
            Some("OpenAPIV3Schema 'items' must be a schema, but is an array")
        }
        Items::Each(_) => None,
        Items::One(schema) => obstacle(schema),
    }
}
