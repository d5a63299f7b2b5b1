//! Rules of `metadata` that every object follows, on creation and on update.

use std::collections::{BTreeSet, HashSet};

use super::labels::{qualified_name, validate_annotations, validate_labels};
use super::names::{self, NamePart};
use super::{leaf_value, list_value, message_value};
use crate::field::text::quote;
use crate::field::{BadValue, ErrorList, FieldError, Path};
use crate::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use crate::scheme::NameRule;

/// The text of every immutable field.
pub const IMMUTABLE: &str = "field is immutable";
/// Longest name of a field manager, in bytes.
pub const FIELD_MANAGER_MAX: usize = 128;
/// Longest name of a subresource in managed fields, in bytes.
pub const SUBRESOURCE_MAX: usize = 256;

/// Finalizer of a deletion that orphans the dependents.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// Finalizer of a deletion that waits for the dependents.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

/// Metadata of an object that is about to be created, its name already generated.
pub fn validate_object_meta(meta: &ObjectMeta, namespaced: bool, rule: NameRule, path: &Path) -> ErrorList {
    validate_object_meta_with(meta, namespaced, &|name, part| names::check(rule, name, part), path)
}

/// As [`validate_object_meta`], for kinds whose names follow a rule of their own (one text per broken rule).
pub fn validate_object_meta_with(
    meta: &ObjectMeta,
    namespaced: bool,
    rule: &dyn Fn(&str, NamePart) -> Vec<String>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if !meta.generate_name.is_empty() {
        let path = path.child("generateName");
        let texts = rule(&meta.generate_name, NamePart::Prefix);
        errors.extend(
            texts
                .into_iter()
                .map(|t| FieldError::invalid(&path, &meta.generate_name, t)),
        );
    }
    let name = path.child("name");
    if meta.name.is_empty() {
        errors.push(FieldError::required(&name, "name or generateName is required"));
    } else {
        let texts = rule(&meta.name, NamePart::Whole);
        errors.extend(texts.into_iter().map(|t| FieldError::invalid(&name, &meta.name, t)));
    }
    let namespace = path.child("namespace");
    match (namespaced, meta.namespace.as_str()) {
        (true, "") => errors.push(FieldError::required(&namespace, "")),
        (true, text) => {
            errors.extend(
                names::dns_label(text)
                    .into_iter()
                    .map(|t| FieldError::invalid(&namespace, text, t)),
            );
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&namespace, "not allowed on this type")),
    }
    if meta.generation < 0 {
        let text = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), meta.generation, text));
    }
    errors.extend(validate_labels(&meta.labels, &path.child("labels")));
    errors.extend(validate_annotations(&meta.annotations, &path.child("annotations")));
    errors.extend(validate_owner_references(
        &meta.owner_references,
        &path.child("ownerReferences"),
    ));
    errors.extend(validate_finalizers(&meta.finalizers, &path.child("finalizers")));
    errors.extend(validate_managed_fields(
        &meta.managed_fields,
        &path.child("managedFields"),
    ));
    errors
}

/// Metadata of an object that is about to take the place of `old`.
pub fn validate_object_meta_update(new: &ObjectMeta, old: &ObjectMeta, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.deletion_timestamp.is_some() {
        errors.extend(validate_no_new_finalizers(
            &new.finalizers,
            &old.finalizers,
            &path.child("finalizers"),
        ));
    }
    if new.resource_version.is_empty() {
        let path = path.child("resourceVersion");
        errors.push(FieldError::invalid(&path, "", "must be specified for an update"));
    }
    if new.generation < old.generation {
        let path = path.child("generation");
        errors.push(FieldError::invalid(&path, new.generation, "must not be decremented"));
    }
    let mut immutable = |same: bool, field: &'static str, value: BadValue| {
        if !same {
            errors.push(FieldError::invalid(&path.child(field), value, IMMUTABLE));
        }
    };
    immutable(new.name == old.name, "name", (&new.name).into());
    immutable(new.namespace == old.namespace, "namespace", (&new.namespace).into());
    immutable(new.uid == old.uid, "uid", (&new.uid).into());
    let (created, deleted) = (&new.creation_timestamp, &new.deletion_timestamp);
    immutable(
        *created == old.creation_timestamp,
        "creationTimestamp",
        leaf_value(created),
    );
    let value = deleted.as_ref().map_or_else(BadValue::null, |t| leaf_value(t));
    immutable(*deleted == old.deletion_timestamp, "deletionTimestamp", value);
    let grace = new.deletion_grace_period_seconds;
    immutable(
        grace == old.deletion_grace_period_seconds,
        "deletionGracePeriodSeconds",
        grace.into(),
    );

    errors.extend(validate_labels(&new.labels, &path.child("labels")));
    errors.extend(validate_annotations(&new.annotations, &path.child("annotations")));
    errors.extend(validate_owner_references(
        &new.owner_references,
        &path.child("ownerReferences"),
    ));
    errors.extend(validate_managed_fields(
        &new.managed_fields,
        &path.child("managedFields"),
    ));
    errors
}

