//! Settings of requests and of graceful shutdown: what command lines say of all requests alike.

use std::time::Duration;

use actix_web::http::header::HeaderValue;
use regex::Regex;

/// Settings of the filter chain, of watches and of the shutdown. The defaults are kube-apiserver's.
#[derive(Clone, Debug)]
pub struct RequestSettings {
    /// Requests that are no streams end after this time at the latest (`--request-timeout`).
    pub timeout: Duration,
    /// A watch without `timeoutSeconds` ends after this time, plus up to as much again by chance
    /// (`--min-request-timeout`).
    pub min_watch: Duration,
    /// Requests wait for seats by their priority, and both limits below together are the number of seats
    /// (`--enable-priority-and-fairness`). Needs [`crate::server::AccessConfig::flow_control`].
    pub priority_and_fairness: bool,
    /// Requests that only read, under way at once (`--max-requests-inflight`); 0: any number.
    pub max_reads: usize,
    /// Requests that may change something, under way at once (`--max-mutating-requests-inflight`); 0: any number.
    pub max_writes: usize,
    /// The `Strict-Transport-Security` header of answers over TLS (`--strict-transport-security-directives`).
    pub strict_transport: Option<HeaderValue>,
    /// Origins whose scripts may read answers (`--cors-allowed-origins`), each matched anywhere in the `Origin` header.
    pub allowed_origins: Vec<Regex>,
    /// How long hooks that have not ended count as healthy for `/livez` (`--livez-grace-period`).
    pub livez_grace: Duration,
    pub shutdown: ShutdownSettings,
}

impl Default for RequestSettings {
    fn default() -> Self {
        RequestSettings {
            timeout: Duration::from_secs(60),
            min_watch: Duration::from_secs(1800),
            priority_and_fairness: true,
            max_reads: 400,
            max_writes: 200,
            strict_transport: None,
            allowed_origins: Vec::new(),
            livez_grace: Duration::ZERO,
            shutdown: ShutdownSettings::default(),
        }
    }
}

/// How the server ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShutdownSettings {
    /// How long it goes on as before, but for a red `/readyz` (`--shutdown-delay-duration`).
    pub delay: Duration,
    /// Then it answers new requests with 429 until those under way have ended (`--shutdown-send-retry-after`), rather
    /// than not to take connections.
    pub send_retry_after: bool,
    /// The time over which watches end (`--shutdown-watch-termination-grace-period`), so that not all clients come to
    /// another server in the same moment; zero: all at once.
    pub watch_grace: Duration,
}
