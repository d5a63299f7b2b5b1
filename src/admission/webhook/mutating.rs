//! MutatingAdmissionWebhook: other servers change what is written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use keelson_access::lister::Listers;
use keelson_machinery::json;
use keelson_machinery::patch::json::JsonPatch;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_net::client::Egress;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Outcome, Verbs};
use prometheus_client::registry::Registry as MetricRegistry;

use super::answer::Answer;
use super::audit::{self, Turn};
use super::call::{Failure, UNAVAILABLE, call};
use super::clients::Clients;
use super::hook::{self, Hook};
use super::hooks::{AtHand, Configured, means};
use super::metrics::Caller;
use crate::matching::Candidates;
use crate::namespaces::Namespaces;
use crate::versions::{Reading, read_back, take_back, versioned};
use crate::{GROUP, Shared, is_exempt};

const NAME: &str = "MutatingAdmissionWebhook";
const CONFIGURATIONS: &str = "mutatingwebhookconfigurations";

/// Asks the webhooks of MutatingWebhookConfigurations, one after the other.
pub struct MutatingAdmissionWebhook {
    configured: Configured,
    clients: Clients,
    shared: Arc<Shared>,
}

/// What the second round has to know of the first.
#[derive(Default)]
struct Rounds {
    /// Called since the last change by others, and to be called again after the next.
    called: BTreeSet<String>,
    /// To be called again.
    again: BTreeSet<String>,
    /// The object as the last round left it; `None`: nobody wants to be called again.
    left: Option<Vec<u8>>,
}

impl Rounds {
    /// What was called before is called again.
    fn changed(&mut self) {
        self.again.append(&mut self.called);
    }
}

fn shown(attributes: &Attributes<'_>) -> Vec<u8> {
    attributes.object.as_deref().map(json::to_vec).unwrap_or_default()
}

impl MutatingAdmissionWebhook {
    /// That of one server, which calls webhooks on these ways.
    pub fn new(shared: &Arc<Shared>, egress: &Egress) -> MutatingAdmissionWebhook {
        MutatingAdmissionWebhook {
            configured: Configured::new(hook::mutating),
            clients: Clients::new(egress),
            shared: shared.clone(),
        }
    }

    async fn dispatch(&self, attributes: &mut Attributes<'_>, candidates: Candidates<Hook>) -> Result<(), StatusError> {
        let mut rounds: Rounds = attributes.reinvocation.take(NAME).unwrap_or_default();
        let is_second = attributes.reinvocation.is_second();
        if is_second && rounds.left.as_ref().is_some_and(|left| *left != shown(attributes)) {
            rounds.changed();
        }
        let done = self.call_all(attributes, &candidates, &mut rounds).await;
        rounds.left = (!rounds.called.is_empty()).then(|| shown(attributes));
        attributes.reinvocation.keep(NAME, rounds);
        done
    }

    async fn call_all(
        &self,
        attributes: &mut Attributes<'_>,
        candidates: &Candidates<Hook>,
        rounds: &mut Rounds,
    ) -> Result<(), StatusError> {
        let is_second = attributes.reinvocation.is_second();
        for candidate in candidates.iter() {
            let Some(kind) = AtHand::of(attributes).kind(candidate) else {
                continue;
            };
            let hook = &*candidate.hook;
            if !means(hook, kind, attributes, &self.shared).await? {
                continue;
            }
            if is_second && !rounds.again.contains(&hook.uid) {
                continue;
            }
            let turn = Turn {
                round: is_second.into(),
                index: candidate.place,
            };
            let begun = Instant::now();
            let called = self.call(attributes, hook, kind, turn).await;
            let asked = (Caller::Mutating, attributes.operation);
            let metrics = &self.shared.metrics;
            metrics.observe(asked, hook, called.as_ref().err(), begun.elapsed());
            if matches!(called, Ok(true)) {
                rounds.changed();
                attributes.reinvocation.request();
            }
            if hook.is_reinvoked {
                rounds.called.insert(hook.uid.clone());
            }
            match called {
                Ok(_) => {}
                Err(Failure::Calling(_, why)) if hook.fails_open => {
                    tracing::warn!(
                        webhook = hook.name,
                        why,
                        "a webhook failed; the request goes on without it"
                    );
                    audit::mutating_failed_open(attributes, hook, turn);
                }
                Err(failure) => return Err(failure.into_error(hook)),
            }
        }
        Ok(())
    }

    /// Whether the webhook has changed the object.
    async fn call(
        &self,
        attributes: &mut Attributes<'_>,
        hook: &Hook,
        target: &KindRef,
        turn: Turn,
    ) -> Result<bool, Failure> {
        let changed = self.changed(attributes, hook, target, turn).await;
        audit::mutation(attributes, hook, turn, matches!(changed, Ok(true)));
        changed
    }

    async fn changed(
        &self,
        attributes: &mut Attributes<'_>,
        hook: &Hook,
        target: &KindRef,
        turn: Turn,
    ) -> Result<bool, Failure> {
        let made = {
            let versioned = versioned(attributes, target).await.map_err(Failure::Fatal)?;
            let answer = call(hook, &self.clients, attributes, (&versioned, target), true).await?;
            if answer.patch.is_empty() {
                return Ok(false);
            }
            let patch = decoded(&answer)?;
            if patch.is_empty() {
                return Ok(false);
            }
            let Some(before) = &versioned.object else {
                return Err(Failure::Fatal(StatusError::internal_error(format!(
                    "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                    hook.name
                ))));
            };
            check_type(&answer)?;
            let patched = patch.apply_explained(&json::to_vec(before.kind()));
            let patched = patched.map_err(|why| Failure::Fatal(StatusError::internal_error(why)))?;
            let made = read_back(attributes, target, before.kind(), &patched, Reading::Lax).map_err(Failure::Fatal)?;
            audit::patch(attributes, hook, turn, &answer.patch);
            made
        };
        let differs = made.differs;
        take_back(attributes, target, made.object)
            .await
            .map_err(Failure::Fatal)?;
        Ok(differs)
    }
}

fn decoded(answer: &Answer) -> Result<JsonPatch<'_>, Failure> {
    let decoded = JsonPatch::decode(&answer.patch, false);
    let unreadable = |error: StatusError| {
        let why = error.message;
        Failure::Calling(
            UNAVAILABLE,
            format!("received undecodable patch in webhook response: {why}"),
        )
    };
    decoded.map(|(patch, _)| patch).map_err(unreadable)
}

fn check_type(answer: &Answer) -> Result<(), Failure> {
    match answer.patch_type.as_str() {
        "JSONPatch" => Ok(()),
        other => Err(Failure::Calling(
            UNAVAILABLE,
            format!("unsupported patch type {other:?}"),
        )),
    }
}

impl Plugin for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::MUTATES.when(!is_exempt(scope))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[(GROUP, CONFIGURATIONS), Namespaces::FOLLOWED]
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        Ok(self.clients.configure(configuration)?)
    }

    fn register(&self, registry: &mut MetricRegistry) {
        self.shared.register(registry);
    }

    fn attach(&self, listers: &dyn Listers, verbs: &Arc<Verbs>) {
        self.configured.attach(listers, CONFIGURATIONS);
        self.shared.namespaces.attach(listers);
        self.clients.attach(&verbs.registry);
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        if attributes.nested {
            return now(Ok(()));
        }
        let candidates = self.configured.candidates(attributes);
        let at_hand = AtHand::of(attributes);
        match candidates.iter().any(|candidate| at_hand.kind(candidate).is_some()) {
            true => later(self.dispatch(attributes, candidates)),
            false => now(Ok(())),
        }
    }
}
