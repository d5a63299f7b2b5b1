//! The group storage.k8s.io.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod parameters;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    csi_driver::register(code);
    csi_node::register(code);
    csi_storage_capacity::register(code);
    storage_class::register(code);
    volume_attachment::register(code);
    volume_attributes_class::register(code);
}
