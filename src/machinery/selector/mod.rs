//! Selectors: which objects a request means, by their labels or by their fields.

pub mod field;
pub mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;
