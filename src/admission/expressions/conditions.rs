//! Match conditions: expressions that all have to be true for a configuration to mean a request.

use keelson_access::authz::aggregate;
use keelson_api::admissionregistration_k8s_io::v1::MatchCondition;
use keelson_machinery::cel::{Environment, MATCH_CONDITIONS_LIMIT, Type};
use keelson_registry::admission::Attributes;

use super::environment::compile;
use super::evaluation::{Compiled, Inputs, OUT_OF_BUDGET, OutOfBudget, Scope};

/// The conditions of one configuration.
pub(crate) struct Conditions {
    all: Vec<Compiled>,
}

/// What came of them.
pub(crate) enum Matched {
    Yes,
    /// One is false.
    No,
    /// It can't be told.
    Failed(String),
}

impl Conditions {
    /// Compiles them.
    pub fn new<'a>(conditions: impl IntoIterator<Item = &'a MatchCondition>, environment: &Environment) -> Conditions {
        let all = conditions
            .into_iter()
            .map(|condition| compile(environment, &condition.expression, &[Type::Bool]));
        Conditions { all: all.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether all are true. One that is false decides even where others fail.
    pub async fn evaluate<'a>(&self, attributes: &Attributes<'_>, inputs: &'a Inputs<'a>) -> Matched {
        loop {
            let matched = self.once(&Scope::plain(inputs.bindings(None)));
            if !matches!(matched, Matched::Failed(_)) || !inputs.complete(attributes).await {
                return matched;
            }
        }
    }

    /// The same of what is known now.
    pub fn once(&self, scope: &Scope<'_>) -> Matched {
        let mut budget = MATCH_CONDITIONS_LIMIT;
        let mut errors = Vec::new();
        for condition in &self.all {
            match scope.evaluate(condition, &mut budget) {
                Err(OutOfBudget) => return Matched::Failed(OUT_OF_BUDGET.to_owned()),
                Ok(Ok(value)) if value.as_bool() == Some(false) => return Matched::No,
                Ok(Ok(_)) => {}
                Ok(Err(why)) => errors.push(why),
            }
        }
        match errors.is_empty() {
            true => Matched::Yes,
            false => Matched::Failed(aggregate(&errors)),
        }
    }
}
