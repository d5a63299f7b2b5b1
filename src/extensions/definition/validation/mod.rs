//! Validation of definitions. What clients are told are the paths of the form that all versions have in common
//! ([`lifted`]). A change is not asked for what the stored definition does not have either.

mod columns;
mod conversion;
mod lifted;
mod names;
mod schemas;
pub mod webhook;

use std::collections::{HashMap, HashSet};

use keelson_api::apiextensions_k8s_io::v1::{
    CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
};
use keelson_machinery::field::text::{json_list, printable};
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::validation::list_value;
use keelson_machinery::validation::names::{dns_1035_label, dns_subdomain};

use super::approval::{self, Approval};
use crate::conditions::{self, ESTABLISHED};
use conversion::Lenience;
use lifted::{Spec, Version};
use schemas::{Demands, Schemas};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];
const IMMUTABLE: &str = "field is immutable";
/// The most bytes of a warning of a deprecated version.
const MAX_WARNING: usize = 256;

/// Faults of a new definition.
pub fn create(new: &CustomResourceDefinition) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = name_faults(new);
    let demands = (conversion::lenience(None, false), true);
    errors.extend(spec_faults(&new.spec, None, demands, &path));
    errors.extend(status(new));
    errors.extend(stored_versions(new));
    errors.extend(approval_faults(new, None));
    errors.extend(preserve_faults(new, None));
    errors
}

/// Faults of a changed definition.
pub fn update(new: &CustomResourceDefinition, old: &CustomResourceDefinition) -> ErrorList {
    let path = Path::new("spec");
    let established = conditions::is_true(old, ESTABLISHED);
    let lenience = conversion::lenience(old.spec.conversion.as_deref(), established);
    let mut errors = spec_faults(&new.spec, Some(&old.spec), (lenience, has_schemas(&old.spec)), &path);
    let (now, was) = (&new.spec, &old.spec);
    let kept = [
        ("scope", established, &now.scope, &was.scope),
        ("names.kind", established, &now.names.kind, &was.names.kind),
        ("group", true, &now.group, &was.group),
        ("names.plural", true, &now.names.plural, &was.names.plural),
    ];
    let changed = kept.into_iter().filter(|(_, kept, now, was)| *kept && now != was);
    errors.extend(changed.map(|(name, _, now, _)| FieldError::invalid(&path.child(name), now, IMMUTABLE)));
    errors.extend(status(new));
    errors.extend(stored_versions(new));
    errors.extend(approval_faults(new, Some(old)));
    errors.extend(preserve_faults(new, Some(old)));
    errors
}

/// Formats in the schemas of a definition that nothing is known of and that were not in those before.
pub fn new_formats(new: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>) -> Vec<String> {
    let of = |definition: &CustomResourceDefinition| Schemas::of(&Spec::of(&definition.spec)).unknown_formats();
    let had = old.map(of).unwrap_or_default();
    of(new).into_iter().filter(|format| !had.contains(format)).collect()
}

/// Faults of a status.
pub fn status(new: &CustomResourceDefinition) -> ErrorList {
    names::faults(&new.status.accepted_names, &Path::new("status").child("acceptedNames"))
}

/// The name says plural and group; that it is a subdomain is looked at with all metadata.
fn name_faults(new: &CustomResourceDefinition) -> ErrorList {
    let (metadata, spec) = (&new.metadata, &new.spec);
    let wanted = format!("{}.{}", spec.names.plural, spec.group);
    let names = [("generateName", &metadata.generate_name), ("name", &metadata.name)];
    let wrong = names
        .into_iter()
        .filter(|(_, name)| !name.is_empty() && **name != wanted);
    wrong
        .map(|(field, name)| {
            let path = Path::new("metadata").child(field);
            FieldError::invalid(&path, name, "must be spec.names.plural+\".\"+spec.group")
        })
        .collect()
}

