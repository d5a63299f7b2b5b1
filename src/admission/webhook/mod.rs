//! Admission webhooks: other servers that change and check what is written, deleted and connected to.

mod answer;
mod audit;
mod call;
mod clients;
mod configuration;
mod hook;
mod hooks;
mod mutating;
mod review;
mod validating;

pub use mutating::MutatingAdmissionWebhook;
pub use validating::ValidatingAdmissionWebhook;
