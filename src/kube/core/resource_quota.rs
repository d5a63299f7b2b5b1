//! Resource quotas.

use keelson_machinery::object::Object;

use super::resource_list::round;
use crate::api::core::v1::ResourceQuota;
use crate::kube::typed::typed_mut;

/// Defaults in code of resource quotas.
pub fn defaults(object: &mut dyn Object) {
    let Some(o) = typed_mut::<ResourceQuota>(object) else {
        return;
    };
    round(&mut o.spec.hard);
    round(&mut o.status.hard);
    round(&mut o.status.used);
}