fn spec_faults(
    spec: &CustomResourceDefinitionSpec,
    old: Option<&CustomResourceDefinitionSpec>,
    (lenience, needs_schemas): (Lenience, bool),
    path: &Path,
) -> ErrorList {
    let lifted = Spec::of(spec);
    let schemas = Schemas::of(&lifted);
    let demands = Demands::new(&lifted, &schemas, old);
    let mut errors = group_faults(&spec.group, &path.child("group"));
    let scope = path.child("scope");
    match spec.scope.as_str() {
        "" => errors.push(FieldError::required(&scope, "")),
        known if SCOPES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(&scope, other, &SCOPES)),
    }
    errors.extend(missing_schemas(&lifted, needs_schemas, &path.child("versions")));
    if spec.preserve_unknown_fields && schemas.have_defaults() {
        let text = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(&path.child("preserveUnknownFields"), true, text));
    }
    for (place, version) in lifted.versions.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(version_faults(
            &demands,
            (place, version),
            &path.child("versions").index(place),
        ));
    }
    errors.extend(version_list_faults(spec, path));
    errors.extend(names::missing(&spec.names, &path.child("names")));
    errors.extend(names::faults(&spec.names, &path.child("names")));
    errors.extend(demands.common(path));
    errors.extend(common_faults(&lifted, path));
    errors.extend(demands.common_selectable(&path.child("selectableFields")));
    errors.extend(conversion_faults(spec, lenience, &path.child("conversion")));
    errors
}

/// Faults of what all versions have, beside the schema.
fn common_faults(lifted: &Spec<'_>, path: &Path) -> ErrorList {
    let mut errors = columns::subresources(lifted.common.subresources, &path.child("subresources"));
    errors.extend(columns::columns(
        lifted.common.columns,
        &path.child("additionalPrinterColumns"),
    ));
    errors
}

fn group_faults(group: &str, path: &Path) -> ErrorList {
    let faults = dns_subdomain(group);
    match group {
        "" => FieldError::required(path, "").into(),
        _ if !faults.is_empty() => FieldError::invalid(path, group, faults.join(",")).into(),
        _ if !group.contains('.') => {
            FieldError::invalid(path, group, "should be a domain with at least one dot").into()
        }
        _ => ErrorList::default(),
    }
}

/// Whether every version has a schema.
fn has_schemas(spec: &CustomResourceDefinitionSpec) -> bool {
    let has = |version: &CustomResourceDefinitionVersion| {
        let schema = version.schema.as_ref();
        schema.is_some_and(|schema| schema.open_apiv3_schema.is_some())
    };
    spec.versions.iter().all(has)
}

/// Without a schema nothing of an object would be kept.
fn missing_schemas(lifted: &Spec<'_>, needed: bool, path: &Path) -> ErrorList {
    let common = lifted
        .common
        .schema
        .and_then(|schema| schema.open_apiv3_schema.as_ref());
    if common.is_some() || (!needed && lifted.spec.preserve_unknown_fields) {
        return ErrorList::default();
    }
    let mut errors = ErrorList::new();
    for (place, Version { version, own }) in lifted.versions.iter().enumerate() {
        let schema = own.schema.and_then(|schema| schema.open_apiv3_schema.as_ref());
        if schema.is_none() && (needed || version.served) {
            let path = path.index(place).child("schema").child("openAPIV3Schema");
            let text = if needed {
                ""
            } else {
                "because otherwise all fields are pruned"
            };
            errors.push(FieldError::required(&path, text));
        }
    }
    errors
}

fn version_faults(demands: &Demands<'_>, (place, version): (usize, &Version<'_>), path: &Path) -> ErrorList {
    let Version { version, own } = version;
    let mut errors = ErrorList::new();
    let faults = dns_1035_label(&version.name);
    if !faults.is_empty() {
        errors.push(FieldError::invalid(
            &path.child("name"),
            &version.name,
            faults.join(","),
        ));
    }
    let warning = path.child("deprecationWarning");
    for text in warning_faults(version) {
        let shown = version.deprecation_warning.as_deref().unwrap_or_default();
        errors.push(FieldError::invalid(&warning, shown, text));
    }
    errors.extend(demands.of_version(place, path));
    errors.extend(columns::subresources(own.subresources, &path.child("subresources")));
    errors.extend(columns::columns(own.columns, &path.child("additionalPrinterColumns")));
    errors.extend(demands.selectable_of_version(place, &path.child("selectableFields")));
    errors
}

