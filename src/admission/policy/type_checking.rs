//! Type checking of ValidatingAdmissionPolicies: what their expressions would find in objects of the kinds that they
//! name, told in the status of the policy. Nobody is refused because of it.

use keelson_api::admissionregistration_k8s_io::v1::{ExpressionWarning, ValidatingAdmissionPolicySpec};
use keelson_machinery::cel::{Environment, Type};
use keelson_machinery::object::Gvk;

use super::composition::Variables;
use super::definition::PARAMS;
use crate::expressions::checking;

/// Bytes of warnings that a policy's status takes.
const MOST: usize = 1 << 20;

/// A kind whose objects a policy means.
pub struct CheckedKind {
    /// What it is called.
    pub gvk: Gvk,
    /// The type of its objects; `None`: nothing is known of them.
    pub object: Option<Type>,
}

/// Checks the expressions of a policy with objects of each of these kinds. `params`: the type of its parameters, where
/// their kind is known.
pub fn check_types(
    spec: &ValidatingAdmissionPolicySpec,
    kinds: &[CheckedKind],
    params: Option<&Type>,
) -> Vec<ExpressionWarning> {
    let environments: Vec<(&Gvk, Environment)> = kinds
        .iter()
        .map(|kind| (&kind.gvk, environment(spec, kind.object.as_ref(), params)))
        .collect();
    let (mut warnings, mut left) = (Vec::new(), MOST);
    let mut check = |field: String, expression: &str| {
        let told = check_one(&environments, expression, &mut left);
        if !told.is_empty() {
            warnings.push(ExpressionWarning {
                field_ref: field,
                warning: told,
            });
        }
    };
    for (n, validation) in spec.validations.iter().enumerate() {
        check(format!("spec.validations[{n}].expression"), &validation.expression);
        if !validation.message_expression.is_empty() {
            let field = format!("spec.validations[{n}].messageExpression");
            check(field, &validation.message_expression);
        }
    }
    warnings
}

/// What the expressions of a policy may name, with the types of one kind.
fn environment(spec: &ValidatingAdmissionPolicySpec, object: Option<&Type>, params: Option<&Type>) -> Environment {
    let mut environment = checking(object.unwrap_or(&Type::Dyn));
    if spec.param_kind.is_some() {
        environment = environment.variable(PARAMS, params.unwrap_or(&Type::Dyn).clone());
    }
    Variables::new(&spec.variables, &environment).declare(environment)
}

/// What is wrong with an expression by kind; "": nothing. What there is no room `left` for is not said.
fn check_one(environments: &[(&Gvk, Environment)], expression: &str, left: &mut usize) -> String {
    let mut told: Vec<String> = Vec::new();
    for (gvk, environment) in environments {
        let Err(error) = environment.compile(expression) else {
            continue;
        };
        let text = format!("{}, Kind={}: {error}\n", group_version(gvk), gvk.kind);
        if text.len() > *left {
            break;
        }
        *left -= text.len();
        told.push(text);
    }
    told.join("\n")
}

/// Of the legacy group `/v1`.
fn group_version(gvk: &Gvk) -> String {
    format!("{}/{}", gvk.group, gvk.version)
}
