//! Where objects are kept: an ordered map from keys to bytes with one global revision, as etcd has it.
//!
//! [`Store`] is the whole contract; `memory`, `embedded` (one folder on disk) and `etcd` implement it, and one test
//! suite runs against all three. This crate knows nothing of kinds: values are opaque.

pub mod store;

pub use store::*;
