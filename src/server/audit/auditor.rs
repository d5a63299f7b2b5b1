//! A server's auditing: its policy and where events go.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use keelson_machinery::env::Clock;
use keelson_machinery::time::Time;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::event::Event;
use super::level::Level;
use super::policy::Policy;
use super::record::{Asked, Record};
use super::sink::{LogSettings, Sink, Wait, WebhookSettings};
use crate::rest::request::Request;
use crate::user::User;

/// How long the end of a server waits for events to be out.
const FAREWELL: Duration = Duration::from_secs(10);

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
            })
        });
        Ok(Audit { auditor, counters })
    }

    /// Whether anything may be recorded.
    pub fn is_on(&self) -> bool {
        self.auditor.is_some()
    }

    /// Asks the policy about a request of `user` (`None`: it was not found out who asks). `None`: it is not recorded.
    pub(crate) fn open(&self, request: &Request, user: Option<&Arc<User>>) -> Option<Rc<Record>> {
        let auditor = self.auditor.as_ref()?;
        let id = request.audit.id()?;
        let decision = auditor.policy.decide(user.map(|user| &**user), &request.info);
        let level = decision.level;
        let labels = LevelLabels { level: level.name() };
        auditor.counters.levels.get_or_create(&labels).inc();
        (level > Level::None).then(|| {
            let asked = Asked::of(request, id.clone(), user.cloned());
            let early = request.audit.take_early();
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
            if tokio::time::timeout(FAREWELL, sink.flush()).await.is_err() {
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

    /// The texts of an event, one for each sink; `None`: it is too large for that one.
    pub(super) fn encode(&self, event: &Event<'_>) -> Vec<Option<Bytes>> {
        self.counters.events.inc();
        self.sinks.iter().map(|sink| sink.encode(event)).collect()
    }

    /// Hands the texts to their sinks. False: one that is strict has lost its own.
    pub(super) async fn send(&self, texts: Vec<Option<Bytes>>, wait: Wait) -> bool {
        let mut kept = true;
        for (sink, text) in self.sinks.iter().zip(texts) {
            kept &= match text {
                Some(text) => sink.send(text, wait).await,
                None => sink.lost(),
            };
        }
        kept
    }

    pub(super) fn send_now(&self, texts: Vec<Option<Bytes>>) {
        for (sink, text) in self.sinks.iter().zip(texts) {
            match text {
                Some(text) => sink.send_now(text),
                None => drop(sink.lost()),
            }
        }
    }
}
