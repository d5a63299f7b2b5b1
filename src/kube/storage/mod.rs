//! The group storage.k8s.io.

pub mod csi_driver;
pub mod csi_node;
pub mod volume_attachment;
