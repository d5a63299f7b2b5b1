//! Calls of webhooks.

use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;

use super::answer::{Answer, Unusable};
use super::audit;
use super::clients::Clients;
use super::hook::{Hook, SideEffects};
use super::review::Question;
use crate::versions::Versioned;

/// Why a webhook does not let a request pass.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was not asked, or gave no answer: the failure policy decides.
    Calling(String),
    /// It denies the request.
    Denied(StatusError),
    /// The request fails whatever the policy.
    Fatal(StatusError),
}

impl Failure {
    /// What a client is told where the request does not pass.
    pub fn into_error(self, hook: &Hook) -> StatusError {
        match self {
            Failure::Calling(why) => {
                StatusError::internal_error(format!("failed calling webhook {:?}: {why}", hook.name))
            }
            Failure::Denied(error) | Failure::Fatal(error) => error,
        }
    }
}

/// Asks a webhook. What it allows is answered, with what it would have changed.
pub(super) async fn call(
    hook: &Hook,
    clients: &Clients,
    attributes: &Attributes<'_>,
    (versioned, target): (&Versioned<'_>, &KindRef),
    mutates: bool,
) -> Result<Answer, Failure> {
    match hook.side_effects {
        SideEffects::Unsaid if attributes.dry_run() => {
            return Err(Failure::Calling("Webhook SideEffects is nil".to_owned()));
        }
        SideEffects::Some if attributes.dry_run() => {
            let why = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(Failure::Fatal(StatusError::bad_request(why)));
        }
        _ => {}
    }
    let answer = ask(hook, clients, attributes, (versioned, target), mutates).await;
    let answer = answer.map_err(Failure::Calling)?;
    for (name, value) in &answer.annotations {
        audit::said(attributes, hook, name, value);
    }
    for warning in &answer.warnings {
        attributes.warn(warning.as_str());
    }
    match answer.allowed {
        true => Ok(answer),
        false => Err(Failure::Denied(answer.refusal(&hook.name))),
    }
}

async fn ask(
    hook: &Hook,
    clients: &Clients,
    attributes: &Attributes<'_>,
    (versioned, target): (&Versioned<'_>, &KindRef),
    mutates: bool,
) -> Result<Answer, String> {
    let unknown =
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
    let version = hook.review.ok_or(unknown)?;
    let client = clients.of(hook);
    let client = client.map_err(|why| format!("could not get REST client: {why}"))?;
    let uid = attributes.resource.backend.new_uid();
    let question = Question {
        uid: &uid,
        attributes,
        versioned,
        target,
    };
    let failed = |why: String| format!("failed to call webhook: {why}");
    let got = client.ask(question.body(version)).await;
    let got = got.map_err(|error| failed(error.to_string()))?;
    Answer::read(&got, version, &uid, mutates).map_err(|error| match error {
        Unusable::Unreadable(why) => failed(why),
        Unusable::Invalid(why) => format!("received invalid webhook response: {why}"),
    })
}
