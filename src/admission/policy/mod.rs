//! Admission policies: expressions of the cluster's administrators that change and check what is written.
//!
//! A policy says what is to hold, its bindings say where and with which parameters. Both are read and compiled when
//! they change ([`definition`], [`binding`]); [`plan`] says which of them mean a request.

mod annotations;
mod binding;
mod checking;
mod composition;
mod configuration;
mod criteria;
mod definition;
mod mutating;
mod params;
mod plan;
mod policies;
mod type_checking;
mod validating;

use keelson_machinery::cel::Type;

pub use checking::{Checked, Expressions};
pub use mutating::MutatingAdmissionPolicy;
pub use type_checking::{CheckedKind, check_types};
pub use validating::ValidatingAdmissionPolicy;

/// The type of what is applied to an object.
fn applied_type() -> Type {
    Type::object("Object", [])
}

/// The type of JSON patches.
fn patches_type() -> Type {
    Type::list(Type::object("JSONPatch", []))
}
