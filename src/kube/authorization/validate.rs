//! Faults of questions about permissions.

use keelson_api::authorization_k8s_io::v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReviewSpec};
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::validation::labels;
use serde_json::json;

use crate::typed::shown;

/// Exactly one kind of attributes, with usable selectors.
pub fn attributes(resource: Option<&ResourceAttributes>, path: Option<&NonResourceAttributes>) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = ErrorList::default();
    match (resource, path) {
        (Some(_), Some(path)) => {
            let text = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid(
                &spec.child("nonResourceAttributes"),
                internal(path),
                text,
            ));
        }
        (None, None) => {
            let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid(
                &spec.child("resourceAttributes"),
                BadValue::null(),
                text,
            ));
        }
        _ => {}
    }
    if let Some(resource) = resource {
        errors.extend(selectors(resource, &spec.child("resourceAttributes")));
    }
    errors
}

/// As [`attributes`], of a named subject.
pub fn subject(spec: &SubjectAccessReviewSpec) -> ErrorList {
    let (resource, path) = (
        spec.resource_attributes.as_deref(),
        spec.non_resource_attributes.as_deref(),
    );
    let mut errors = attributes(resource, path);
    if spec.user.is_empty() && spec.groups.is_empty() {
        let text = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&Path::new("spec").child("user"), "", text));
    }
    errors
}

/// A question within a namespace is about resources in it.
pub fn within(spec: &SubjectAccessReviewSpec, namespace: &str) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = ErrorList::default();
    if let Some(attributes) = spec.resource_attributes.as_deref()
        && attributes.namespace != namespace
    {
        errors.push(FieldError::invalid(
            &path.child("resourceAttributes").child("namespace"),
            &attributes.namespace,
            "must match metadata.namespace",
        ));
    }
    if let Some(attributes) = spec.non_resource_attributes.as_deref() {
        let text = "disallowed on this kind of request";
        errors.push(FieldError::invalid(
            &path.child("nonResourceAttributes"),
            internal(attributes),
            text,
        ));
    }
    errors
}

/// A question has no metadata but its namespace.
pub fn metadata(meta: &ObjectMeta, namespace: &str) -> Option<FieldError> {
    let mut rest = meta.clone();
    if rest.namespace == namespace {
        rest.namespace.clear();
    }
    rest.managed_fields.clear();
    let empty = keelson_machinery::equality::equal(&rest, &ObjectMeta::default());
    (!empty).then(|| FieldError::invalid(&Path::new("metadata"), shown(meta), "must be empty"))
}

/// Attributes as kube-apiserver shows them: by the names of its own fields.
fn internal(path: &NonResourceAttributes) -> BadValue {
    BadValue::json(json!({ "Path": path.path, "Verb": path.verb }).to_string())
}

fn selectors(resource: &ResourceAttributes, path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    if let Some(selector) = resource.field_selector.as_deref() {
        let path = path.child("fieldSelector");
        errors.extend(form(&selector.raw_selector, selector.requirements.is_empty(), &path));
        for (place, term) in selector.requirements.iter().enumerate() {
            if errors.is_full() {
                break;
            }
            let path = path.child("requirements").index(place);
            errors.extend(values(&term.operator, term.values.is_empty(), &path));
            if term.key.is_empty() {
                errors.push(FieldError::required(&path.child("key"), "must be specified"));
            }
        }
    }
    if let Some(selector) = resource.label_selector.as_deref() {
        let path = path.child("labelSelector");
        errors.extend(form(&selector.raw_selector, selector.requirements.is_empty(), &path));
        for (place, term) in selector.requirements.iter().enumerate() {
            if errors.is_full() {
                break;
            }
            let path = path.child("requirements").index(place);
            errors.extend(values(&term.operator, term.values.is_empty(), &path));
            let name = path.child("key");
            let faults = labels::qualified_name(&term.key);
            errors.extend(
                faults
                    .into_iter()
                    .map(|text| FieldError::invalid(&name, &term.key, text)),
            );
            errors.extend(invalid_values(&term.values, path.child("values")));
        }
    }
    errors
}

/// The values of labels that are none, looked for as far as somebody wants them.
fn invalid_values(values: &[String], path: Path) -> impl Iterator<Item = FieldError> {
    values.iter().enumerate().flat_map(move |(place, value)| {
        let at = path.index(place);
        let faults = labels::label_value(value).into_iter();
        faults.map(move |text| FieldError::invalid(&at, value, text))
    })
}

/// Text or requirements, not both and not none.
fn form(text: &str, no_requirements: bool, path: &Path) -> Option<FieldError> {
    match (text.is_empty(), no_requirements) {
        (false, false) => Some(FieldError::invalid(
            &path.child("rawSelector"),
            text,
            "may not specified at the same time as requirements",
        )),
        (true, true) => Some(FieldError::required(
            &path.child("requirements"),
            format!("when {path} is specified, requirements or rawSelector is required"),
        )),
        _ => None,
    }
}

/// The values that an operator must or must not have; operators that are not known have no rule.
fn values(operator: &str, none: bool, path: &Path) -> Option<FieldError> {
    let path = path.child("values");
    match (operator, none) {
        ("In" | "NotIn", true) => Some(FieldError::required(
            &path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        ("Exists" | "DoesNotExist", false) => Some(FieldError::forbidden(
            &path,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        _ => None,
    }
}
