//! Definitions of policies: the fields that both kinds have.

use keelson_api::admissionregistration_k8s_io::v1::{MatchCondition, MatchResources, ParamKind, Variable};
use keelson_machinery::cel::{Environment, Type, Value};
use keelson_machinery::object::Kind;

use super::composition::Variables;
use super::criteria::Criteria;
use super::params::Param;
use crate::expressions::{Bindings, Conditions, Scope, authorizing, base};

/// The variable that holds the parameters.
pub(super) const PARAMS: &str = "params";

/// A policy, but for what it demands.
pub(super) struct Definition {
    pub name: String,
    /// `None`: it says nothing of what it means, and means nothing.
    pub criteria: Option<Criteria>,
    /// What goes wrong lets a request pass.
    pub fails_open: bool,
    pub param_kind: Option<ParamKind>,
    pub conditions: Conditions,
    pub variables: Variables,
}

/// What is said of a policy.
pub(super) struct Said<'a> {
    pub name: &'a str,
    pub constraints: Option<&'a MatchResources>,
    pub failure_policy: Option<&'a str>,
    pub param_kind: Option<&'a ParamKind>,
    pub conditions: &'a [MatchCondition],
    pub variables: &'a [Variable],
}

/// What the expressions of a policy may name.
pub(super) struct Environments {
    /// With questions to the authorizer.
    pub authorizing: Environment,
    /// Without them: messages.
    pub plain: Environment,
}

/// The same environment, where there are parameters with them.
pub(super) fn with_params(environment: Environment, has_params: bool) -> Environment {
    match has_params {
        true => environment.variable(PARAMS, Type::Dyn),
        false => environment,
    }
}

impl Definition {
    /// What expressions are evaluated in, with these variables and this parameter.
    pub fn scope<'a>(&'a self, mut variables: Bindings<'a>, param: &'a Param) -> Scope<'a> {
        if self.param_kind.is_some() {
            let params = param.as_ref().map(|param| Value::object(Kind::as_reflect(&**param)));
            variables.push((PARAMS, params.unwrap_or(Value::Null)));
        }
        self.variables.scope(variables)
    }

    /// Compiles what it says; the environments are those of its other expressions.
    pub fn new(said: &Said<'_>) -> (Definition, Environments) {
        let has_params = said.param_kind.is_some();
        let compiling = with_params(authorizing(), has_params);
        let variables = Variables::new(said.variables, &compiling);
        let environments = Environments {
            authorizing: variables.declare(compiling),
            plain: variables.declare(with_params(base(), has_params)),
        };
        let definition = Definition {
            name: said.name.to_owned(),
            criteria: said.constraints.map(Criteria::new),
            fails_open: said.failure_policy == Some("Ignore"),
            param_kind: said.param_kind.cloned(),
            conditions: Conditions::new(said.conditions, &environments.authorizing),
            variables,
        };
        (definition, environments)
    }
}
