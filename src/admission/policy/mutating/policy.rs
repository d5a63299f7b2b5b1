//! A MutatingAdmissionPolicy, compiled.

use keelson_api::admissionregistration_k8s_io::v1::{self, MutatingAdmissionPolicy};
use keelson_machinery::cel::Environment;
use keelson_machinery::object::Object;

use crate::expressions::{Compiled, compile};
use crate::policy::definition::{Definition, Said};
use crate::policy::{applied_type, patches_type, policies};

/// The policy.
pub(super) struct Policy {
    definition: Definition,
    /// In the order in which they are done.
    pub mutations: Vec<Mutation>,
    /// It is evaluated again when others have changed what it saw.
    pub is_reinvoked: bool,
}

/// How an object is changed.
pub(super) enum Mutation {
    /// By what is applied to it.
    Apply(Compiled),
    /// By a JSON patch.
    Patch(Compiled),
}

impl policies::Policy for Policy {
    fn definition(&self) -> &Definition {
        &self.definition
    }
}

impl Policy {
    /// Compiles a policy.
    pub fn read(object: &dyn Object) -> Option<Policy> {
        let policy: &MutatingAdmissionPolicy = object.downcast_ref()?;
        let spec = &policy.spec;
        let (definition, environments) = Definition::new(&Said {
            name: &policy.metadata.name,
            constraints: spec.match_constraints.as_deref(),
            failure_policy: spec.failure_policy.as_deref(),
            param_kind: spec.param_kind.as_deref(),
            conditions: &spec.match_conditions,
            variables: &spec.variables,
        });
        let environment = environments.authorizing.with_patches();
        let mutations = spec
            .mutations
            .iter()
            .filter_map(|mutation| compiled(mutation, &environment));
        Some(Policy {
            mutations: mutations.collect(),
            is_reinvoked: spec.reinvocation_policy == "IfNeeded",
            definition,
        })
    }
}

fn compiled(mutation: &v1::Mutation, environment: &Environment) -> Option<Mutation> {
    match mutation.patch_type.as_str() {
        "ApplyConfiguration" => {
            let expression = &mutation.apply_configuration.as_deref()?.expression;
            Some(Mutation::Apply(compile(environment, expression, &[applied_type()])))
        }
        "JSONPatch" => {
            let expression = &mutation.json_patch.as_deref()?.expression;
            Some(Mutation::Patch(compile(environment, expression, &[patches_type()])))
        }
        _ => None,
    }
}
