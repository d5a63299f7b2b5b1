//! Admission webhooks: other servers that change and check what is written, deleted and connected to.

mod answer;
mod audit;
mod call;
mod clients;
mod configuration;
mod hook;
mod hooks;
mod metrics;
mod mutating;
mod review;
mod validating;

pub(crate) use metrics::WebhookMetrics;
pub use mutating::MutatingAdmissionWebhook;
pub use validating::ValidatingAdmissionWebhook;
