//! Rules that taint devices.

use keelson_api::resource_k8s_io::v1beta2::DeviceTaintRule;
use keelson_machinery::time::Time;
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::typed::keep_all_metadata;

/// Registers the rules of taint rules.
pub fn register(code: &mut KindCode) {
    code.kind::<DeviceTaintRule>()
        .strategy(DeviceTaintRuleStrategy)
        .cells(cells::resource::DEVICE_TAINT_RULE);
}

/// The rules of taint rules.
struct DeviceTaintRuleStrategy;

impl Strategy for DeviceTaintRuleStrategy {
    type Object = DeviceTaintRule;

    fn prepare_for_create(&self, context: &Context, object: &mut DeviceTaintRule) {
        set_taint_time(object, context.now);
    }

    fn prepare_for_update(&self, context: &Context, new: &mut DeviceTaintRule, _old: &DeviceTaintRule) {
        set_taint_time(new, context.now);
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut DeviceTaintRule, old: &DeviceTaintRule) {
        keep_all_metadata(new, old);
    }
}

/// A taint that does not say since when it is there, is there from now on.
fn set_taint_time(o: &mut DeviceTaintRule, now: Time) {
    o.spec.taint.time_added.get_or_insert(now.truncate_to_seconds());
}
