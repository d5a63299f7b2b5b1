//! Runtime classes.

use keelson_server::registry::{Again, Kept, KindCode};

use crate::api::node_k8s_io::v1::RuntimeClass;
use crate::kube::cells;
use crate::kube::core::resource_list::round;
use crate::kube::metadata;

/// Registers the rules of runtime classes.
pub fn register(code: &mut KindCode) {
    code.kind::<RuntimeClass>()
        .defaults(defaults)
        .metadata_checks(metadata::any_finalizer(Again::BOTH))
        .kept([Kept::at("handler")])
        .cells(cells::quota::RUNTIME_CLASS);
}

/// Defaults in code of runtime classes.
fn defaults(class: &mut RuntimeClass) {
    if let Some(overhead) = &mut class.overhead {
        round(&mut overhead.pod_fixed);
    }
}
