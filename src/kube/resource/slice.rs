//! Slices of devices.

use keelson_api::resource_k8s_io::v1::ResourceSlice;
use keelson_machinery::field::ErrorList;
use keelson_machinery::time::Time;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use super::slice_rules;
use crate::cells;
use crate::faults;
use crate::metadata;

const KEPT: &[Kept] = &[
    Kept::at("spec.pool.name"),
    Kept::at("spec.driver"),
    Kept::at("spec.nodeName"),
];

/// Registers the rules of slices.
pub fn register(code: &mut KindCode) {
    code.kind::<ResourceSlice>()
        .strategy(ResourceSliceStrategy)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::resource::RESOURCE_SLICE);
}

/// The rules of slices.
struct ResourceSliceStrategy;

impl Strategy for ResourceSliceStrategy {
    type Object = ResourceSlice;

    /// Every kubelet lists the slices of its node.
    fn is_indexed(&self) -> bool {
        true
    }

    fn validate(&self, _context: &Context, new: &ResourceSlice, old: Option<&ResourceSlice>) -> ErrorList {
        faults::of_object(|f| {
            slice_rules::origin(&mut f.at("spec"), &new.spec);
            if let Some(old) = old {
                f.extend(KEPT.iter().filter_map(|field| field.fault(new, old)));
            }
            slice_rules::content(&mut f.at("spec"), &new.spec, old.map(|old| &old.spec));
        })
    }

    fn prepare_for_create(&self, context: &Context, object: &mut ResourceSlice) {
        set_taint_times(object, context.now);
        drop_disabled(object);
    }

    fn prepare_for_update(&self, context: &Context, new: &mut ResourceSlice, _old: &ResourceSlice) {
        set_taint_times(new, context.now);
        drop_disabled(new);
    }
}

/// A taint that does not say since when it is there, is there from now on.
fn set_taint_times(o: &mut ResourceSlice, now: Time) {
    for taint in o.spec.devices.iter_mut().flat_map(|d| &mut d.taints) {
        taint.time_added.get_or_insert(now.truncate_to_seconds());
    }
}

/// Fields of features that are not enabled.
fn drop_disabled(o: &mut ResourceSlice) {
    for device in &mut o.spec.devices {
        device.node_allocatable_resource_mappings.clear();
        for attribute in device.attributes.values_mut() {
            attribute.ints.clear();
            attribute.bools.clear();
            attribute.strings.clear();
            attribute.versions.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_node_that_changes_is_told_before_what_is_wrong_with_it() {
        let slice = |node: &str| {
            read::<ResourceSlice>(&format!(
                r#"{{"spec":{{"driver":"d","nodeName":"{node}","pool":{{"name":"p","resourceSliceCount":1}}}}}}"#
            ))
        };
        let found = lines(&ResourceSliceStrategy.validate(&context(), &slice("A_b"), Some(&slice("n"))));
        let told: Vec<bool> = found.lines().map(|line| line.ends_with("field is immutable")).collect();
        assert_eq!(told, [true, false], "{found}");
    }

    #[test]
    fn taints_know_when_they_came() {
        let mut o: ResourceSlice =
            read(r#"{"spec":{"devices":[{"taints":[{"key":"a"},{"key":"b","timeAdded":"2020-01-01T00:00:00Z"}]}]}}"#);
        ResourceSliceStrategy.prepare_for_create(&context(), &mut o);
        let taints = &o.spec.devices[0].taints;
        assert_eq!(taints[0].time_added, Some(context().now));
        assert_ne!(taints[1].time_added, Some(context().now));
    }
}
