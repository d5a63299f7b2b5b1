//! Runtime classes.

use keelson_machinery::object::Object;

use crate::api::node_k8s_io::v1::RuntimeClass;
use crate::kube::core::resource_list::round;
use crate::kube::typed::typed_mut;

/// Defaults in code of runtime classes.
pub fn defaults(object: &mut dyn Object) {
    if let Some(overhead) = typed_mut::<RuntimeClass>(object).and_then(|o| o.overhead.as_mut()) {
        round(&mut overhead.pod_fixed);
    }
}
