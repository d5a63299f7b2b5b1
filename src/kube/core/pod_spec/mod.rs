//! PodSpec: defaults, quality of service and validation of a pod's specification, in a pod or a template.

mod container;
mod defaults;
mod qos;
mod validate;
pub mod warnings;

pub use container::image_fault;
pub use defaults::{of_pod, of_template};
pub use qos::class;
pub use validate::{template, validate};
