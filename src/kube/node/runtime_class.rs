//! Runtime classes.

use keelson_api::node_k8s_io::v1::RuntimeClass;
use keelson_registry::{Kept, KindCode, RepeatedChecks};

use crate::cells;
use crate::core::resource_list::round;
use crate::metadata;

/// Registers the rules of runtime classes.
pub fn register(code: &mut KindCode) {
    code.kind::<RuntimeClass>()
        .defaults(defaults)
        .metadata_checks(metadata::any_finalizer(RepeatedChecks::BOTH))
        .kept([Kept::at("handler")])
        .cells(cells::quota::RUNTIME_CLASS);
}

/// Defaults in code of runtime classes.
fn defaults(class: &mut RuntimeClass) {
    if let Some(overhead) = &mut class.overhead {
        round(&mut overhead.pod_fixed);
    }
}
