//! Names of definitions: each of them a label.

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinitionNames;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::validation::names::dns_1035_label;

/// Faults of names that are wanted or had.
pub fn faults(names: &CustomResourceDefinitionNames, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut label = |field: Path, name: &str, told: &str, text: &str| {
        let faults = if name.is_empty() {
            Vec::new()
        } else {
            dns_1035_label(name)
        };
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&field, told, format!("{text}{}", faults.join(","))));
        }
    };
    label(path.child("plural"), &names.plural, &names.plural, "");
    label(path.child("singular"), &names.singular, &names.singular, "");
    let text = "may have mixed case, but should otherwise match: ";
    for (field, kind) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        label(path.child(field), &kind.to_lowercase(), kind, text);
    }
    errors.extend(labels(&names.short_names, &path.child("shortNames")));
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let text = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), &names.list_kind, text));
    }
    errors.extend(labels(&names.categories, &path.child("categories")));
    errors
}

/// Faults of names that have to be there.
pub fn missing(names: &CustomResourceDefinitionNames, path: &Path) -> ErrorList {
    let needed = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    let missing = needed.into_iter().filter(|(_, name)| name.is_empty());
    missing
        .map(|(field, _)| FieldError::required(&path.child(field), ""))
        .collect()
}

fn labels(names: &[String], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (place, name) in names.iter().enumerate() {
        let faults = dns_1035_label(name);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&path.index(place), name, faults.join(",")));
        }
    }
    errors
}
