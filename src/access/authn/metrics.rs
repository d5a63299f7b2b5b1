//! Metrics of authentication, under kube-apiserver's names.

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use keelson_base::identity::id_hash;
use keelson_base::metrics::{Numbered, Outcomes};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use sha2::{Digest, Sha256};

use super::Refusal;

/// A counter whose name does not end in `_total`, which the library's own would add.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicU64>);

impl Tally {
    pub fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl TypedMetric for Tally {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Tally {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        // Precise enough for any count that a process comes to.
        let count = i64::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        encoder.encode_gauge(&count)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UserLabel {
    username: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

/// Upper bounds of the time that authentication takes, in seconds.
const BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
/// Those of the token cache.
const CACHE_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Users that are named in metrics as they are: there must not be a series for everybody who comes.
const SHOWN_USERS: [&str; 5] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
];

/// What the others are called.
const OTHER_USERS: &str = "other";

/// Counters of all authenticators.
pub struct AuthenticationMetrics {
    attempts: Outcomes<ResultLabel, Tally, 3>,
    users: Family<UserLabel, Tally>,
    /// That of the users that are not shown.
    other_users: Numbered<Tally, 1>,
    pub(super) cache: CacheMetrics,
    pub(super) jwt: JwtMetrics,
    pub(super) service_accounts: ServiceAccountMetrics,
}

impl Default for AuthenticationMetrics {
    fn default() -> Self {
        AuthenticationMetrics {
            attempts: Outcomes::new(|| Histogram::new(BUCKETS)),
            users: Family::default(),
            other_users: Numbered::default(),
            cache: CacheMetrics::default(),
            jwt: JwtMetrics::default(),
            service_accounts: ServiceAccountMetrics::default(),
        }
    }
}

impl AuthenticationMetrics {
    /// Counts a request that was authenticated, or not. `user`: as whom.
    pub fn observe(&self, user: Result<&str, &Refusal>, took: Duration) {
        let (number, result) = match user {
            Ok(_) => (0, "success"),
            Err(Refusal(texts)) if texts.is_empty() => (1, "failure"),
            Err(_) => (2, "error"),
        };
        if let Some(attempts) = self.attempts.observe(number, ResultLabel { result }, took) {
            attempts.inc();
        }
        if let Ok(name) = user {
            self.count_user(shown(name));
        }
    }

    fn count_user(&self, username: &'static str) {
        let users = || self.users.get_or_create_owned(&UserLabel { username });
        match (username == OTHER_USERS)
            .then(|| self.other_users.get(0, users))
            .flatten()
        {
            Some(others) => others.inc(),
            None => users().inc(),
        }
    }

    /// Makes `/metrics` show these.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Requests whose sender was looked for, by what came of it";
        registry.register("authentication_attempts", text, self.attempts.counts.clone());
        let text = "Seconds that it took to find out who sends a request";
        registry.register("authentication_duration_seconds", text, self.attempts.seconds.clone());
        let text = "Authenticated requests, by user as far as users are few";
        registry.register("authenticated_user_requests", text, self.users.clone());
        self.cache.register(registry);
        self.jwt.register(registry);
        self.service_accounts.register(registry);
    }
}

fn shown(name: &str) -> &'static str {
    let known = SHOWN_USERS.iter().find(|one| **one == name);
    known
        .copied()
        .unwrap_or(if name.contains('@') { "email_id" } else { OTHER_USERS })
}

/// How the token cache does.
pub(super) struct CacheMetrics {
    /// Hits and misses.
    requests: Outcomes<StatusLabel, Counter, 2>,
    fetches: Family<StatusLabel, Counter>,
    active: Family<StatusLabel, Gauge>,
}

impl Default for CacheMetrics {
    fn default() -> Self {
        CacheMetrics {
            requests: Outcomes::new(|| Histogram::new(CACHE_BUCKETS)),
            fetches: Family::default(),
            active: Family::default(),
        }
    }
}

impl CacheMetrics {
    pub fn hit(&self, begin: Instant) {
        self.asked(0, "hit", begin);
    }

    /// What waits or looks is shown for as long as the returned guard lives.
    pub fn begin(&self, waits: bool) -> Active {
        let status = if waits { "blocked" } else { "in_flight" };
        let gauge = self.active.get_or_create(&StatusLabel { status }).clone();
        gauge.inc();
        Active(gauge)
    }

    pub fn fetched(&self, begin: Instant, ok: bool) {
        self.asked(1, "miss", begin);
        let status = if ok { "ok" } else { "error" };
        self.fetches.get_or_create(&StatusLabel { status }).inc();
    }

    fn asked(&self, number: usize, status: &'static str, begin: Instant) {
        if let Some(requests) = self.requests.observe(number, StatusLabel { status }, begin.elapsed()) {
            requests.inc();
        }
    }

