//! Pod templates.

use keelson_machinery::object::Object;

use super::pod_spec;
use crate::api::core::v1::PodTemplate;
use crate::kube::typed::typed_mut;

/// Defaults in code of pod templates.
pub fn defaults(object: &mut dyn Object) {
    if let Some(o) = typed_mut::<PodTemplate>(object) {
        pod_spec::of_template(&mut o.template);
    }
}
