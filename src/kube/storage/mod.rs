//! The group storage.k8s.io.

pub mod csi_driver;
pub mod volume_attachment;
