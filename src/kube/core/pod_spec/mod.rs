//! PodSpec: defaults, quality of service and validation of a pod's specification, in a pod or a template.

pub mod affinity;
pub mod annotations;
mod container;
mod defaults;
pub mod disabled;
mod env;
mod handlers;
mod options;
mod projected;
mod qos;
pub mod replicas;
mod resources;
pub mod security;
mod validate;
mod volumes;
pub mod warnings;

pub use affinity::{check_label_keys, merge_label_keys};
pub use container::plain_image;
pub use defaults::{of_pod, of_template};
pub use options::Options;
pub use qos::class;
pub use resources::overhead;
pub use validate::{MIRROR, check, check_template, template};