    fn register(&self, registry: &mut Registry) {
        let name = |what: &str| format!("authentication_token_cache_{what}");
        let text = "Tokens that were brought, by whether they were remembered";
        registry.register(name("request"), text, self.requests.counts.clone());
        let text = "Seconds from a token to whom it stands for";
        registry.register(name("request_duration_seconds"), text, self.requests.seconds.clone());
        let text = "Tokens that were looked at, by whether that worked";
        registry.register(name("fetch"), text, self.fetches.clone());
        let text = "Tokens that are being looked at, and requests that wait for that";
        registry.register(name("active_fetch_count"), text, self.active.clone());
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IssuerLabel {
    jwt_issuer_hash: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FetchLabel {
    apiserver_id_hash: String,
    jwt_issuer_hash: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabel {
    apiserver_id_hash: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConfigurationLabel {
    apiserver_id_hash: String,
    hash: String,
}

/// Upper bounds of the time that the token of an issuer takes, in seconds.
const JWT_BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Tokens of OpenID Connect issuers, and the file that names these. There are as many series as a configuration has
/// issuers.
pub(super) struct JwtMetrics {
    latencies: Family<IssuerLabel, Histogram>,
    fetches: Family<FetchLabel, Gauge>,
    reloads: Family<ReloadLabel, Counter>,
    reload_times: Family<ReloadLabel, Gauge>,
    configuration: Family<ConfigurationLabel, Gauge>,
}

impl Default for JwtMetrics {
    fn default() -> Self {
        JwtMetrics {
            latencies: Family::new_with_constructor(|| Histogram::new(JWT_BUCKETS)),
            fetches: Family::default(),
            reloads: Family::default(),
            reload_times: Family::default(),
            configuration: Family::default(),
        }
    }
}

impl JwtMetrics {
    pub fn observe(&self, issuer: &str, ok: bool, took: Duration) {
        let label = IssuerLabel {
            jwt_issuer_hash: hash(issuer.as_bytes()),
            result: if ok { "success" } else { "failure" },
        };
        self.latencies.get_or_create(&label).observe(took.as_secs_f64());
    }

    /// `now` in seconds since 1970.
    pub fn fetched(&self, issuer: &str, ok: bool, now: i64) {
        let label = FetchLabel {
            apiserver_id_hash: id_hash(),
            jwt_issuer_hash: hash(issuer.as_bytes()),
            result: if ok { "success" } else { "failure" },
        };
        self.fetches.get_or_create(&label).set(now);
    }

    fn register(&self, registry: &mut Registry) {
        let name = |what: &str| format!("apiserver_authentication_jwt_authenticator_{what}");
        let text = "Seconds that the tokens of an issuer took";
        registry.register(name("latency_seconds"), text, self.latencies.clone());
        let text = "When the keys of an issuer were last read, in seconds since 1970";
        registry.register(name("jwks_fetch_last_timestamp_seconds"), text, self.fetches.clone());
        let name = |what: &str| format!("apiserver_authentication_config_controller_{what}");
        let text = "How often the authentication configuration was replaced, or could not be";
        registry.register(name("automatic_reloads"), text, self.reloads.clone());
        let text = "When that was last, in seconds since 1970";
        registry.register(
            name("automatic_reload_last_timestamp_seconds"),
            text,
            self.reload_times.clone(),
        );
        let text = "The digest of the authentication configuration in use";
        registry.register(name("last_config_info"), text, self.configuration.clone());
    }
}

impl AuthenticationMetrics {
    /// The configuration with this text is in use.
    pub fn configured(&self, text: &[u8]) {
        self.jwt.configuration.clear();
        let label = ConfigurationLabel {
            apiserver_id_hash: id_hash(),
            hash: hash(text),
        };
        self.jwt.configuration.get_or_create(&label).set(1);
    }

    /// The configuration was read anew; `now` in seconds since 1970.
    pub fn reloaded(&self, ok: bool, now: i64) {
        let label = ReloadLabel {
            apiserver_id_hash: id_hash(),
            status: if ok { "success" } else { "failure" },
        };
        self.jwt.reloads.get_or_create(&label).inc();
        self.jwt.reload_times.get_or_create(&label).set(now);
    }
}

fn hash(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// A token that is being looked at, or waited for.
pub(super) struct Active(Gauge);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Uses of the tokens of service accounts.
#[derive(Default)]
pub(super) struct ServiceAccountMetrics {
    pub legacy: Counter,
    pub legacy_automatic: Counter,
    pub legacy_manual: Counter,
    pub legacy_invalid: Counter,
    pub stale: Counter,
    pub valid: Counter,
}

impl ServiceAccountMetrics {
    fn register(&self, registry: &mut Registry) {
        for (name, text, counter) in [
            ("legacy_tokens", "Tokens without audience", &self.legacy),
            (
                "legacy_auto_token_uses",
                "Tokens of secrets that a controller made",
                &self.legacy_automatic,
            ),
            (
                "legacy_manual_token_uses",
                "Tokens of secrets that somebody made",
                &self.legacy_manual,
            ),
            (
                "invalid_legacy_auto_token_uses",
                "Tokens of secrets that were marked invalid",
                &self.legacy_invalid,
            ),
            ("stale_tokens", "Tokens that ought to have been replaced", &self.stale),
            ("valid_tokens", "Tokens that are in their time", &self.valid),
        ] {
            registry.register(format!("serviceaccount_{name}"), text, counter.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_original_and_users_are_few() {
        let metrics = AuthenticationMetrics::default();
        for name in ["admin", "ann@example.com", "bob", "system:node:a", "carol"] {
            metrics.observe(Ok(name), Duration::from_millis(3));
        }
        metrics.observe(Err(&"wrong".into()), Duration::ZERO);
        metrics.observe(Err(&Refusal::default()), Duration::ZERO);
        metrics.cache.hit(Instant::now());
        drop(metrics.cache.begin(false));
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE authentication_attempts counter",
            "authentication_attempts{result=\"success\"} 5",
            "authentication_attempts{result=\"error\"} 1",
            "authentication_attempts{result=\"failure\"} 1",
            "authenticated_user_requests{username=\"other\"} 3",
            "authenticated_user_requests{username=\"email_id\"} 1",
            "authentication_duration_seconds_bucket{le=\"0.004\",result=\"success\"} 5",
            "authentication_token_cache_request_total{status=\"hit\"} 1",
            "authentication_token_cache_active_fetch_count{status=\"in_flight\"} 0",
            "serviceaccount_valid_tokens_total 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
