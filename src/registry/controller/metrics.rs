//! Metrics of work queues and of leader election, under kube-apiserver's names. Labels are names of controllers, which
//! the program knows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// Upper bounds of times, in seconds.
const BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

type Times = Family<Labels, Histogram, fn() -> Histogram>;

/// All series of one server's controllers.
#[derive(Clone)]
pub struct ControllerMetrics {
    adds: Family<Labels, Counter>,
    depth: Family<Labels, Gauge>,
    retries: Family<Labels, Counter>,
    waited: Times,
    worked: Times,
    under_way: UnderWay,
    leads: Family<Labels, Gauge>,
}

impl Default for ControllerMetrics {
    fn default() -> Self {
        let times = || Times::new_with_constructor(histogram);
        ControllerMetrics {
            adds: Family::default(),
            depth: Family::default(),
            retries: Family::default(),
            waited: times(),
            worked: times(),
            under_way: UnderWay::default(),
            leads: Family::default(),
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl ControllerMetrics {
    /// Shows them.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Keys that were added to a work queue";
        registry.register("workqueue_adds", text, self.adds.clone());
        let text = "Keys that wait in a work queue for a worker";
        registry.register("workqueue_depth", text, self.depth.clone());
        let text = "Keys that were added to a work queue for later";
        registry.register("workqueue_retries", text, self.retries.clone());
        let text = "How long keys waited in a work queue, in seconds";
        registry.register("workqueue_queue_duration_seconds", text, self.waited.clone());
        let text = "How long keys of a work queue were worked on, in seconds";
        registry.register("workqueue_work_duration_seconds", text, self.worked.clone());
        registry.register_collector(Box::new(self.under_way.clone()));
        let text = "Whether this server leads, so that its controllers run";
        registry.register("leader_election_master_status", text, self.leads.clone());
    }

    /// Those of a queue.
    pub(super) fn queue(&self, name: &str) -> QueueSeries {
        let labels = Labels { name: name.to_owned() };
        QueueSeries {
            adds: self.adds.get_or_create(&labels).clone(),
            depth: self.depth.get_or_create(&labels).clone(),
            retries: self.retries.get_or_create(&labels).clone(),
            waited: self.waited.get_or_create(&labels).clone(),
            worked: self.worked.get_or_create(&labels).clone(),
            under_way: self.under_way.of(name),
        }
    }

    /// Whether this server has the lease of this name.
    pub fn leads(&self, lease: &str, leads: bool) {
        let labels = Labels { name: lease.to_owned() };
        self.leads.get_or_create(&labels).set(leads.into());
    }
}

/// When work on keys began that is not done.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<Vec<Instant>>>);

impl Started {
    fn lock(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same for all queues, by their names. How long that was ago is known when somebody asks.
#[derive(Clone, Default)]
struct UnderWay(Arc<Mutex<BTreeMap<String, Started>>>);

impl UnderWay {
    fn of(&self, name: &str) -> Started {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.to_owned()).or_default().clone()
    }

    fn encode_all(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, text): (&str, &str),
        of: impl Fn(&[Instant], Instant) -> f64,
    ) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let mut family = encoder.encode_descriptor(name, text, None, MetricType::Gauge)?;
        for (name, started) in &*all {
            let gauge = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
            gauge.set(of(&started.lock(), now));
            let labels = Labels { name: name.clone() };
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnderWay")
    }
}

impl Collector for UnderWay {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let seconds = |begin: &Instant, now: Instant| now.duration_since(*begin).as_secs_f64();
        let unfinished = (
            "workqueue_unfinished_work_seconds",
            "How long the keys of a work queue that are worked on have been so, all together, in seconds",
        );
        self.encode_all(&mut encoder, unfinished, |all, now| {
            // The sum of nothing would be -0.
            all.iter().fold(0.0, |sum, begin| sum + seconds(begin, now))
        })?;
        let longest = (
            "workqueue_longest_running_processor_seconds",
            "How long the key of a work queue that takes longest has been worked on, in seconds",
        );
        self.encode_all(&mut encoder, longest, |all, now| {
            all.iter().map(|begin| seconds(begin, now)).fold(0.0, f64::max)
        })
    }
}

/// The series of one queue. The default is shown by nobody.
#[derive(Clone)]
pub(crate) struct QueueSeries {
    adds: Counter,
    depth: Gauge,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
    under_way: Started,
}

impl Default for QueueSeries {
    fn default() -> Self {
        QueueSeries {
            adds: Counter::default(),
            depth: Gauge::default(),
            retries: Counter::default(),
            waited: histogram(),
            worked: histogram(),
            under_way: Started::default(),
        }
    }
}

impl QueueSeries {
    pub fn added(&self) {
        self.adds.inc();
    }

    pub fn depth(&self, keys: usize) {
        self.depth.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    pub fn retried(&self) {
        self.retries.inc();
    }

    /// A key that waited from `since` on is worked on now.
    pub fn taken(&self, since: Instant, now: Instant) {
        self.waited.observe(now.duration_since(since).as_secs_f64());
        self.under_way.lock().push(now);
    }

    /// One that was worked on from `since` on is done now.
    pub fn worked(&self, since: Instant, now: Instant) {
        self.worked.observe(now.duration_since(since).as_secs_f64());
        let mut under_way = self.under_way.lock();
        if let Some(place) = under_way.iter().position(|begin| *begin == since) {
            under_way.swap_remove(place);
        }
    }
}
