//! The group admissionregistration.k8s.io.

mod parameters;
mod policy;

use keelson_server::registry::KindCode;

pub const GROUP: &str = "admissionregistration.k8s.io";

/// Registers the rules of policies and their bindings.
pub fn register(code: &mut KindCode) {
    code.strategy(GROUP, policy::VALIDATING, policy::ValidatingPolicy);
    code.strategy(GROUP, policy::MUTATING, policy::MutatingPolicy);
    code.strategy(GROUP, "validatingadmissionpolicybindings", policy::ValidatingBinding);
    code.strategy(GROUP, "mutatingadmissionpolicybindings", policy::MutatingBinding);
}
