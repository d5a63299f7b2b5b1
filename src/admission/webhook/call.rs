//! Calls of webhooks.

use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_net::client::WebhookError;
use keelson_registry::admission::Attributes;

use super::answer::{Answer, Unusable};
use super::audit;
use super::clients::Clients;
use super::hook::{Hook, SideEffects};
use super::review::Question;
use crate::versions::Versioned;

/// The code of a webhook that gave no answer, or none that can be used.
pub(super) const UNAVAILABLE: u16 = 503;

/// Why a webhook does not let a request pass.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was not asked, or gave no answer: the failure policy decides. With a code, as metrics show it.
    Calling(u16, String),
    /// It denies the request.
    Denied(StatusError),
    /// The request fails whatever the policy.
    Fatal(StatusError),
}

impl Failure {
    /// What a client is told where the request does not pass.
    pub fn into_error(self, hook: &Hook) -> StatusError {
        match self {
            Failure::Calling(_, why) => {
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
            return Err(Failure::Calling(400, "Webhook SideEffects is nil".to_owned()));
        }
        SideEffects::Some if attributes.dry_run() => {
            let why = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(Failure::Fatal(StatusError::bad_request(why)));
        }
        _ => {}
    }
    let answer = ask(hook, clients, attributes, (versioned, target), mutates).await;
    let answer = answer.map_err(|(code, why)| Failure::Calling(code, why))?;
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
) -> Result<Answer, (u16, String)> {
    let unknown =
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
    let version = hook.review.ok_or_else(|| (400, unknown.to_owned()))?;
    let client = clients.of(hook);
    let client = client.map_err(|why| (500, format!("could not get REST client: {why}")))?;
    let uid = attributes.resource.backend.new_uid();
    let question = Question {
        uid: &uid,
        attributes,
        versioned,
        target,
    };
    let failed = |why: String| format!("failed to call webhook: {why}");
    let got = client.ask(question.body(version)).await;
    let got = got.map_err(|error| (code_of(&error), failed(error.to_string())))?;
    let read = Answer::read(&got, version, &uid, mutates).map_err(|error| match error {
        Unusable::Unreadable(why) => failed(why),
        Unusable::Invalid(why) => format!("received invalid webhook response: {why}"),
    });
    read.map_err(|why| (UNAVAILABLE, why))
}

fn code_of(error: &WebhookError) -> u16 {
    match error {
        WebhookError::Refused { status, .. } => *status,
        WebhookError::Call(_) => UNAVAILABLE,
    }
}
