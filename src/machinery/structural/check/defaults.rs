//! Defaults: they say nothing that would be dropped, and they are values that the schema takes.

use super::place::Place;
use crate::decode::DecodeError;
use crate::dynamic::DescError;
use crate::field::{BadValue, ErrorList, FieldError, Path};
use crate::json;
use crate::meta::v1::ObjectMeta;
use crate::reflect::Value;
use crate::structural::compile::{DEFAULT, holder};
use crate::structural::rules::{Evaluation, check_rules};
use crate::structural::schema::{JsonSchema, Keywords};
use crate::structural::validate::{check_default, check_embedded};
use crate::structural::view::{View, item};

/// Cost that the rules of all defaults of a schema may take together.
const BUDGET: u64 = 10_000_000;
const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Appends what is wrong with the defaults of a resource's schema. With `pruned`, they may say nothing that is dropped.
pub(super) fn check(schema: &JsonSchema, pruned: bool, path: &Path, errors: &mut ErrorList) {
    let mut walk = Walk {
        pruned,
        budget: Some(BUDGET),
        errors,
    };
    let place = Place::Root(path);
    let within = Within {
        resource: schema,
        around: &Around::Nothing,
        metadata: false,
    };
    walk.schema(schema, true, &place, within);
}

/// Whether a default anywhere in a schema says something that is dropped.
pub(super) fn has_unknown(schema: &JsonSchema) -> bool {
    schema.any(&|schema| {
        let Some(default) = &schema.default else { return false };
        with_value(schema, false, default, |value| is_unknown(value, Some(schema))).is_ok_and(|unknown| unknown)
    })
}

struct Walk<'e> {
    pruned: bool,
    /// What is left for rules; `None`: more was needed, and nothing further is looked at.
    budget: Option<u64>,
    errors: &'e mut ErrorList,
}

/// The resource that a schema is a part of.
#[derive(Clone, Copy)]
struct Within<'a> {
    resource: &'a JsonSchema,
    /// What a value lies in, from the resource on.
    around: &'a Around<'a>,
    /// It is a part of the type or metadata.
    metadata: bool,
}

/// Members and items, from the innermost on.
enum Around<'a> {
    Nothing,
    Member(&'a Around<'a>, &'a str),
    Item(&'a Around<'a>),
}

impl Walk<'_> {
    fn schema(&mut self, schema: &JsonSchema, root: bool, place: &Place<'_>, within: Within<'_>) {
        if self.budget.is_none() || self.errors.is_full() {
            return;
        }
        let is_resource = root || schema.has(Keywords::EMBEDDED);
        let within = match is_resource {
            true => Within {
                resource: schema,
                around: &Around::Nothing,
                metadata: false,
            },
            false => within,
        };
        if let Some(default) = &schema.default {
            let path = place.at("default");
            let errors = match within.metadata {
                true => self.of_metadata(schema, default, &path, within),
                false => self.own(schema, is_resource, default, &path),
            };
            self.errors.extend(errors.iter().cloned());
        }
        if let Some(items) = schema.item() {
            let around = Around::Item(within.around);
            let below = Within {
                around: &around,
                ..within
            };
            self.schema(items, false, &Place::Keyword(place, "items"), below);
        }
        for property in &schema.properties {
            let name = property.name.as_str();
            let around = Around::Member(within.around, name);
            let below = Within {
                around: &around,
                metadata: within.metadata || is_resource && TYPE_AND_METADATA.contains(&name),
                ..within
            };
            self.schema(&property.schema, false, &place.property(name), below);
        }
    }

    fn own(&mut self, schema: &JsonSchema, is_resource: bool, default: &str, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let checked = with_value(schema, is_resource, default, |value| {
            if self.pruned && is_unknown_of(value, schema, is_resource) {
                errors.push(FieldError::invalid(path, value.shown(), "must not have unknown fields"));
            }
            let before = errors.len();
            check_embedded((schema, is_resource), value, path, &mut errors);
            if errors.len() == before {
                self.values((schema, is_resource), value, path, &mut errors);
            }
        });
        if let Err(why) = checked {
            let wrong = is_resource.then(|| unreadable(default, path)).flatten();
            errors.push(wrong.unwrap_or_else(|| FieldError::invalid(path, BadValue::json(default), why.to_string())));
        }
        errors
    }

    /// A default of the type or metadata of a resource: looked at as if it were that of an object.
    fn of_metadata(&mut self, schema: &JsonSchema, default: &str, path: &Path, within: Within<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        let wrong = |why: String| {
            let detail = format!("must result in valid metadata: {why}");
            FieldError::invalid(path, BadValue::json(default), detail)
        };
        let object = within.around.object(default);
        if let Some(error) = unreadable(&object, &Path::root()) {
            return ErrorList::from(wrong(error.to_string()));
        }
        let found = with_value(within.resource, true, &object, |value| {
            let mut found = ErrorList::new();
            check_embedded((within.resource, true), value, &Path::root(), &mut found);
            found
        });
        match found {
            Err(why) => errors.push(wrong(why.to_string())),
            Ok(found) if !found.is_empty() => errors.push(wrong(found.to_string())),
            Ok(_) => {
                let checked = with_value(schema, false, default, |value| {
                    self.values((schema, false), value, path, &mut errors);
                });
                if let Err(why) = checked {
                    errors.push(wrong(why.to_string()));
                }
            }
        }
        errors
    }

    /// Types, bounds and rules: of a value that stays as it is, and of one that is new.
    fn values(
        &mut self,
        (schema, is_resource): (&JsonSchema, bool),
        value: &View<'_>,
        path: &Path,
        errors: &mut ErrorList,
    ) {
        let before = errors.len();
        check_default(schema, value, path, errors);
        let Some(budget) = self.budget.filter(|_| errors.len() == before) else {
            return;
        };
        if !schema.has(Keywords::RULES_BELOW) {
            return;
        }
        let evaluation = Evaluation {
            root: path,
            is_resource,
            budget,
            ratchets: false,
        };
        let same = check_rules(schema, value, Some(value), &evaluation);
        let mut left = same.left;
        let good = same.errors.is_empty();
        errors.extend(same.errors);
        if good {
            let new = check_rules(schema, value, None, &evaluation);
            errors.extend(new.errors);
            left = left.zip(new.left).map(|(a, b)| a.min(b));
        }
        self.budget = left;
    }
}

