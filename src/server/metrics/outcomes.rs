//! Counters and histograms of outcomes.

use std::hash::Hash;
use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::Numbered;

/// A counter `C` and a histogram of seconds for each of `N` outcomes, which have labels `L`. Both are found by the number
/// of the outcome.
pub(crate) struct Outcomes<L, C, const N: usize> {
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
