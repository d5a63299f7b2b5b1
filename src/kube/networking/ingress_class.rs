//! Ingress classes.

use keelson_api::networking_k8s_io::v1::IngressClass;
use keelson_registry::{Kept, KindCode};

use crate::cells;

/// Registers the rules of ingress classes.
pub fn register(code: &mut KindCode) {
    code.kind::<IngressClass>()
        .kept([Kept::at("spec.controller")])
        .cells(cells::networking::INGRESS_CLASS);
}
