//! Bindings: where a policy holds, and with which parameters.

use keelson_api::admissionregistration_k8s_io::v1::{
    MutatingAdmissionPolicyBinding, ParamRef, ValidatingAdmissionPolicyBinding,
};
use keelson_machinery::object::Object;

use super::criteria::Criteria;

/// What becomes of a request that breaks a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Deny,
    /// Its sender is told.
    Warn,
    /// It is recorded.
    Audit,
}

impl Action {
    fn read(word: &str) -> Option<Action> {
        Some(match word {
            "Deny" => Action::Deny,
            "Warn" => Action::Warn,
            "Audit" => Action::Audit,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Action::Deny => "Deny",
            Action::Warn => "Warn",
            Action::Audit => "Audit",
        }
    }
}

/// A binding.
pub(super) struct Binding {
    pub name: String,
    /// The name of its policy.
    pub policy: String,
    /// `None`: all that the policy means.
    pub criteria: Option<Criteria>,
    pub params: Option<ParamRef>,
    /// Of one that validates.
    pub actions: Vec<Action>,
}

impl Binding {
    /// That of a ValidatingAdmissionPolicyBinding.
    pub fn validating(object: &dyn Object) -> Option<Binding> {
        let binding: &ValidatingAdmissionPolicyBinding = object.downcast_ref()?;
        let spec = &binding.spec;
        Some(Binding {
            name: binding.metadata.name.clone(),
            policy: spec.policy_name.clone(),
            criteria: spec.match_resources.as_deref().map(Criteria::new),
            params: spec.param_ref.as_deref().cloned(),
            actions: spec
                .validation_actions
                .iter()
                .filter_map(|word| Action::read(word))
                .collect(),
        })
    }

    /// That of a MutatingAdmissionPolicyBinding.
    pub fn mutating(object: &dyn Object) -> Option<Binding> {
        let binding: &MutatingAdmissionPolicyBinding = object.downcast_ref()?;
        let spec = &binding.spec;
        Some(Binding {
            name: binding.metadata.name.clone(),
            policy: spec.policy_name.clone(),
            criteria: spec.match_resources.as_deref().map(Criteria::new),
            params: spec.param_ref.as_deref().cloned(),
            actions: Vec::new(),
        })
    }
}
