//! Validation of schemas themselves, as a definition brings them: that they are structural, say nothing that
//! definitions may not say, and have good defaults and rules that are not too expensive.

mod convertible;
mod defaults;
mod display;
mod keywords;
mod lists;
mod place;
mod rules;
mod structure;

use std::sync::atomic::AtomicUsize;

use super::schema::{JsonSchema, Keywords, SchemaType};
use crate::cel;
use crate::field::{BadValue, ErrorList, FieldError, Path};
pub(super) use structure::is_structural;

use keywords::Walk;
use place::Place;

/// What is demanded of the schemas of a definition. What was not held by the schemas that a definition had before is
/// not demanded of those that take their place.
#[derive(Debug)]
pub struct Requirements {
    structural: bool,
    /// Defaults say nothing that is dropped.
    pruned_defaults: bool,
    valid_types: bool,
    /// Items of sets are atomic.
    atomic_sets: bool,
    /// Items of sets and maps can be told apart.
    map_keys: bool,
    /// How much there was to compile in the rules of the definition's schemas so far, in bytes.
    to_compile: AtomicUsize,
}

impl Requirements {
    /// Of a definition, which takes the place of another or is new.
    pub fn of(new: &Definition<'_>, old: Option<&Definition<'_>>) -> Requirements {
        let old = old.map_or(&[] as &[_], |old| old.schemas);
        let any = |is: &dyn Fn(&JsonSchema) -> bool| old.iter().any(|schema| schema.any(is));
        let has_keys_of_none = |schema: &JsonSchema| {
            let mut found = false;
            lists::items(schema, &Place::Root(&Path::root()), &mut |_| found = true);
            found
        };
        let was_structural = old.iter().all(|schema| is_structural(schema));
        let needs_structure = |schema: &JsonSchema| {
            schema.default.is_some()
                || schema.topology.is_some()
                || !schema.rules().is_empty()
                || EXTENSIONS.iter().any(|keyword| schema.has(*keyword))
        };
        Requirements {
            structural: was_structural
                || !new.preserve_unknown_fields
                || new.schemas.iter().any(|schema| schema.any(&needs_structure)),
            pruned_defaults: !old
                .iter()
                .any(|schema| is_structural(schema) && defaults::has_unknown(schema)),
            valid_types: !any(&|schema| schema.ty == SchemaType::Other),
            atomic_sets: !any(&|schema| lists::not_atomic(schema).is_some()),
            map_keys: !any(&has_keys_of_none),
            to_compile: AtomicUsize::new(0),
        }
    }
}

/// Keywords that only structural schemas have.
const EXTENSIONS: [Keywords; 4] = [
    Keywords::EMBEDDED,
    Keywords::PRESERVE,
    Keywords::PRESERVE_FALSE,
    Keywords::INT_OR_STRING,
];

/// The schemas of a definition.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a> {
    /// `spec.preserveUnknownFields`.
    pub preserve_unknown_fields: bool,
    /// Of all versions that have one.
    pub schemas: &'a [&'a JsonSchema],
}

/// A schema that is to be checked.
pub struct Subject<'a> {
    pub schema: &'a JsonSchema,
    /// Of `openAPIV3Schema`.
    pub path: Path,
    /// The version has a subresource `status`.
    pub has_status: bool,
    /// It is what it was: its rules may be as expensive as they are.
    pub unchanged: bool,
    pub requirements: &'a Requirements,
}

/// What is wrong with the schema of a version of a definition.
pub fn check(subject: &Subject<'_>) -> ErrorList {
    let (schema, path, requirements) = (subject.schema, &subject.path, subject.requirements);
    let mut errors = ErrorList::new();
    if subject.has_status {
        errors.extend(unfit_for_status(schema, path));
    }
    if schema.has(Keywords::NULLABLE) {
        let path = path.child("nullable");
        errors.push(FieldError::forbidden(&path, "nullable cannot be true at the root"));
    }
    let obstacle = convertible::obstacle(schema).filter(|_| requirements.structural);
    let good = requirements.structural && obstacle.is_none() && {
        let before = errors.len();
        errors.extend(structure::check(schema, path));
        if errors.len() == before {
            defaults::check(schema, requirements.pruned_defaults, path, &mut errors);
        }
        errors.len() == before
    };
    let walked = || {
        let mut walk = Walk::new(requirements, subject.unchanged, good);
        walk.root(schema, &Place::Root(path), good);
        walk
    };
    let walk = match good && schema.has(Keywords::RULES_BELOW) {
        true => cel::many(walked),
        false => walked(),
    };
    errors.extend(walk.errors.iter().cloned());
    errors.extend(walk.rule_errors.iter().cloned());
    if let (true, Some(obstacle)) = (errors.is_empty(), obstacle) {
        errors.push(FieldError::invalid(path, "", obstacle));
    }
    errors.extend(walk.cost.errors(path));
    errors
}

/// What a schema may say at its root if the status is validated by a part of it alone.
const WITH_STATUS: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
    MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
    XPreserveUnknownFields XValidations";

/// The first thing that a schema says of whole objects and that would be lost where the status is validated alone.
fn unfit_for_status(schema: &JsonSchema, path: &Path) -> Option<FieldError> {
    let none = super::schema::Rare::default();
    let (rare, limits) = (schema.rare.as_deref().unwrap_or(&none), schema.limits());
    let lists = [schema.all_of(), schema.one_of(), schema.any_of()];
    let before_type = !rare.id.is_empty() || !rare.schema.is_empty() || rare.reference.is_some();
    let behind_type = schema.has(Keywords::NULLABLE)
        || schema.default.is_some()
        || !schema.enumeration.is_empty()
        || limits.max_properties.is_some()
        || limits.min_properties.is_some()
        || lists.iter().any(|list| !list.is_empty())
        || schema.not().is_some()
        || schema.additional_properties.is_some()
        || !rare.pattern_properties.is_empty()
        || rare.dependencies.is_some()
        || rare.additional_items.is_some()
        || !rare.definitions.is_empty()
        || schema.has(Keywords::EMBEDDED)
        || schema.has(Keywords::INT_OR_STRING)
        || schema.topology.is_some();
    if !before_type && !matches!(schema.ty, SchemaType::Unset | SchemaType::Object) {
        let detail =
            r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
        let path = path.child("type");
        return Some(FieldError::invalid(&path, schema.type_name(), detail));
    }
    (before_type || behind_type).then(|| {
        let detail = format!(
            "only [{WITH_STATUS}] fields are allowed at the root of the schema if the status subresource is enabled"
        );
        FieldError::invalid(path, BadValue::json(display::schema(schema)), detail)
    })
}
