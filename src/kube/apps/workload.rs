//! Workloads: common parts of the kinds with a pod template and a selector.

use keelson_api::core::v1::PodTemplateSpec;
use keelson_machinery::meta::v1::LabelSelector as Message;
use keelson_machinery::selector::label::LabelSelector;

use crate::core::pod_spec;
use crate::core::pod_spec::replicas::not_selected;
pub use crate::core::pod_spec::replicas::{parts, runs_for_ever};
use crate::faults::Faults;
use crate::typed::{IMMUTABLE, same, shown, shown_option};

/// How a kind is called in the texts of its faults.
pub struct Names {
    /// In "empty selector is invalid for …".
    pub selector: &'static str,
    /// In "activeDeadlineSeconds in … is not Supported".
    pub kind: &'static str,
    /// What is said of a selector that can't be read.
    pub unreadable: &'static str,
}

/// Checks the selector, and the template, which it selects. `f` stands at the specification.
pub fn selector_and_template(
    f: &mut Faults<'_>,
    selector: Option<&Message>,
    template: &PodTemplateSpec,
    old: Option<&PodTemplateSpec>,
    names: &Names,
) {
    selector_alone(f, selector, names);
    let parsed = LabelSelector::from_message(selector);
    if parsed.is_err() {
        return f.at("selector").invalid(shown_option(selector), names.unreadable);
    }
    selects(f, selector, template);
    let mut f = f.at("template");
    pod_spec::check_template(&mut f, template, old);
    runs_for_ever(&mut f, template, names.kind);
}

/// Checks a selector that has to say something. An absent one is found by the definition.
pub fn selector_alone(f: &mut Faults<'_>, selector: Option<&Message>, names: &Names) {
    f.selector("selector", selector);
    not_everything(f, selector, names);
}

/// A selector that is there says something.
pub fn not_everything(f: &mut Faults<'_>, selector: Option<&Message>, names: &Names) {
    if let Some(all) = selector.filter(|s| s.match_labels.is_empty() && s.match_expressions.is_empty()) {
        let text = format!("empty selector is invalid for {}", names.selector);
        f.at("selector").invalid(shown(all), text);
    }
}

/// The template is selected, if the selector can be read and selects anything.
pub fn selects(f: &mut Faults<'_>, selector: Option<&Message>, template: &PodTemplateSpec) {
    let labels = &template.metadata.labels;
    if let Ok(parsed) = LabelSelector::from_message(selector)
        && !parsed.is_everything()
        && !parsed.matches(labels)
    {
        not_selected(&mut f.at("template"), template);
    }
}

/// A selector stays what it was.
pub fn immutable_selector(f: &mut Faults<'_>, new: Option<&Message>, old: Option<&Message>) {
    if !same(new, old) {
        f.at("selector").invalid(shown_option(new), IMMUTABLE);
    }
}

/// How often a name was taken is counted up alone.
pub fn collisions(f: &mut Faults<'_>, new: Option<i32>, old: Option<i32>) {
    let is_less = old.is_some_and(|old| new.is_none_or(|new| new < old));
    f.at("collisionCount")
        .invalid_if(is_less, new.unwrap_or(0), "cannot be decremented");
}
