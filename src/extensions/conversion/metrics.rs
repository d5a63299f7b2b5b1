//! Metrics of conversion webhooks, under kube-apiserver's names.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Upper bounds of the calls of all webhooks, in seconds.
const BUCKETS: [f64; 15] = [
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0,
];

/// Why a call brought nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// There was no good answer.
    Call,
    /// The answer is no review, or says that the webhook failed.
    Malformed,
    /// It has another number of objects.
    Partial,
    /// One of its objects is not what it was asked for.
    Invalid,
}

impl Fault {
    fn word(self) -> &'static str {
        match self {
            Fault::Call => "conversion_webhook_call_failure",
            Fault::Malformed => "conversion_webhook_malformed_response_failure",
            Fault::Partial => "conversion_webhook_partial_response_failure",
            Fault::Invalid => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    crd_name: String,
    from_version: String,
    succeeded: &'static str,
    to_version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    failure_type: &'static str,
    result: &'static str,
}

/// Those of one server. A clone is the same metrics.
#[derive(Clone)]
pub struct ConversionMetrics {
    by_version: Family<VersionLabels, Histogram>,
    seconds: Family<CallLabels, Histogram>,
    calls: Family<CallLabels, Counter>,
}

impl Default for ConversionMetrics {
    fn default() -> Self {
        let of_versions = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        ConversionMetrics {
            by_version: Family::new_with_constructor(of_versions),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            calls: Family::default(),
        }
    }
}

impl ConversionMetrics {
    /// Shows them.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Seconds that conversions of custom resources by webhooks took, by definition and versions";
        let name = "apiserver_crd_conversion_webhook_duration_seconds";
        registry.register(name, text, self.by_version.clone());
        let text = "Seconds that calls of conversion webhooks took";
        registry.register(
            "apiserver_conversion_webhook_duration_seconds",
            text,
            self.seconds.clone(),
        );
        let text = "Calls of conversion webhooks, by what came of them";
        registry.register("apiserver_conversion_webhook_request", text, self.calls.clone());
    }

    /// Observes a call for objects of a definition and what came of it.
    pub(super) fn observe(&self, definition: &str, (from, to): (&str, &str), fault: Option<Fault>, took: Duration) {
        let seconds = took.as_secs_f64();
        let (result, succeeded) = match fault {
            None => ("success", "true"),
            Some(_) => ("failure", "false"),
        };
        let versions = VersionLabels {
            crd_name: definition.to_owned(),
            from_version: from.to_owned(),
            succeeded,
            to_version: to.to_owned(),
        };
        self.by_version.get_or_create(&versions).observe(seconds);
        let call = CallLabels {
            failure_type: fault.map_or("", Fault::word),
            result,
        };
        self.seconds.get_or_create(&call).observe(seconds);
        self.calls.get_or_create(&call).inc();
    }
}
