//! Statistics of the requests of a schema in its level, and of a level as a whole.

use std::sync::Mutex;
use std::time::Duration;

use super::histogram::{Histogram, TimingRatio};
use super::queues::Refusal;
use super::spec::Distinguisher;

const SECONDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const LENGTHS: [f64; 8] = [0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const WATCHES: [f64; 6] = [0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0];
const SEATS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const DEMAND: [f64; 12] = [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];
const REQUESTS: [f64; 10] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const UTILIZATION: [f64; 13] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const SORTS: [f64; 15] = [
    0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];

/// A schema's requests in one level.
#[derive(Debug)]
pub struct SchemaStats {
    pub name: String,
    pub distinguisher: Distinguisher,
    counted: Mutex<Counted>,
}

#[derive(Clone, Debug)]
pub struct Counted {
    pub dispatched: u64,
    /// In the order of [`Refusal::ALL`].
    pub refused: [u64; 4],
    /// How long requests waited that their level took in, whatever became of them, and those that it did not.
    pub waited: [Histogram; 2],
    /// How long it took to serve them, and to begin watches.
    pub served: [Histogram; 2],
    pub queue_length: Histogram,
    pub estimated_seats: Histogram,
    pub watches: Histogram,
}

impl SchemaStats {
    pub fn new(name: &str, distinguisher: Distinguisher) -> SchemaStats {
        let seconds = || [Histogram::new(&SECONDS), Histogram::new(&SECONDS)];
        SchemaStats {
            name: name.to_owned(),
            distinguisher,
            counted: Mutex::new(Counted {
                dispatched: 0,
                refused: [0; 4],
                waited: seconds(),
                served: seconds(),
                queue_length: Histogram::new(&LENGTHS),
                estimated_seats: Histogram::new(&SEATS),
                watches: Histogram::new(&WATCHES),
            }),
        }
    }

    pub fn count<R>(&self, change: impl FnOnce(&mut Counted) -> R) -> R {
        change(&mut self.counted.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

impl Counted {
    /// A request that waited in a queue for that long, or not at all, is served.
    pub fn dispatch(&mut self, waited: Option<Duration>) {
        self.dispatched += 1;
        self.wait(true, waited);
    }

    pub fn refuse(&mut self, refusal: Refusal, waited: Option<Duration>) {
        for (known, count) in Refusal::ALL.iter().zip(&mut self.refused) {
            *count += u64::from(*known == refusal);
        }
        let taken_in = matches!(refusal, Refusal::TimeOut | Refusal::Cancelled);
        self.wait(taken_in, waited);
    }

    fn wait(&mut self, taken_in: bool, waited: Option<Duration>) {
        let [own, others] = &mut self.waited;
        if let Some(waited) = waited {
            let seen = if taken_in { own } else { others };
            seen.observe(waited.as_secs_f64());
        }
    }

    pub fn finish(&mut self, is_watch: bool, took: Duration) {
        let [regular, watch] = &mut self.served;
        let histogram = if is_watch { watch } else { regular };
        histogram.observe(took.as_secs_f64());
    }
}

/// How full a level was at each moment.
#[derive(Debug)]
pub struct LevelRatios {
    pub demand: TimingRatio,
    pub executing: TimingRatio,
    pub waiting: TimingRatio,
    pub seats: TimingRatio,
}

impl LevelRatios {
    pub fn new(now: Duration) -> LevelRatios {
        LevelRatios {
            demand: TimingRatio::new(&DEMAND, now),
            executing: TimingRatio::new(&REQUESTS, now),
            waiting: TimingRatio::new(&REQUESTS, now),
            seats: TimingRatio::new(&UTILIZATION, now),
        }
    }
}

/// Requests that read and that may change something, waiting and being served, as parts of their limits.
#[derive(Debug)]
pub struct SortRatios {
    /// Those that read, then the others.
    pub sorts: [SortRatio; 2],
}

#[derive(Debug)]
pub struct SortRatio {
    pub waiting: Gauge,
    pub executing: Gauge,
}

/// A number of requests.
#[derive(Debug)]
pub struct Gauge {
    now: u32,
    ratio: TimingRatio,
}

impl Gauge {
    fn new(limit: u32) -> Gauge {
        let mut ratio = TimingRatio::new(&SORTS, Duration::ZERO);
        ratio.set_denominator(Duration::ZERO, limit);
        Gauge { now: 0, ratio }
    }

    pub fn add(&mut self, now: Duration) {
        self.now += 1;
        self.ratio.set(now, self.now);
    }

    pub fn remove(&mut self, now: Duration) {
        self.now = self.now.saturating_sub(1);
        self.ratio.set(now, self.now);
    }

    pub fn now(&self) -> u32 {
        self.now
    }

    pub fn observed(&mut self, now: Duration) -> &Histogram {
        self.ratio.observed(now)
    }
}

impl SortRatios {
    pub fn new(max_reads: u32, max_writes: u32) -> SortRatios {
        let sort = |limit| SortRatio {
            waiting: Gauge::new(limit),
            executing: Gauge::new(limit),
        };
        SortRatios {
            sorts: [sort(max_reads), sort(max_writes)],
        }
    }

    pub fn of(&mut self, is_write: bool) -> &mut SortRatio {
        let [reads, writes] = &mut self.sorts;
        if is_write { writes } else { reads }
    }

    pub fn gauge(&mut self, is_write: bool, waits: bool) -> &mut Gauge {
        let SortRatio { waiting, executing } = self.of(is_write);
        if waits { waiting } else { executing }
    }
}
