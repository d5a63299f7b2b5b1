//! Evaluation of a policy on one request.

use keelson_api::core::v1::Namespace;
use keelson_machinery::cel::Value;

use super::policy::{AuditAnnotation, Policy, Validation};
use crate::expressions::{Evaluated, Inputs, Matched, OUT_OF_BUDGET, OutOfBudget, Scope};
use crate::policy::params::Param;
use crate::policy::policies::Policy as _;

/// What the validations of a policy may cost together, with their messages; and what its annotations may.
const BUDGET: u64 = 10_000_000;
/// Bytes of a message that an expression makes up.
const MAX_MESSAGE: usize = 5 * 1024;

/// What a policy says of a request.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    /// In the order of its validations.
    pub decisions: Vec<Decision>,
    /// By key.
    pub annotations: Vec<(String, Annotation)>,
}

/// What a validation says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    Admit,
    Deny { message: String, reason: String },
}

/// What becomes of an annotation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Annotation {
    Publish(String),
    Exclude,
    /// The request is denied.
    Error(String),
}

impl Verdict {
    fn of(decision: Decision) -> Verdict {
        Verdict {
            decisions: vec![decision],
            annotations: Vec::new(),
        }
    }
}

/// What is decided where an expression has no value.
fn on_error(policy: &Policy, message: String) -> Decision {
    match policy.definition().fails_open {
        true => Decision::Admit,
        false => Decision::Deny {
            message,
            reason: String::new(),
        },
    }
}

/// Evaluates a policy on what is known of a request now.
pub(super) fn evaluate<'a>(
    policy: &'a Policy,
    inputs: &'a Inputs<'a>,
    namespace: Option<&'a Namespace>,
    param: &'a Param,
) -> Verdict {
    let definition = policy.definition();
    let scope = |namespace: Option<&'a Namespace>, authorizes: bool| {
        let variables = match authorizes {
            true => inputs.bindings(namespace),
            false => inputs.plain_bindings(namespace),
        };
        definition.scope(variables, param)
    };
    if !definition.conditions.is_empty() {
        match definition.conditions.once(&scope(None, true)) {
            Matched::Yes => {}
            Matched::No => return Verdict::default(),
            // With a policy that fails open the request is not meant.
            Matched::Failed(_) if definition.fails_open => return Verdict::default(),
            Matched::Failed(why) => return Verdict::of(on_error(policy, why)),
        }
    }
    let out_of_budget = || Verdict::of(on_error(policy, OUT_OF_BUDGET.to_owned()));
    let mut budget = BUDGET;
    let Ok(results) = validations(policy, &scope(namespace, true), &mut budget) else {
        return out_of_budget();
    };
    let messages = match policy.makes_messages() {
        true => messages(policy, &scope(namespace, false), &mut budget),
        false => Ok(Vec::new()),
    };
    let decisions = decisions(policy, results, &messages);
    if policy.annotations.is_empty() {
        return Verdict {
            decisions,
            annotations: Vec::new(),
        };
    }
    match annotations(policy, &scope(namespace, true)) {
        Ok(annotations) => Verdict { decisions, annotations },
        Err(OutOfBudget) => out_of_budget(),
    }
}

/// Whether each validation is true; an error where it can't be told.
fn validations(policy: &Policy, scope: &Scope<'_>, budget: &mut u64) -> Result<Vec<Evaluated<bool>>, OutOfBudget> {
    let is_true = |value: Value<'_>| value.as_bool() == Some(true);
    let results = policy.validations.iter().map(|validation| {
        let value = scope.evaluate(&validation.compiled, budget)?;
        Ok(value.map(is_true))
    });
    results.collect()
}

/// What the expressions for messages make up, of each validation; `None`: nothing that can be shown.
fn messages(policy: &Policy, scope: &Scope<'_>, budget: &mut u64) -> Result<Vec<Option<String>>, OutOfBudget> {
    let shown = |value: Value<'_>| {
        let text = value.as_str()?.trim().to_owned();
        (text.len() <= MAX_MESSAGE && !text.contains('\n')).then_some(text)
    };
    let messages = policy
        .validations
        .iter()
        .map(|validation| match &validation.message_expression {
            None => Ok(None),
            Some(compiled) => {
                let value = scope.evaluate(compiled, budget)?;
                Ok(value.ok().and_then(shown))
            }
        });
    messages.collect()
}

fn decisions(
    policy: &Policy,
    results: Vec<Evaluated<bool>>,
    messages: &Result<Vec<Option<String>>, OutOfBudget>,
) -> Vec<Decision> {
    let decided = policy.validations.iter().zip(results).enumerate();
    let decided = decided.map(|(n, (validation, result))| match (result, messages) {
        (Err(why), _) => on_error(policy, why),
        (Ok(_), Err(OutOfBudget)) => on_error(policy, format!("failed messageExpression: {OUT_OF_BUDGET}")),
        (Ok(true), _) => Decision::Admit,
        (Ok(false), Ok(messages)) => {
            let made = messages.get(n).and_then(Option::as_deref);
            Decision::Deny {
                message: message(validation, made.unwrap_or_default()),
                reason: match validation.reason.as_str() {
                    "" => "Invalid".to_owned(),
                    reason => reason.to_owned(),
                },
            }
        }
    });
    decided.collect()
}

fn message(validation: &Validation, made: &str) -> String {
    match (made, validation.message.trim()) {
        ("", "") => format!("failed expression: {}", validation.expression.trim()),
        ("", message) | (message, _) => message.to_owned(),
    }
}

fn annotations(policy: &Policy, scope: &Scope<'_>) -> Result<Vec<(String, Annotation)>, OutOfBudget> {
    let mut budget = BUDGET;
    let annotations = policy.annotations.iter().map(|annotation| {
        let value = scope.evaluate(&annotation.compiled, &mut budget)?;
        let made = match value {
            Ok(value) => of_value(annotation, &value),
            Err(_) if policy.definition().fails_open => Annotation::Exclude,
            Err(why) => Annotation::Error(why),
        };
        Ok((annotation.key.clone(), made))
    });
    annotations.collect()
}

fn of_value(annotation: &AuditAnnotation, value: &Value<'_>) -> Annotation {
    match value {
        Value::Null => Annotation::Exclude,
        Value::String(text) => match text.as_str().trim() {
            "" => Annotation::Exclude,
            text => Annotation::Publish(text.to_owned()),
        },
        other => Annotation::Error(format!(
            "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or null.",
            annotation.expression,
            other.type_name()
        )),
    }
}
