//! Rules that taint devices.

use keelson_machinery::object::Object;
use keelson_machinery::time::Time;
use keelson_server::registry::write::Part;
use keelson_server::registry::{Context, Strategy};

use crate::api::resource_k8s_io::v1beta2::DeviceTaintRule;
use crate::kube::typed::{keep_all_metadata, typed_mut};

/// The rules of taint rules.
pub struct DeviceTaintRuleStrategy;

impl Strategy for DeviceTaintRuleStrategy {
    fn prepare_for_create(&self, context: &Context, object: &mut dyn Object) {
        set_taint_time(object, context.now);
    }

    fn prepare_for_update(&self, context: &Context, new: &mut dyn Object, _old: &dyn Object) {
        set_taint_time(new, context.now);
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut dyn Object, old: &dyn Object) {
        keep_all_metadata(new, old);
    }
}

/// A taint that does not say since when it is there, is there from now on.
fn set_taint_time(object: &mut dyn Object, now: Time) {
    if let Some(o) = typed_mut::<DeviceTaintRule>(object) {
        o.spec.taint.time_added.get_or_insert(now.truncate_to_seconds());
    }
}