/// Owners: complete references, none of them an Event, at most one of them the controller.
pub fn validate_owner_references(owners: &[OwnerReference], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for owner in owners {
        if errors.is_full() {
            break;
        }
        errors.extend(validate_owner_reference(owner, path));
        if owner.controller != Some(true) {
            continue;
        }
        let name = format!("{}/{}", owner.kind, owner.name);
        match &controller {
            None => controller = Some(name),
            Some(first) => {
                let text = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                     and {name}"
                );
                let value = list_value(owners.iter().map(|o| o as _));
                errors.push(FieldError::invalid(path, value, text));
            }
        }
    }
    errors
}

fn validate_owner_reference(owner: &OwnerReference, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let version = match owner.api_version.split('/').collect::<Vec<_>>()[..] {
        [version] | [_, version] => version,
        _ => "",
    };
    if version.is_empty() {
        let path = path.child("apiVersion");
        errors.push(FieldError::invalid(
            &path,
            &owner.api_version,
            "version must not be empty",
        ));
    }
    for (field, value) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
        if value.is_empty() {
            errors.push(FieldError::invalid(&path.child(field), value, "must not be empty"));
        }
    }
    if owner.api_version == "v1" && owner.kind == "Event" {
        let text = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, message_value(owner), text));
    }
    errors
}

/// Finalizers: qualified names; not both of the two that say what becomes of dependents.
pub fn validate_finalizers(finalizers: &[String], path: &Path) -> ErrorList {
    let mut errors: ErrorList = finalizers
        .iter()
        .flat_map(|f| validate_finalizer_name(f, path))
        .collect();
    let has = |name: &str| finalizers.iter().any(|f| f == name);
    if has(FINALIZER_ORPHAN) && has(FINALIZER_FOREGROUND) {
        let text = format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid(path, finalizers, text));
    }
    errors
}

/// One finalizer.
pub fn validate_finalizer_name(finalizer: &str, path: &Path) -> ErrorList {
    qualified_name(finalizer)
        .into_iter()
        .map(|t| FieldError::invalid(path, finalizer, t))
        .collect()
}

/// An object that is being deleted gets no new finalizers.
pub fn validate_no_new_finalizers(new: &[String], old: &[String], path: &Path) -> ErrorList {
    let old: HashSet<&String> = old.iter().collect();
    let extra: BTreeSet<&String> = new.iter().filter(|f| !old.contains(f)).collect();
    if extra.is_empty() {
        return ErrorList::new();
    }
    let extra = extra.iter().map(|f| quote(f)).collect::<Vec<_>>().join(", ");
    let text = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{extra}}}"
    );
    FieldError::forbidden(path, text).into()
}

/// Entries of managed fields, but not the sets of fields in them.
pub fn validate_managed_fields(entries: &[ManagedFieldsEntry], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, entry) in entries.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(i);
        if !matches!(entry.operation.as_str(), "Apply" | "Update") {
            let text = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.child("operation"), &entry.operation, text));
        }
        if !matches!(entry.fields_type.as_str(), "" | "FieldsV1") {
            errors.push(FieldError::invalid(
                &path.child("fieldsType"),
                &entry.fields_type,
                "must be `FieldsV1`",
            ));
        }
        errors.extend(validate_field_manager(&entry.manager, &path.child("manager")));
        if entry.subresource.len() > SUBRESOURCE_MAX {
            errors.push(FieldError::too_long(&path.child("subresource"), SUBRESOURCE_MAX));
        }
    }
    errors
}

/// The name of a field manager: short and printable.
pub fn validate_field_manager(manager: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > FIELD_MANAGER_MAX {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_MAX));
    }
    for (at, c) in manager.char_indices() {
        if errors.is_full() {
            break;
        }
        if !crate::field::text::printable(c) {
            let text = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
            errors.push(FieldError::invalid(path, manager, text));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
