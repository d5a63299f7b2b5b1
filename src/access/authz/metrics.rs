//! Metrics of authorization, under kube-apiserver's names. Names of authorizers are those of the configuration, which
//! are few.

use std::fmt::Error;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use keelson_base::identity::id_hash;
use keelson_base::metrics::Outcomes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sha2::{Digest, Sha256};

use super::Verdict;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    decision: &'static str,
    name: String,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AuthorizerLabels {
    name: String,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    name: String,
    result: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    apiserver_id_hash: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InfoLabels {
    apiserver_id_hash: String,
    hash: String,
}

/// Upper bounds of the time of all authorizers together, in seconds.
const BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
/// Those of calls of webhooks.
const CALL_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Those of match conditions.
const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// The name in the configuration, and the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    /// `Webhook`, `RBAC` …
    pub kind: &'static str,
}

/// What came of a webhook's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
    Success,
    Error,
    Timeout,
}

impl Called {
    fn result(self) -> &'static str {
        match self {
            Called::Success => "success",
            Called::Error => "error",
            Called::Timeout => "timeout",
        }
    }
}

/// Counters of all authorizers. A clone is the same counters.
#[derive(Clone)]
pub struct AuthorizationMetrics {
    attempts: Arc<Outcomes<ResultLabel, Counter, 4>>,
    decisions: Family<DecisionLabels, Counter>,
    calls: Family<OutcomeLabels, Counter>,
    call_durations: Family<OutcomeLabels, Histogram>,
    open: Family<OutcomeLabels, Counter>,
    condition_errors: Family<AuthorizerLabels, Counter>,
    condition_durations: Family<AuthorizerLabels, Histogram>,
    exclusions: Family<AuthorizerLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    reload_times: Family<ReloadLabels, Gauge<f64, AtomicU64>>,
    in_use: InUse,
}

impl Default for AuthorizationMetrics {
    fn default() -> Self {
        AuthorizationMetrics {
            attempts: Arc::new(Outcomes::new(|| Histogram::new(BUCKETS))),
            decisions: Family::default(),
            calls: Family::default(),
            call_durations: Family::new_with_constructor(|| Histogram::new(CALL_BUCKETS)),
            open: Family::default(),
            condition_errors: Family::default(),
            condition_durations: Family::new_with_constructor(|| Histogram::new(CONDITION_BUCKETS)),
            exclusions: Family::default(),
            reloads: Family::default(),
            reload_times: Family::default(),
            in_use: InUse::default(),
        }
    }
}

impl AuthorizationMetrics {
    /// Counts a request about which all authorizers were asked.
    pub fn observe(&self, verdict: &Verdict, took: Duration) {
        let (number, result) = match verdict {
            Verdict { allowed: true, .. } => (0, "allowed"),
            Verdict { error: Some(_), .. } => (1, "error"),
            Verdict { denied: true, .. } => (2, "denied"),
            _ => (3, "no-opinion"),
        };
        if let Some(attempts) = self.attempts.observe(number, ResultLabel { result }, took) {
            attempts.inc();
        }
    }

    pub(super) fn decided(&self, label: &Label, allowed: bool) {
        let labels = DecisionLabels {
            decision: if allowed { "allowed" } else { "denied" },
            name: label.name.clone(),
            r#type: label.kind,
        };
        self.decisions.get_or_create(&labels).inc();
    }

