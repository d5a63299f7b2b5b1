//! Metrics of webhooks, under kube-apiserver's names.

use std::time::Duration;

use keelson_registry::admission::Operation;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::call::Failure;
use super::hook::Hook;

/// Upper bounds, in seconds.
const BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Larger codes are shown as this.
const LAST_CODE: u16 = 600;

/// The plug-in that calls, as metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Mutating,
    Validating,
}

impl Caller {
    fn word(self) -> &'static str {
        match self {
            Caller::Mutating => "admit",
            Caller::Validating => "validating",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OpenLabels {
    name: String,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TimeLabels {
    name: String,
    operation: &'static str,
    rejected: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: u16,
    #[prometheus(flatten)]
    of: TimeLabels,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    error_type: &'static str,
    name: String,
    operation: &'static str,
    rejection_code: u16,
    r#type: &'static str,
}

/// Those of one server.
pub(crate) struct WebhookMetrics {
    seconds: Family<TimeLabels, Histogram>,
    requests: Family<RequestLabels, Counter>,
    rejections: Family<RejectionLabels, Counter>,
    open: Family<OpenLabels, Counter>,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        WebhookMetrics {
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            requests: Family::default(),
            rejections: Family::default(),
            open: Family::default(),
        }
    }
}

impl WebhookMetrics {
    /// Shows them.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Seconds that calls of webhooks took";
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        registry.register(name, text, self.seconds.clone());
        let text = "Calls of webhooks, by the code of their answer";
        registry.register("apiserver_admission_webhook_request", text, self.requests.clone());
        let text = "Requests that webhooks rejected, or that failed with them";
        let name = "apiserver_admission_webhook_rejection_count";
        registry.register(name, text, self.rejections.clone());
        let text = "Requests that passed though a webhook failed";
        let name = "apiserver_admission_webhook_fail_open_count";
        registry.register(name, text, self.open.clone());
    }

    /// Observes a call and what came of it; `None`: the webhook let the request pass.
    pub(super) fn observe(
        &self,
        (caller, operation): (Caller, Operation),
        hook: &Hook,
        failure: Option<&Failure>,
        took: Duration,
    ) {
        let (code, error) = match failure {
            None => (200, ""),
            Some(Failure::Calling(code, _)) => (*code, "calling_webhook_error"),
            Some(Failure::Denied(error)) => (error.code, "no_error"),
            Some(Failure::Fatal(_)) => (0, "apiserver_internal_error"),
        };
        let code = code.min(LAST_CODE);
        let opens = hook.fails_open && matches!(failure, Some(Failure::Calling(..)));
        let of = TimeLabels {
            name: hook.name.clone(),
            operation: operation.word(),
            rejected: if failure.is_some() && !opens { "true" } else { "false" },
            r#type: caller.word(),
        };
        self.seconds.get_or_create(&of).observe(took.as_secs_f64());
        if opens {
            let (name, r#type) = (of.name.clone(), of.r#type);
            self.open.get_or_create(&OpenLabels { name, r#type }).inc();
        } else if failure.is_some() {
            let labels = RejectionLabels {
                error_type: error,
                name: of.name.clone(),
                operation: of.operation,
                rejection_code: code,
                r#type: of.r#type,
            };
            self.rejections.get_or_create(&labels).inc();
        }
        self.requests.get_or_create(&RequestLabels { code, of }).inc();
    }
}
