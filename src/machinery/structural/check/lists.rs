//! List and map types of schemas: what has to be said together.

use super::display;
use super::keywords::Walk;
use super::place::Place;
use crate::field::text::json_list;
use crate::field::{BadValue, FieldError};
use crate::reflect::Name;
use crate::structural::schema::{Items, JsonSchema, Keywords, SchemaType};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

/// Checks `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` of a schema.
pub(super) fn check(walk: &mut Walk<'_>, schema: &JsonSchema, place: &Place<'_>) {
    if schema.topology.is_none() {
        return;
    }
    if let Some(ty) = schema.map_type() {
        let detail = "must be object if x-kubernetes-map-type is specified";
        expect_type(walk, schema, (SchemaType::Object, detail), place);
        if !matches!(ty, "atomic" | "granular") {
            let path = place.at(MAP_TYPE);
            walk.push(FieldError::not_supported(&path, ty, &["atomic", "granular"]));
        }
    }
    if let Some(ty) = schema.list_type() {
        let detail = "must be array if x-kubernetes-list-type is specified";
        let fits = expect_type(walk, schema, (SchemaType::Array, detail), place);
        if fits && walk.requirements.atomic_sets {
            set(walk, schema, place);
        }
        if !matches!(ty, "atomic" | "set" | "map") {
            let path = place.at(LIST_TYPE);
            walk.push(FieldError::not_supported(&path, ty, &["atomic", "set", "map"]));
        }
    }
    keys(walk, schema, place);
    if schema.list_type() == Some("map") {
        map(walk, schema, place);
    }
    if walk.requirements.map_keys {
        items(schema, place, &mut |error| walk.push(error));
    }
}

/// Whether the type is this one.
fn expect_type(
    walk: &mut Walk<'_>,
    schema: &JsonSchema,
    (ty, detail): (SchemaType, &'static str),
    place: &Place<'_>,
) -> bool {
    let path = || place.at("type");
    match schema.ty {
        own if own == ty => return true,
        SchemaType::Unset => walk.push(FieldError::required(&path(), detail)),
        _ => walk.push(FieldError::invalid(&path(), schema.type_name(), detail)),
    }
    false
}

/// Whether items of a set can be told apart as wholes. An error names what they would have to be.
pub(super) fn not_atomic(schema: &JsonSchema) -> Option<&'static str> {
    let items = schema.item().filter(|_| schema.list_type() == Some("set"))?;
    match items.ty {
        SchemaType::Array if !matches!(items.list_type(), None | Some("atomic")) => Some(LIST_TYPE),
        SchemaType::Object if items.map_type() != Some("atomic") => Some(MAP_TYPE),
        _ => None,
    }
}

fn set(walk: &mut Walk<'_>, schema: &JsonSchema, place: &Place<'_>) {
    if let (Some(keyword), Some(items)) = (not_atomic(schema), schema.item()) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let path = Place::Keyword(place, "items").at(keyword);
        walk.push(FieldError::invalid(&path, items.list_type(), detail));
    }
}

fn keys(walk: &mut Walk<'_>, schema: &JsonSchema, place: &Place<'_>) {
    const DETAIL: &str = "must be map if x-kubernetes-list-map-keys is non-empty";
    match schema.list_type() {
        _ if schema.map_keys().is_empty() => {}
        None => walk.push(FieldError::required(&place.at(LIST_TYPE), DETAIL)),
        Some("map") => {}
        Some(other) => walk.push(FieldError::invalid(&place.at(LIST_TYPE), other, DETAIL)),
    }
}

fn map(walk: &mut Walk<'_>, schema: &JsonSchema, place: &Place<'_>) {
    if schema.map_keys().is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        walk.push(FieldError::required(&place.at(MAP_KEYS), detail));
    }
    let items = match schema.items.as_deref() {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            return walk.push(FieldError::required(&place.at("items"), detail));
        }
        Some(items @ Items::Each(_)) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            let shown = BadValue::json(display::items(items));
            return walk.push(FieldError::invalid(&place.at("items"), shown, detail));
        }
        Some(Items::One(items)) => items,
    };
    if items.ty != SchemaType::Object {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let path = Place::Keyword(place, "items").at("type");
        return walk.push(FieldError::invalid(&path, items.type_name(), detail));
    }
    let names = || BadValue::json(json_list(schema.map_keys().iter().map(Name::as_str)));
    for (index, key) in schema.map_keys().iter().enumerate() {
        match items.property(key) {
            Some(own) if matches!(own.ty, SchemaType::Array | SchemaType::Object) => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let path = Place::Keyword(place, "items").property(key).at("type");
                walk.push(FieldError::invalid(&path, items.type_name(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                walk.push(FieldError::invalid(&place.at(MAP_KEYS), names(), detail));
            }
        }
        if schema.map_keys().iter().take(index).any(|other| other == key) {
            let detail = "must not contain duplicate entries";
            walk.push(FieldError::invalid(&place.at(MAP_KEYS), names(), detail));
        }
    }
}

/// What items of sets and maps have to be so that each of them can be told from the others.
pub(super) fn items(schema: &JsonSchema, place: &Place<'_>, found: &mut dyn FnMut(FieldError)) {
    let (Some(ty @ ("set" | "map")), Some(items)) = (schema.list_type(), schema.item()) else {
        return;
    };
    let below = Place::Keyword(place, "items");
    if items.has(Keywords::NULLABLE) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {ty}");
        found(FieldError::forbidden(&below.at("nullable"), detail));
    }
    if ty != "map" {
        return;
    }
    for key in schema.map_keys() {
        let Some(own) = items.property(key) else { continue };
        let below = below.property(key);
        if own.default.is_none() && !items.required.contains(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                property";
            found(FieldError::required(&below.at("default"), detail));
        }
        if own.has(Keywords::NULLABLE) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            found(FieldError::forbidden(&below.at("nullable"), detail));
        }
    }
}
