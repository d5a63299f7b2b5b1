//! ValidatingAdmissionWebhook: other servers check what is about to be done.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use keelson_access::lister::Listers;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_net::client::Egress;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Outcome, Verbs};
use prometheus_client::registry::Registry as MetricRegistry;

use super::audit::{self, Turn};
use super::call::{Failure, call};
use super::clients::Clients;
use super::hook::{self, Hook};
use super::hooks::{AtHand, Configured, means};
use super::metrics::Caller;
use crate::matching::Candidates;
use crate::namespaces::Namespaces;
use crate::versions::{Versioned, versioned};
use crate::{GROUP, Shared, is_exempt};

const CONFIGURATIONS: &str = "validatingwebhookconfigurations";

/// Asks the webhooks of ValidatingWebhookConfigurations, all at once.
pub struct ValidatingAdmissionWebhook {
    configured: Configured,
    clients: Clients,
    shared: Arc<Shared>,
}

impl ValidatingAdmissionWebhook {
    /// That of one server, which calls webhooks on these ways.
    pub fn new(shared: &Arc<Shared>, egress: &Egress) -> ValidatingAdmissionWebhook {
        ValidatingAdmissionWebhook {
            configured: Configured::new(hook::validating),
            clients: Clients::new(egress),
            shared: shared.clone(),
        }
    }

    /// `first` is the place of the first candidate that may mean the request, and the kind as which it does.
    async fn dispatch(
        &self,
        attributes: &Attributes<'_>,
        candidates: Candidates<Hook>,
        first: (usize, KindRef),
    ) -> Result<(), StatusError> {
        let mut meant: Vec<(&Hook, &KindRef)> = Vec::new();
        let mut shown: Vec<(&KindRef, Versioned<'_>)> = Vec::new();
        let at_hand = AtHand::of(attributes);
        for (place, candidate) in candidates.iter().enumerate().skip(first.0) {
            let kind = match place == first.0 {
                true => &first.1,
                false => match at_hand.kind(candidate) {
                    Some(kind) => kind,
                    None => continue,
                },
            };
            if !means(&candidate.hook, kind, attributes, &self.shared).await? {
                continue;
            }
            if !shown.iter().any(|(known, _)| known.is(kind)) {
                shown.push((kind, versioned(attributes, kind).await?));
            }
            meant.push((&candidate.hook, kind));
        }
        let calls = meant.iter().enumerate().filter_map(|(index, (hook, kind))| {
            let (_, versioned) = shown.iter().find(|(known, _)| known.is(kind))?;
            let turn = Turn { round: 0, index };
            Some(self.call(attributes, hook, (versioned, kind), turn))
        });
        let mut calls: FuturesUnordered<_> = calls.collect();
        // All of them are waited for; the first that refuses is told.
        let mut refused = Ok(());
        while let Some(done) = calls.next().await {
            refused = refused.and(done);
        }
        refused
    }

    async fn call(
        &self,
        attributes: &Attributes<'_>,
        hook: &Hook,
        shown: (&Versioned<'_>, &KindRef),
        turn: Turn,
    ) -> Result<(), StatusError> {
        let begun = Instant::now();
        let called = call(hook, &self.clients, attributes, shown, false).await;
        let asked = (Caller::Validating, attributes.operation);
        let metrics = &self.shared.metrics;
        metrics.observe(asked, hook, called.as_ref().err(), begun.elapsed());
        match called {
            Ok(_) => Ok(()),
            Err(Failure::Calling(_, why)) if hook.fails_open => {
                tracing::warn!(
                    webhook = hook.name,
                    why,
                    "a webhook failed; the request goes on without it"
                );
                audit::validating_failed_open(attributes, hook, turn);
                Ok(())
            }
            Err(failure) => Err(failure.into_error(hook)),
        }
    }
}

impl Plugin for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::VALIDATES.when(!is_exempt(scope))
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

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        if attributes.nested {
            return now(Ok(()));
        }
        let candidates = self.configured.candidates(attributes);
        let at_hand = AtHand::of(attributes);
        let mut places = candidates.iter().enumerate();
        let first = places.find_map(|(place, candidate)| Some((place, at_hand.kind(candidate)?.clone())));
        match first {
            Some(first) => later(self.dispatch(attributes, candidates, first)),
            None => now(Ok(())),
        }
    }
}
