//! Pod templates.

use keelson_api::core::v1::PodTemplate;
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::pod_spec;
use crate::cells;
use crate::metadata;
use crate::typed::is_new_generation;

/// Registers the rules of pod templates.
pub fn register(code: &mut KindCode) {
    code.kind::<PodTemplate>()
        .strategy(PodTemplateStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::POD_TEMPLATE);
}

/// The rules of pod templates.
struct PodTemplateStrategy;

impl Strategy for PodTemplateStrategy {
    type Object = PodTemplate;

    fn warnings(&self, new: &PodTemplate, old: Option<&PodTemplate>) -> Vec<String> {
        match is_new_generation(new, old) {
            true => pod_spec::warnings::of_template(&new.template, &Path::new("template")),
            false => Vec::new(),
        }
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut PodTemplate) {
        pod_spec::disabled::drop_from_template(&mut object.template, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut PodTemplate, old: &PodTemplate) {
        pod_spec::disabled::drop_from_template(&mut new.template, Some(&old.template));
    }

    fn validate(&self, _context: &Context, new: &PodTemplate, old: Option<&PodTemplate>) -> ErrorList {
        pod_spec::template(&new.template, old.map(|old| &old.template), &Path::new("template"))
    }
}

/// Defaults in code of pod templates.
fn defaults(o: &mut PodTemplate) {
    pod_spec::of_template(&mut o.template);
}
