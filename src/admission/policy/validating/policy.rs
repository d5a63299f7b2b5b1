//! A ValidatingAdmissionPolicy, compiled.

use keelson_api::admissionregistration_k8s_io::v1::ValidatingAdmissionPolicy;
use keelson_machinery::cel::Type;
use keelson_machinery::object::Object;

use crate::expressions::{Compiled, compile};
use crate::policy::definition::{Definition, Said};
use crate::policy::policies;

/// The policy.
pub(super) struct Policy {
    definition: Definition,
    pub validations: Vec<Validation>,
    pub annotations: Vec<AuditAnnotation>,
}

/// What has to be true.
pub(super) struct Validation {
    pub compiled: Compiled,
    pub expression: String,
    /// What is said where it is not; "": its expression.
    pub message: String,
    /// The same, made up on the spot.
    pub message_expression: Option<Compiled>,
    /// The reason of the refusal; "": the usual one.
    pub reason: String,
}

/// What is recorded.
pub(super) struct AuditAnnotation {
    pub key: String,
    pub expression: String,
    pub compiled: Compiled,
}

impl policies::Policy for Policy {
    fn definition(&self) -> &Definition {
        &self.definition
    }
}

impl Policy {
    /// Whether messages are made up by expressions.
    pub fn makes_messages(&self) -> bool {
        let mut validations = self.validations.iter();
        validations.any(|validation| validation.message_expression.is_some())
    }

    /// Compiles a policy.
    pub fn read(object: &dyn Object) -> Option<Policy> {
        let policy: &ValidatingAdmissionPolicy = object.downcast_ref()?;
        let spec = &policy.spec;
        let (definition, environments) = Definition::new(&Said {
            name: &policy.metadata.name,
            constraints: spec.match_constraints.as_deref(),
            failure_policy: spec.failure_policy.as_deref(),
            param_kind: spec.param_kind.as_deref(),
            conditions: &spec.match_conditions,
            variables: &spec.variables,
        });
        let message_expression = |expression: &str| {
            let given = !expression.is_empty();
            given.then(|| compile(&environments.plain, expression, &[Type::String]))
        };
        let validations = spec.validations.iter().map(|validation| Validation {
            compiled: compile(&environments.authorizing, &validation.expression, &[Type::Bool]),
            expression: validation.expression.clone(),
            message: validation.message.clone(),
            message_expression: message_expression(&validation.message_expression),
            reason: validation.reason.clone().unwrap_or_default(),
        });
        let annotations = spec.audit_annotations.iter().map(|annotation| AuditAnnotation {
            key: annotation.key.clone(),
            expression: annotation.value_expression.clone(),
            compiled: compile(
                &environments.authorizing,
                &annotation.value_expression,
                &[Type::String, Type::Null],
            ),
        });
        Some(Policy {
            validations: validations.collect(),
            annotations: annotations.collect(),
            definition,
        })
    }
}
