//! Pod templates.

use keelson_machinery::field::Path;
use keelson_machinery::object::Object;
use keelson_server::registry::Strategy;

use super::pod_spec;
use crate::api::core::v1::PodTemplate;
use crate::kube::typed::{is_new_generation, typed, typed_mut};

/// The rules of pod templates.
pub struct PodTemplateStrategy;

impl Strategy for PodTemplateStrategy {
    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let o = typed::<PodTemplate>(new).filter(|_| is_new_generation(new, old));
        o.map(|o| pod_spec::warnings::of_template(&o.template, &Path::new("template")))
            .unwrap_or_default()
    }
}

/// Defaults in code of pod templates.
pub fn defaults(object: &mut dyn Object) {
    if let Some(o) = typed_mut::<PodTemplate>(object) {
        pod_spec::of_template(&mut o.template);
    }
}
