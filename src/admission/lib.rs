//! Dynamic admission: what objects of the group admissionregistration.k8s.io say about requests.
//!
//! [`webhook`] asks other servers, [`policy`] evaluates expressions. Which requests are meant is found by [`matching`];
//! what expressions see of a request is in [`expressions`]; [`versions`] shows objects in the version that is asked
//! for. Configurations and namespaces come from the memory of the store: a request that nobody means costs a lookup.

#![deny(missing_docs)]

mod expressions;
mod manifests;
mod matching;
mod namespaces;
mod options;
mod policy;
mod versions;
mod webhook;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keelson_registry::admission::Scope;
use prometheus_client::registry::Registry as MetricRegistry;

pub use expressions::Mistake;
pub use policy::{Checked, CheckedKind, Expressions, MutatingAdmissionPolicy, ValidatingAdmissionPolicy, check_types};
pub use webhook::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};

/// What the plug-ins of one server share.
#[derive(Default)]
pub struct Shared {
    namespaces: namespaces::Namespaces,
    metrics: webhook::WebhookMetrics,
    /// Metrics are shown already.
    is_registered: AtomicBool,
}

impl Shared {
    /// For one server.
    pub fn new() -> Arc<Shared> {
        Arc::default()
    }

    /// Shows the metrics, once.
    fn register(&self, registry: &mut MetricRegistry) {
        if !self.is_registered.swap(true, Ordering::Relaxed) {
            self.metrics.register(registry);
        }
    }
}

/// The group of the configurations.
const GROUP: &str = "admissionregistration.k8s.io";

/// Kinds whose objects nobody else has a say in: a faulty configuration can be taken back.
const EXEMPT: [&str; 6] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

/// Whether requests of a resource are never shown to configurations.
fn is_exempt(scope: &Scope<'_>) -> bool {
    scope.group == GROUP && EXEMPT.contains(&scope.plural)
}
