//! Calls outwards: every one that the server makes goes through here.
//!
//! * [`Client`] sends requests over TLS, in HTTP/2 where the server speaks it, with its own authorities, certificate,
//!   credentials and bounds, and keeps a bounded number of connections for the next ones.
//! * [`Webhook`] is a client for one address that a kubeconfig file names ([`Kubeconfig`]); it sends documents in JSON
//!   and tries again as [`Backoff`] says. [`WebhookClientConfig`] makes one of what an object says of a webhook.
//! * [`Egress`] says which way connections take: directly, or through a proxy.
//! * [`dial`] opens a bare connection.
//!
//! What all have in common: a name is resolved once for a connection, and the addresses that came out are the only ones
//! that are connected to ([`Dialer`]). Redirects are errors, never followed: whoever answers must not choose what the
//! server calls next. Answers have a size and a time. Proxies that environment variables name (`HTTPS_PROXY` …) are not
//! used: what the server sends to whom is said in its configuration alone. Errors are worded as Go words them, since
//! people and tests know them so.

mod backoff;
mod call;
mod client_config;
mod credentials;
mod dial;
mod egress;
mod error;
mod kubeconfig;
mod pool;
mod probe;
mod proxy;
mod review;
mod sender;
mod server_certificate;
mod service;
mod status;
mod stream;
#[cfg(any(test, feature = "testing"))]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it is of tests alone"
)]
pub mod stub;
mod target;
#[cfg(test)]
mod tests;
mod tls;
mod transport;
mod users;
mod webhook;

pub use backoff::Backoff;
pub use call::{Answer, Call};
pub use client_config::{WebhookAddress, WebhookClientConfig, WebhookWays};
pub use credentials::{Credentials, Secret};
pub use dial::{DialError, Dialer, Resolver, SystemResolver, dial};
pub use egress::{Egress, EgressError, Way};
pub use error::{CallError, Fault};
pub use kubeconfig::{Kubeconfig, KubeconfigError};
pub use probe::{ProbeError, health};
pub use proxy::{Proxy, ProxyError};
pub use review::{DocumentError, document, members};
pub use service::{Located, ServiceError, ServicePort, Services};
pub use status::refusal;
pub use stream::Stream;
pub use target::TargetError;
pub use tls::{ClientTls, Roots, TlsConfigError};
pub use transport::{Client, ClientSettings, MAX_ANSWER_BYTES, TIMEOUT};
use users::Identity;
pub use users::Users;
pub use webhook::{Webhook, WebhookError};
