//! Replicas: what the kinds have in common whose pods are alike, of their templates and their statuses.

use keelson_api::core::v1::PodTemplateSpec;
use keelson_machinery::field::BadValue;

use keelson_machinery::reflect::Reflect;

use crate::faults::{self, Faults};

/// The fault of a template that its own selector does not select. `f` stands at the template.
pub fn not_selected(f: &mut Faults<'_>, template: &PodTemplateSpec) {
    let labels = &template.metadata.labels;
    let shown = match labels.is_empty() {
        true => BadValue::null(),
        false => BadValue::json(serde_json::to_string(labels).unwrap_or_default()),
    };
    let mut meta = f.at("metadata");
    meta.at("labels")
        .invalid(shown, "`selector` does not match template `labels`");
}

/// Pods of the template are started again whenever they end. `f` stands at the template.
pub fn runs_for_ever(f: &mut Faults<'_>, template: &PodTemplateSpec, kind: &str) {
    let mut f = f.at("spec");
    f.at("restartPolicy").one_of(&template.spec.restart_policy, &["Always"]);
    if template.spec.active_deadline_seconds.is_some() {
        let text = format!("activeDeadlineSeconds in {kind} is not Supported");
        f.at("activeDeadlineSeconds").forbidden(text);
    }
}

/// Counts that are parts of a whole: by their JSON names, and the name of the whole, and how it is told.
pub fn parts(f: &mut Faults<'_>, status: &dyn Reflect, (whole, told): (&str, &str), names: &[&str]) {
    let whole = faults::count(status, whole).ok().flatten().unwrap_or_default();
    for name in names {
        let part = faults::count(status, name).unwrap_or_default();
        let text = format!("cannot be greater than {told}");
        f.at(name).number(part, |part| part <= whole, text);
    }
}
