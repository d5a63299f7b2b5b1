//! A server's auditing: its policy and where events go.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use keelson_access::user::User;
use keelson_base::cooperative::let_others_in;
use keelson_base::metrics::Numbered;
use keelson_machinery::env::Clock;
use keelson_machinery::time::Time;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::event::Event;
use super::level::Level;
use super::policy::Policy;
use super::record::{Asked, Audited, Record};
use super::sink::{Handed, LogSettings, Sink, Wait, WebhookSettings};

/// How long the end of a server waits for events to be out.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// What a command line says of auditing. Without a policy, or without a sink, nothing is recorded.
#[derive(Clone, Debug, Default)]
pub struct AuditSettings {
    pub policy: Option<Policy>,
    pub log: Option<LogSettings>,
    pub webhook: Option<WebhookSettings>,
}

/// A sink that can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("{0}")]
    Log(io::Error),
    #[error("initializing audit webhook: {0}")]
    Webhook(io::Error),
}

/// The auditing of a server; the default records nothing. A clone is the same.
#[derive(Clone, Default)]
pub struct Audit {
    auditor: Option<Arc<Auditor>>,
    counters: Counters,
}

/// A policy with sinks.
pub struct Auditor {
    policy: Policy,
    sinks: Vec<Sink>,
    clock: Arc<dyn Clock>,
    counters: Counters,
    /// Those of `counters.levels` that were used, in the order of [`Level::ALL`].
    level_counters: Numbered<Counter, { Level::ALL.len() }>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabels {
    level: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: &'static str,
}

/// What is counted.
#[derive(Clone, Default)]
struct Counters {
    events: Counter,
    levels: Family<LevelLabels, Counter>,
    errors: Family<PluginLabels, Counter>,
    rejected: Counter,
}

impl Audit {
    /// Opens the sinks.
    ///
    /// # Errors
    /// The log can't be opened, or the webhook's file can't be used.
    pub fn start(settings: AuditSettings, clock: Arc<dyn Clock>) -> Result<Audit, AuditError> {
        let counters = Counters::default();
        let mut sinks = Vec::new();
        let Some(policy) = settings.policy else {
            return Ok(Audit::default());
        };
        let errors = |plugin| counters.errors.get_or_create_owned(&PluginLabels { plugin });
        if let Some(log) = settings.log {
            let sink = Sink::log(log, clock.clone(), errors(Sink::LOG));
            sinks.push(sink.map_err(AuditError::Log)?);
        }
        if let Some(webhook) = settings.webhook {
            let sink = Sink::webhook(webhook, errors(Sink::WEBHOOK));
            sinks.push(sink.map_err(AuditError::Webhook)?);
        }
        let auditor = (!sinks.is_empty()).then(|| {
            Arc::new(Auditor {
                policy,
                sinks,
                clock,
                counters: counters.clone(),
                level_counters: Numbered::default(),
            })
        });
        Ok(Audit { auditor, counters })
    }

    /// Whether anything may be recorded.
    pub fn is_on(&self) -> bool {
        self.auditor.is_some()
    }

    /// Asks the policy about a request of `user` (`None`: it was not found out who asks). `None`: it is not recorded.
    pub(crate) fn open(&self, request: &Audited<'_>, user: Option<&Arc<User>>) -> Option<Rc<Record>> {
        let auditor = self.auditor.as_ref()?;
        let id = request.trail.id()?;
        let decision = auditor.policy.decide(user.map(|user| &**user), request.info);
        let level = decision.level;
        auditor.count_level(level);
        (level > Level::None).then(|| {
            let asked = Asked::of(request, id.clone(), user.cloned());
            let early = request.trail.take_early();
            Rc::new(Record::new(Arc::clone(auditor), decision, asked, early))
        })
    }

    /// Counts a request that was refused because its event was lost.
    pub(crate) fn rejected(&self) {
        self.counters.rejected.inc();
    }

    /// Returns when all events are out, or after ten seconds.
    pub(crate) async fn flush(&self) {
        let Some(auditor) = &self.auditor else { return };
        for sink in &auditor.sinks {
            if tokio::time::timeout(FLUSH_TIMEOUT, sink.flush()).await.is_err() {
                tracing::error!(
                    plugin = sink.plugin(),
                    "audit events are lost: they did not get out in time"
                );
            }
        }
    }

    /// Shows what is counted in `/metrics`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let Counters {
            events,
            levels,
            errors,
            rejected,
        } = self.counters.clone();
        registry.register("apiserver_audit_event", "Audit events made and handed to sinks", events);
        registry.register(
            "apiserver_audit_level",
            "Requests by how much of them is recorded",
            levels,
        );
        registry.register(
            "apiserver_audit_error",
            "Audit events lost, by the sink that lost them",
            errors,
        );
        let text = "Requests refused because their audit event was lost";
        registry.register("apiserver_audit_requests_rejected", text, rejected);
    }
}

impl Auditor {
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    fn count_level(&self, level: Level) {
        let count = || {
            let labels = LevelLabels { level: level.name() };
            self.counters.levels.get_or_create_owned(&labels)
        };
        if let Some(counter) = self.level_counters.get(level as usize, count) {
            counter.inc();
        }
    }

    /// Hands an event to all sinks; its texts are made in `text`, one after the other. What comes back are the sinks
    /// that the request has to wait for.
    pub(super) fn hand<'a>(&'a self, event: &Event<'_>, wait: Wait, text: &mut Vec<u8>) -> HandedOver<'a> {
        self.counters.events.inc();
        let mut over = HandedOver {
            kept: true,
            others: Vec::new(),
        };
        for sink in &self.sinks {
            let handed = match sink.encode(event, text) {
                true => sink.hand(text, wait),
                false => Handed::Done(sink.lost()),
            };
            match handed {
                Handed::Done(kept) => over.kept &= kept,
                other => over.others.push((sink, other)),
            }
        }
        over
    }

    /// Waits as long as the request has to. False: a sink that is strict has lost its event.
    pub(super) async fn settle(&self, over: HandedOver<'_>, wait: Wait) -> bool {
        let HandedOver { mut kept, mut others } = over;
        if others.is_empty() {
            return kept;
        }
        // Others of this thread may have events for the same write.
        let_others_in().await;
        others.iter_mut().for_each(|(_, handed)| handed.ring());
        for (sink, handed) in others {
            kept &= sink.settle(handed, wait).await;
        }
        kept
    }

    /// Hands an event to all sinks where nobody can wait.
    pub(super) fn hand_now(&self, event: &Event<'_>, text: &mut Vec<u8>) {
        self.counters.events.inc();
        for sink in &self.sinks {
            match sink.encode(event, text) {
                true => sink.send_now(text),
                false => drop(sink.lost()),
            }
        }
    }
}

/// An event that was handed to the sinks.
pub(super) struct HandedOver<'a> {
    /// False: a sink that is strict has lost it.
    kept: bool,
    /// Those that are not done with it.
    others: Vec<(&'a Sink, Handed<'a>)>,
}
