//! Workloads: common parts of the kinds with a pod template and a selector.

use keelson_api::core::v1::PodTemplateSpec;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::meta::v1::LabelSelector as Message;
use keelson_machinery::selector::label::{LabelSelector, validate_label_selector};

use crate::core::pod_spec;
use crate::typed::{IMMUTABLE, same, shown, shown_option};

/// How a kind is called in the texts of its faults.
pub struct Names {
    /// In "empty selector is invalid for …".
    pub selector: &'static str,
    /// In "activeDeadlineSeconds in … is not Supported".
    pub kind: &'static str,
}

/// Faults of the selector, and of a template that it does not select.
pub fn selector_and_template(
    selector: Option<&Message>,
    template: &PodTemplateSpec,
    names: &Names,
    path: &Path,
) -> ErrorList {
    let (at, template_at) = (path.child("selector"), path.child("template"));
    let mut errors = ErrorList::default();
    // An absent one is found by the definition.
    if let Some(message) = selector {
        errors.extend(validate_label_selector(message, &at));
        if message.match_labels.is_empty() && message.match_expressions.is_empty() {
            let text = format!("empty selector is invalid for {}", names.selector);
            errors.push(FieldError::invalid(&at, shown(message), text));
        }
    }
    match LabelSelector::from_message(selector) {
        Err(_) => {
            errors.push(FieldError::invalid(
                &at,
                shown_option(selector),
                "invalid label selector",
            ));
        }
        Ok(parsed) => {
            if !parsed.is_everything() && !parsed.matches(&template.metadata.labels) {
                let text = "`selector` does not match template `labels`";
                let labels = template_at.child("metadata").child("labels");
                errors.push(FieldError::invalid(&labels, labels_json(template), text));
            }
            errors.extend(validate_template(template, names, &template_at));
        }
    }
    errors
}

fn validate_template(template: &PodTemplateSpec, names: &Names, path: &Path) -> ErrorList {
    let mut errors = pod_spec::template(template, path);
    let spec = path.child("spec");
    if template.spec.restart_policy != "Always" {
        let policy = spec.child("restartPolicy");
        errors.push(FieldError::not_supported(
            &policy,
            &template.spec.restart_policy,
            &["Always"],
        ));
    }
    if template.spec.active_deadline_seconds.is_some() {
        let text = format!("activeDeadlineSeconds in {} is not Supported", names.kind);
        errors.push(FieldError::forbidden(&spec.child("activeDeadlineSeconds"), text));
    }
    errors
}

fn labels_json(template: &PodTemplateSpec) -> BadValue {
    if template.metadata.labels.is_empty() {
        return BadValue::null();
    }
    BadValue::json(serde_json::to_string(&template.metadata.labels).unwrap_or_default())
}

/// A selector stays what it was.
pub fn immutable_selector(new: Option<&Message>, old: Option<&Message>, path: &Path) -> Option<FieldError> {
    let path = path.child("selector");
    (!same(new, old)).then(|| FieldError::invalid(&path, shown_option(new), IMMUTABLE))
}
