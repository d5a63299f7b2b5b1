//! Printer columns and the paths of the scale subresource.

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceColumnDefinition, CustomResourceSubresources};
use keelson_machinery::field::{ErrorList, FieldError, Path};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Faults of a list of columns.
pub fn columns(columns: &[CustomResourceColumnDefinition], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (place, column) in columns.iter().enumerate() {
        errors.extend(column_faults(column, &path.index(place)));
    }
    errors
}

fn column_faults(column: &CustomResourceColumnDefinition, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if column.name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let text = format!("must be one of {}", TYPES.join(","));
    let ty = path.child("type");
    match column.r#type.as_str() {
        "" => errors.push(FieldError::required(&ty, text)),
        known if TYPES.contains(&known) => {}
        other => errors.push(FieldError::invalid(&ty, other, text)),
    }
    if !column.format.is_empty() && !FORMATS.contains(&column.format.as_str()) {
        let text = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format"), &column.format, text));
    }
    let json_path = path.child("JSONPath");
    match column.json_path.as_str() {
        "" => errors.push(FieldError::required(&json_path, "")),
        text => errors.extend(simple_path(text, &json_path)),
    }
    errors
}

/// Faults of the paths of a scale.
pub fn subresources(subresources: Option<&CustomResourceSubresources>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(scale) = subresources.and_then(|all| all.scale.as_deref()) else {
        return errors;
    };
    let mut replicas = |name: &'static str, text: &str, root: &str| {
        let field = path.child(name);
        if text.is_empty() {
            errors.push(FieldError::required(&field, ""));
            return;
        }
        match simple_path(text, &field) {
            Some(fault) => errors.push(fault),
            None if !text.starts_with(&format!("{root}.")) => {
                let why = format!("should be a json path under {root}");
                errors.push(FieldError::invalid(&field, text, why));
            }
            None => {}
        }
    };
    replicas("scale.specReplicasPath", &scale.spec_replicas_path, ".spec");
    replicas("scale.statusReplicasPath", &scale.status_replicas_path, ".status");
    if let Some(text) = scale.label_selector_path.as_deref().filter(|text| !text.is_empty()) {
        let field = path.child("scale.labelSelectorPath");
        match simple_path(text, &field) {
            Some(fault) => errors.push(fault),
            None if !text.starts_with(".spec.") && !text.starts_with(".status.") => {
                let why = "should be a json path under either .spec or .status";
                errors.push(FieldError::invalid(&field, text, why));
            }
            None => {}
        }
    }
    errors
}

/// What is wrong with a path that is not empty: it begins with a dot.
fn simple_path(text: &str, path: &Path) -> Option<FieldError> {
    let fault = || FieldError::invalid(path, text, "must be a simple json path starting with .");
    (!text.starts_with('.')).then(fault)
}