fn warning_faults(version: &CustomResourceDefinitionVersion) -> Vec<String> {
    let Some(warning) = &version.deprecation_warning else {
        return Vec::new();
    };
    if !version.deprecated {
        return vec!["can only be set for deprecated versions".to_owned()];
    }
    let mut faults = Vec::new();
    if warning.len() > MAX_WARNING {
        faults.push(format!("must be <= {MAX_WARNING} characters long"));
    }
    if warning.is_empty() {
        faults.push("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !printable(*c)) {
        faults.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
    faults
}

/// Faults of the versions as a whole.
fn version_list_faults(spec: &CustomResourceDefinitionSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let versions = path.child("versions");
    let shown = || list_value(spec.versions.iter().map(|version| version as _));
    let mut names = HashSet::new();
    if !spec.versions.iter().all(|version| names.insert(&version.name)) {
        errors.push(FieldError::invalid(
            &versions,
            shown(),
            "must contain unique version names",
        ));
    }
    if spec.versions.iter().filter(|version| version.storage).count() != 1 {
        let text = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&versions, shown(), text));
    }
    // The first version stands above the list too.
    if let Some(first) = spec.versions.first().filter(|first| !first.name.is_empty()) {
        let faults = dns_1035_label(&first.name);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(
                &path.child("version"),
                &first.name,
                faults.join(","),
            ));
        }
    }
    errors
}

fn conversion_faults(spec: &CustomResourceDefinitionSpec, lenience: Lenience, path: &Path) -> ErrorList {
    let Some(conversion) = &spec.conversion else {
        return ErrorList::default();
    };
    let mut errors = ErrorList::new();
    if conversion.strategy != "None" && spec.preserve_unknown_fields {
        let text = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(&path.child("strategy"), &conversion.strategy, text));
    }
    errors.extend(conversion::faults(conversion, lenience, path));
    errors
}

/// Objects may be stored in any version that was ever stored, until somebody says that there are none any more.
fn stored_versions(new: &CustomResourceDefinition) -> ErrorList {
    let path = Path::new("status").child("storedVersions");
    let (stored, versions) = (&new.status.stored_versions, &new.spec.versions);
    if stored.is_empty() {
        return FieldError::invalid(&path, BadValue::null(), "must have at least one stored version").into();
    }
    // Of a name that stands there twice the last one counts.
    let last: HashMap<&str, usize> = (0..).zip(stored).map(|(place, name)| (name.as_str(), place)).collect();
    let mut names = HashSet::new();
    let mut errors = ErrorList::new();
    for version in versions {
        // A version of that name before it has taken the name.
        let is_first = names.insert(version.name.as_str());
        if !version.storage || (is_first && last.contains_key(version.name.as_str())) || errors.is_full() {
            continue;
        }
        let shown = BadValue::json(json_list(stored.iter().map(String::as_str)));
        let text = format!("must have the storage version {}", version.name);
        errors.push(FieldError::invalid(&path, shown, text));
    }
    for (place, name) in stored.iter().enumerate() {
        if last.get(name.as_str()) == Some(&place) && !names.contains(name.as_str()) {
            let text = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(place), name, text));
        }
    }
    errors
}

/// Groups of Kubernetes itself need an approval, unless the definition was there with the same one before.
fn approval_faults(new: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>) -> ErrorList {
    if !approval::is_protected(&new.spec.group) {
        return ErrorList::default();
    }
    let (now, why) = approval::state(&new.metadata.annotations);
    let was = old.map(|old| approval::state(&old.metadata.annotations).0);
    if was == Some(now) {
        return ErrorList::default();
    }
    let path = Path::new("metadata").child("annotations").key(approval::ANNOTATION);
    match now {
        Approval::Approved | Approval::Bypassed => ErrorList::default(),
        Approval::Missing => FieldError::required(&path, why).into(),
        Approval::Invalid => {
            let given = new.metadata.annotations.get(approval::ANNOTATION);
            FieldError::invalid(&path, given.map_or("", String::as_str), why).into()
        }
    }
}

/// Schemas say what is preserved; only definitions of old do as a whole.
fn preserve_faults(new: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>) -> ErrorList {
    if !new.spec.preserve_unknown_fields || old.is_some_and(|old| old.spec.preserve_unknown_fields) {
        return ErrorList::default();
    }
    let text =
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    FieldError::invalid(&Path::new("spec").child("preserveUnknownFields"), true, text).into()
}

#[cfg(test)]
mod tests;