impl Around<'_> {
    /// The JSON of an object that has this value there, and a type.
    fn object(&self, value: &str) -> String {
        let (mut text, mut around) = (value.to_owned(), self);
        let mut outermost = "";
        loop {
            around = match around {
                Around::Nothing => break,
                Around::Item(outer) => {
                    text = format!("[{text}]");
                    outer
                }
                Around::Member(outer, name) => {
                    text = format!("{{{}:{text}}}", serde_json::Value::from(*name));
                    outermost = name;
                    outer
                }
            };
        }
        for (name, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            if name != outermost {
                text = format!("{{\"{name}\":\"{value}\",{}", text.trim_start_matches('{'));
            }
        }
        text
    }
}

/// What keeps the type and metadata of an object from being read.
fn unreadable(object: &str, path: &Path) -> Option<FieldError> {
    let object: serde_json::Value = serde_json::from_str(object).ok()?;
    for name in ["kind", "apiVersion"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
            let shown = BadValue::json(value.to_string());
            return Some(FieldError::invalid(&path.child(name), shown, "must be a string"));
        }
    }
    let metadata = object.get("metadata")?.to_string();
    let error = json::read(metadata.as_bytes(), &mut ObjectMeta::default()).err()?;
    let path = path.child("metadata");
    Some(FieldError::invalid(&path, BadValue::json(metadata), error.to_string()))
}

/// Why a value can't be read as one of a schema.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(transparent)]
    Schema(#[from] DescError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Reads a value as one of the schema, which nothing is dropped of, and looks at it.
fn with_value<T>(
    schema: &JsonSchema,
    is_resource: bool,
    json: &str,
    look: impl FnOnce(&View<'_>) -> T,
) -> Result<T, Unreadable> {
    let desc = holder(schema, is_resource)?;
    let mut object = desc.new_object();
    let text = format!("{{\"{DEFAULT}\":{json}}}");
    json::read(text.as_bytes(), object.as_reflect_mut())?;
    let object = object.as_reflect();
    let value = desc
        .field(DEFAULT)
        .map_or(Value::Absent, |(index, _)| object.get(index));
    Ok(look(&View::of(value).unwrap_or(View::Null)))
}

fn is_unknown_of(value: &View<'_>, schema: &JsonSchema, is_resource: bool) -> bool {
    match value.as_object() {
        Some(object) if is_resource && !schema.has(Keywords::EMBEDDED) => {
            let mut unknown = false;
            object.for_each(&mut |name, value| {
                unknown = unknown || !TYPE_AND_METADATA.contains(&name) && is_unknown_member(schema, name, &value);
            });
            unknown
        }
        _ => is_unknown(value, Some(schema)),
    }
}

/// Whether pruning by the schema would take something from a value.
fn is_unknown(value: &View<'_>, schema: Option<&JsonSchema>) -> bool {
    match (value, schema) {
        (View::Object(object), None) => object.len() > 0,
        (View::Object(object), Some(schema)) => {
            let mut unknown = false;
            object.for_each(&mut |name, value| {
                let meta = schema.has(Keywords::EMBEDDED) && TYPE_AND_METADATA.contains(&name);
                unknown = unknown || !meta && is_unknown_member(schema, name, &value);
            });
            unknown
        }
        (View::List(list), schema) => {
            let preserved = schema.is_some_and(|schema| schema.has(Keywords::PRESERVE));
            let items = schema.and_then(JsonSchema::item);
            (0..list.len())
                .filter_map(|index| item(*list, index))
                .any(|item| match preserved {
                    true => is_unknown_if_preserved(&item, items),
                    false => is_unknown(&item, items),
                })
        }
        _ => false,
    }
}

fn is_unknown_member(schema: &JsonSchema, name: &str, value: &View<'_>) -> bool {
    match schema.property(name) {
        Some(own) => is_unknown(value, Some(own)),
        None if schema.additional_properties.is_some() => is_unknown(value, schema.additional()),
        None => !schema.has(Keywords::PRESERVE),
    }
}

/// As [`is_unknown`], of an item of a list whose unknown fields are preserved.
fn is_unknown_if_preserved(value: &View<'_>, schema: Option<&JsonSchema>) -> bool {
    let Some(schema) = schema else { return false };
    match value {
        View::Object(object) => {
            let mut unknown = false;
            object.for_each(&mut |name, value| {
                let meta = schema.has(Keywords::EMBEDDED) && TYPE_AND_METADATA.contains(&name);
                let declared = schema.property(name).is_some() || schema.additional_properties.is_some();
                unknown = unknown || !meta && declared && is_unknown_member(schema, name, &value);
            });
            unknown
        }
        View::List(list) => {
            let mut items = (0..list.len()).filter_map(|index| item(*list, index));
            items.any(|item| is_unknown_if_preserved(&item, schema.item()))
        }
        _ => false,
    }
}
