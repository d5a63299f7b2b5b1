//! `/metrics` in the Prometheus text format, under kube-apiserver's names. Label values come from fixed sets or from
//! the scheme, so that no client can make series without end.

mod requests;
mod slis;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use keelson_storage::encryption::{Encryption, Reloads};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use keelson_access::flowcontrol::in_flight::InFlight;
use keelson_base::identity::id_hash;
use keelson_registry::cache::Budget;
pub(crate) use requests::RequestMetrics;
pub(crate) use slis::HealthIndicators;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SortLabels {
    request_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoreLabels {
    storage_cluster_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    apiserver_id_hash: String,
    status: &'static str,
}

/// The server's metrics.
pub struct Metrics {
    registry: Registry,
    pub(crate) requests: RequestMetrics,
    resident: Gauge<f64, AtomicU64>,
    cached: Gauge,
    budget: Arc<Budget>,
    current: Family<SortLabels, Gauge>,
    in_flight: Arc<InFlight>,
    encryption: EncryptionMetrics,
    store_sizes: Family<StoreLabels, Gauge>,
}

/// What became of the encryption configuration's file when it was read anew.
struct EncryptionMetrics {
    encryption: Arc<Encryption>,
    /// Of this server's name, as kube-apiserver labels them.
    id_hash: String,
    reloads: Family<ReloadLabels, Counter>,
    times: Family<ReloadLabels, Gauge>,
}

impl EncryptionMetrics {
    fn new(encryption: Arc<Encryption>, registry: &mut Registry) -> EncryptionMetrics {
        let (reloads, times) = (Family::default(), Family::default());
        let name = "apiserver_encryption_config_controller_automatic_reloads";
        registry.register(
            name,
            "How often the encryption configuration was replaced, or could not be",
            reloads.clone(),
        );
        let name = "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds";
        registry.register(name, "When that was last, in seconds since 1970", times.clone());
        EncryptionMetrics {
            encryption,
            id_hash: id_hash(),
            reloads,
            times,
        }
    }

    fn update(&self) {
        let Reloads {
            succeeded,
            failed,
            last_success,
            last_failure,
        } = self.encryption.reloads();
        for (status, count, last) in [("success", succeeded, last_success), ("failure", failed, last_failure)] {
            let count = count.load(Ordering::Relaxed);
            if count == 0 {
                continue;
            }
            let labels = ReloadLabels {
                apiserver_id_hash: self.id_hash.clone(),
                status,
            };
            let last = last.load(Ordering::Relaxed);
            let reloads = self.reloads.get_or_create(&labels);
            reloads.inc_by(count.saturating_sub(reloads.get()));
            self.times
                .get_or_create(&labels)
                .set(i64::try_from(last).unwrap_or(i64::MAX));
        }
    }
}

impl Metrics {
    /// The metrics of a server whose renditions are in `budget` and whose requests `in_flight` counts.
    pub fn new(budget: Arc<Budget>, in_flight: Arc<InFlight>, encryption: Arc<Encryption>) -> Metrics {
        let mut registry = Registry::default();
        let requests = RequestMetrics::new(&mut registry);
        let resident = Gauge::default();
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory of the process",
            resident.clone(),
        );
        let current = Family::default();
        let text = "Requests under way, by whether they may change something";
        registry.register("apiserver_current_inflight_requests", text, current.clone());
        let cached = Gauge::default();
        let text = "Memory of objects in the forms in which they were answered";
        registry.register("keelson_cache_rendition_bytes", text, cached.clone());
        let limit = Gauge::<i64>::default();
        limit.set(i64::try_from(budget.limit()).unwrap_or(i64::MAX));
        let text = "The most that keelson_cache_rendition_bytes may be";
        registry.register("keelson_cache_limit_bytes", text, limit);
        let store_sizes = Family::default();
        let text = "Bytes that a store takes where it lies";
        registry.register("apiserver_storage_size_bytes", text, store_sizes.clone());
        let encryption = EncryptionMetrics::new(encryption, &mut registry);
        Metrics {
            cached,
            encryption,
            store_sizes,
            budget,
            current,
            in_flight,
            registry,
            requests,
            resident,
        }
    }

    /// Where parts of the server show metrics of their own.
    pub(crate) fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Shows the size of the nth store, in bytes.
    pub(crate) fn set_store_size(&self, n: usize, bytes: u64) {
        let labels = StoreLabels {
            storage_cluster_id: format!("etcd-{n}"),
        };
        let size = self.store_sizes.get_or_create(&labels);
        size.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// The text of `/metrics`.
    pub fn encode(&self) -> String {
        self.resident.set(resident_bytes().unwrap_or(0.0));
        self.encryption.update();
        self.cached.set(i64::try_from(self.budget.used()).unwrap_or(i64::MAX));
        for (request_kind, now) in [
            ("readOnly", self.in_flight.reads()),
            ("mutating", self.in_flight.writes()),
        ] {
            let gauge = self.current.get_or_create(&SortLabels { request_kind });
            gauge.set(i64::try_from(now).unwrap_or(i64::MAX));
        }
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = text::encode(&mut out, &self.registry);
        plain_text(&out)
    }
}

/// OpenMetrics as the older text format has it, which is what is served: there counters are described by the names of
/// their samples, and no end is marked.
fn plain_text(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| *line != "# EOF").collect();
    // A family's samples follow its description.
    let named = |name: &str, at: usize| {
        let first = lines
            .get(at..)
            .and_then(|rest| rest.iter().find(|line| !line.starts_with('#')));
        let is_total = first
            .and_then(|line| line.strip_prefix(name)?.strip_prefix(TOTAL))
            .is_some();
        let kind = format!("# TYPE {name} counter");
        is_total && lines.iter().skip(at).take(2).any(|line| **line == kind)
    };
    let mut out = String::with_capacity(text.len() + 1024);
    for (at, line) in lines.iter().enumerate() {
        let described = ["# HELP ", "# TYPE "].iter().find_map(|mark| {
            let (name, rest) = line.strip_prefix(mark)?.split_once(' ')?;
            named(name, at).then_some((mark, name, rest))
        });
        match described {
            Some((mark, name, rest)) => out.extend([*mark, name, TOTAL, " ", rest]),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// What the names of most counters' samples end in.
const TOTAL: &str = "_total";

/// Resident memory of this process where the system tells.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn counters_are_described_by_the_names_of_their_samples() {
        let open = "# HELP attempts Not totals.\n# TYPE attempts counter\nattempts{result=\"x\"} 1\n\
                    # HELP a_requests All.\n# TYPE a_requests counter\na_requests_total{verb=\"GET\"} 3\n\
                    # HELP b_seconds Some.\n# TYPE b_seconds gauge\nb_seconds 1.5\n# EOF\n";
        let plain = "# HELP attempts Not totals.\n# TYPE attempts counter\nattempts{result=\"x\"} 1\n\
                     # HELP a_requests_total All.\n# TYPE a_requests_total counter\na_requests_total{verb=\"GET\"} 3\n\
                     # HELP b_seconds Some.\n# TYPE b_seconds gauge\nb_seconds 1.5\n";
        assert_eq!(plain_text(open), plain);
    }
}