    pub(super) fn called(&self, name: &str, called: Called, took: Duration) {
        let labels = outcome(name, called);
        self.calls.get_or_create(&labels).inc();
        self.call_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A webhook failed, and had no opinion therefore.
    pub(super) fn failed_open(&self, name: &str, called: Called) {
        self.open.get_or_create(&outcome(name, called)).inc();
    }

    pub(super) fn matched(&self, label: &Label, took: Duration) {
        let labels = authorizer(label);
        self.condition_durations
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    pub(super) fn condition_failed(&self, label: &Label) {
        self.condition_errors.get_or_create(&authorizer(label)).inc();
    }

    pub(super) fn excluded(&self, label: &Label) {
        self.exclusions.get_or_create(&authorizer(label)).inc();
    }

    /// The configuration's file was read anew, and taken or not.
    pub fn reloaded(&self, taken: bool) {
        let labels = ReloadLabels {
            apiserver_id_hash: id_hash(),
            status: if taken { "success" } else { "failure" },
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.reloads.get_or_create(&labels).inc();
        self.reload_times.get_or_create(&labels).set(now.as_secs_f64());
    }

    /// Which configuration is in use: the text of its file, of which the digest is shown.
    pub fn use_configuration(&self, text: &[u8]) {
        let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        let hash = format!("sha256:{hex}");
        *self.in_use.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(hash);
    }

    /// Makes `/metrics` show these.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Requests that were authorized, by what came of it";
        registry.register("authorization_attempts", text, self.attempts.counts.clone());
        let text = "Seconds that authorization took";
        registry.register("authorization_duration_seconds", text, self.attempts.seconds.clone());
        let text = "Decisions of each authorizer";
        registry.register("apiserver_authorization_decisions", text, self.decisions.clone());
        let text = "Calls of webhooks that authorize, by what came of them";
        registry.register("apiserver_authorization_webhook_evaluations", text, self.calls.clone());
        let text = "Seconds that calls of webhooks took";
        registry.register(
            "apiserver_authorization_webhook_duration_seconds",
            text,
            self.call_durations.clone(),
        );
        let text = "Failed calls of webhooks after which other authorizers decided";
        registry.register(
            "apiserver_authorization_webhook_evaluations_fail_open",
            text,
            self.open.clone(),
        );
        let text = "Match conditions that could not be computed";
        let name = "apiserver_authorization_match_condition_evaluation_errors";
        registry.register(name, text, self.condition_errors.clone());
        let text = "Seconds that match conditions took";
        let name = "apiserver_authorization_match_condition_evaluation_seconds";
        registry.register(name, text, self.condition_durations.clone());
        let text = "Requests about which a webhook was not asked, for its match conditions";
        registry.register(
            "apiserver_authorization_match_condition_exclusions",
            text,
            self.exclusions.clone(),
        );
        let text = "How often the authorization configuration was replaced, or could not be";
        let name = "apiserver_authorization_config_controller_automatic_reloads";
        registry.register(name, text, self.reloads.clone());
        let text = "When that was last, in seconds since 1970";
        let name = "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds";
        registry.register(name, text, self.reload_times.clone());
        registry.register_collector(Box::new(self.in_use.clone()));
    }
}

fn outcome(name: &str, called: Called) -> OutcomeLabels {
    OutcomeLabels {
        name: name.to_owned(),
        result: called.result(),
    }
}

fn authorizer(label: &Label) -> AuthorizerLabels {
    AuthorizerLabels {
        name: label.name.clone(),
        r#type: label.kind,
    }
}

/// The digest of the configuration in use: one series at a time.
#[derive(Clone, Debug, Default)]
struct InUse(Arc<Mutex<Option<String>>>);

impl Collector for InUse {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let hash = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(hash) = hash else { return Ok(()) };
        let name = "apiserver_authorization_config_controller_last_config_info";
        let text = "The digest of the authorization configuration in use";
        let mut family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
        let labels = InfoLabels {
            apiserver_id_hash: id_hash(),
            hash,
        };
        let one = ConstGauge::new(1i64);
        one.encode(family.encode_family(&labels)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_kube_apiservers_names() {
        let metrics = AuthorizationMetrics::default();
        let label = Label {
            name: "hook".to_owned(),
            kind: "Webhook",
        };
        metrics.decided(&label, true);
        metrics.called("hook", Called::Timeout, Duration::from_millis(3));
        metrics.failed_open("hook", Called::Error);
        metrics.excluded(&label);
        metrics.observe(&Verdict::default(), Duration::ZERO);
        metrics.use_configuration(b"");
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"hook\",type=\"Webhook\"} 1",
            "apiserver_authorization_webhook_evaluations_total{name=\"hook\",result=\"timeout\"} 1",
            "apiserver_authorization_webhook_evaluations_fail_open_total{name=\"hook\",result=\"error\"} 1",
            "apiserver_authorization_match_condition_exclusions_total{name=\"hook\",type=\"Webhook\"} 1",
            "authorization_attempts_total{result=\"no-opinion\"} 1",
            "hash=\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"} 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
