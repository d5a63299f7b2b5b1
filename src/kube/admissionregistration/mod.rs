//! The group admissionregistration.k8s.io.

mod json_path;
mod parameters;
mod policy;
mod policy_rules;
mod rules;
mod type_checking;
mod webhook;

use keelson_registry::KindCode;

pub use type_checking::PolicyTypeChecking;

pub const GROUP: &str = "admissionregistration.k8s.io";

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    policy::register(code);
    webhook::register(code);
}
