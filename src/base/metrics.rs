//! Metric series: found by a number instead of by a hash of labels.

use std::hash::Hash;
use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

/// The series of a family whose few label sets have numbers: found by them, instead of by a hash of labels, once they
/// are there.
pub struct Numbered<M, const N: usize>([OnceLock<M>; N]);

impl<M, const N: usize> Default for Numbered<M, N> {
    fn default() -> Self {
        Numbered([const { OnceLock::new() }; N])
    }
}

impl<M, const N: usize> Numbered<M, N> {
    /// The series of this number, which `find` finds the first time. Numbers are below `N`.
    pub fn get(&self, number: usize, find: impl FnOnce() -> M) -> Option<&M> {
        self.0.get(number).map(|series| series.get_or_init(find))
    }
}

/// A counter `C` and a histogram of seconds for each of `N` outcomes, which have labels `L`. Both are found by the
/// number of the outcome.
pub struct Outcomes<L, C, const N: usize> {
    /// Registered under a name of its own.
    pub counts: Family<L, C>,
    /// The same.
    pub seconds: Family<L, Histogram>,
    found: Numbered<(C, Histogram), N>,
}

impl<L: Clone + Hash + Eq, C: Clone + Default, const N: usize> Outcomes<L, C, N> {
    /// `histogram` makes the histogram of an outcome.
    pub fn new(histogram: fn() -> Histogram) -> Self {
        Outcomes {
            counts: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            found: Numbered::default(),
        }
    }

    /// Observes the time of an outcome and returns its counter, to be counted up; `number` is below `N`.
    pub fn observe(&self, number: usize, label: L, took: Duration) -> Option<&C> {
        let find = || {
            let count = self.counts.get_or_create_owned(&label);
            (count, self.seconds.get_or_create_owned(&label))
        };
        let (count, seconds) = self.found.get(number, find)?;
        seconds.observe(took.as_secs_f64());
        Some(count)
    }
}
