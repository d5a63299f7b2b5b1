//! Match conditions of webhooks: expressions over the review's spec, all of which have to be true.

use keelson_machinery::cel::{Environment, MATCH_CONDITIONS_LIMIT, Program, Type, Value};

use crate::authz::aggregate;

/// Conditions of one webhook.
pub const MAX_CONDITIONS: usize = 64;

/// Compiled conditions.
#[derive(Debug, Default)]
pub struct MatchConditions {
    programs: Vec<Program>,
}

/// Why an expression is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    #[error("compilation failed: {0}")]
    Compile(String),
    #[error("must evaluate to bool but got {0}")]
    Type(String),
}

/// Why conditions don't say whether a webhook is to be asked: what each of them says that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", aggregate(.0))]
pub(super) struct Undecided(Vec<String>);

/// The type of the variable `request`.
fn request_type() -> Type {
    let texts = |names: &[&'static str]| names.iter().map(|name| (*name, Type::String)).collect::<Vec<_>>();
    let requirement = Type::object(
        "kubernetes.SelectorRequirement",
        [
            ("key", Type::String),
            ("operator", Type::String),
            ("values", Type::list(Type::String)),
        ],
    );
    let selector = |name| {
        let requirements = Type::list(requirement.clone());
        Type::object(name, [("rawSelector", Type::String), ("requirements", requirements)])
    };
    let mut resource = texts(&[
        "namespace",
        "verb",
        "group",
        "version",
        "resource",
        "subresource",
        "name",
    ]);
    resource.push(("fieldSelector", selector("kubernetes.FieldSelectorAttributes")));
    resource.push(("labelSelector", selector("kubernetes.LabelSelectorAttributes")));
    let path = texts(&["path", "verb"]);
    Type::object(
        "kubernetes.SubjectAccessReviewSpec",
        [
            (
                "resourceAttributes",
                Type::object("kubernetes.ResourceAttributes", resource),
            ),
            (
                "nonResourceAttributes",
                Type::object("kubernetes.NonResourceAttributes", path),
            ),
            ("user", Type::String),
            ("groups", Type::list(Type::String)),
            ("extra", Type::map(Type::String, Type::list(Type::String))),
            ("uid", Type::String),
        ],
    )
}

impl MatchConditions {
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Compiles an expression and adds it.
    ///
    /// # Errors
    /// kube-apiserver's text about it.
    pub fn add(&mut self, expression: &str) -> Result<(), ConditionError> {
        let environment = Environment::new().variable("request", request_type());
        let compiled = environment.compile(expression);
        let program = compiled.map_err(|error| ConditionError::Compile(error.to_string()))?;
        if *program.result_type() != Type::Bool {
            return Err(ConditionError::Type(program.result_type().to_string()));
        }
        self.programs.push(program);
        Ok(())
    }

    /// Whether all are true. One that is false decides even where others fail.
    pub(super) fn evaluate(&self, request: &serde_json::Value) -> Result<bool, Undecided> {
        let bindings = [("request", Value::from(request))];
        let mut budget = MATCH_CONDITIONS_LIMIT;
        let mut errors = Vec::new();
        for program in &self.programs {
            match program.evaluate(&bindings, budget) {
                Ok(evaluated) if evaluated.value.as_bool() == Some(false) => return Ok(false),
                Ok(evaluated) => budget = budget.saturating_sub(evaluated.cost),
                Err(fault) => {
                    let source = program.source();
                    errors.push(format!(
                        "cel evaluation error: expression '{source}' resulted in error: {fault}"
                    ));
                }
            }
        }
        match errors.is_empty() {
            true => Ok(true),
            false => Err(Undecided(errors)),
        }
    }
}
