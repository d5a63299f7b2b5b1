//! One mutation of an object.

use keelson_api::core::v1::Namespace;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;

use super::Evaluation;
use super::apply::applied;
use super::json_patch::patched;
use super::policy::Mutation;
use crate::expressions::{Inputs, OUT_OF_BUDGET, OutOfBudget};
use crate::policy::policies::Policy as _;
use crate::versions::{Changed, take_back, versioned};

/// What an expression may cost.
const BUDGET: u64 = 10_000_000;

/// Why a mutation was not done.
pub(super) enum Failed {
    /// Something is wrong with the policy, whose failure policy decides.
    Policy(String),
    /// The request fails.
    Request(StatusError),
}

/// Changes the object of a request.
pub(super) async fn mutate(
    attributes: &mut Attributes<'_>,
    evaluation: &Evaluation<'_>,
    mutation: &Mutation,
    namespace: Option<&Namespace>,
) -> Result<(), Failed> {
    let made = {
        let versioned = versioned(attributes, &evaluation.kind).await.map_err(Failed::Request)?;
        let inputs = Inputs::new(attributes, &versioned, &evaluation.kind);
        loop {
            let made = once(attributes, evaluation, mutation, &inputs, namespace);
            if !inputs.complete(attributes).await {
                break made?;
            }
        }
    };
    match made {
        Some(made) => take_back(attributes, &evaluation.kind, made.object)
            .await
            .map_err(Failed::Request),
        None => Ok(()),
    }
}

/// What comes of a mutation with what is known of a request now; `None`: it leaves the object as it is.
fn once<'a>(
    attributes: &Attributes<'_>,
    evaluation: &'a Evaluation<'_>,
    mutation: &Mutation,
    inputs: &'a Inputs<'a>,
    namespace: Option<&'a Namespace>,
) -> Result<Option<Changed>, Failed> {
    let definition = evaluation.policy.definition();
    let scope = definition.scope(inputs.bindings(namespace), &evaluation.param);
    let (Mutation::Apply(compiled) | Mutation::Patch(compiled)) = mutation;
    if let Err(why) = compiled {
        return Err(Failed::Policy(why.to_string()));
    }
    let mut budget = BUDGET;
    let value = scope.evaluate(compiled, &mut budget);
    let value = value.map_err(|OutOfBudget| Failed::Policy(OUT_OF_BUDGET.to_owned()))?;
    let value = value.map_err(Failed::Policy)?;
    let Some(before) = inputs.object() else {
        return Ok(None);
    };
    match mutation {
        Mutation::Apply(_) => applied(attributes, &evaluation.kind, before, &value).map(Some),
        Mutation::Patch(_) => patched(attributes, &evaluation.kind, before, &value),
    }
}
