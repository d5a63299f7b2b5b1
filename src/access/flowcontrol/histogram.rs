//! Histograms: of values that are observed, and of a number that is observed at every moment.

use std::time::Duration;

/// How often values fell between the bounds.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds.
    counts: Vec<f64>,
    sum: f64,
}

impl Histogram {
    /// Bounds are the greatest values of their buckets, ascending.
    pub fn new(bounds: &'static [f64]) -> Histogram {
        Histogram {
            bounds,
            counts: vec![0.0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    pub fn observe(&mut self, value: f64) {
        self.add(value, 1.0);
    }

    fn add(&mut self, value: f64, weight: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += weight;
        }
        self.sum += value * weight;
    }

    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0.0)
    }

    pub fn sum(&self) -> f64 {
        self.sum
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum::<f64>() as u64
    }

    /// Each bucket's bound and how many values fell into it.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().map(|count| *count as u64)).collect()
    }
}

/// A histogram of a ratio, observed at the end of each nanosecond.
#[derive(Clone, Debug)]
pub struct TimingRatio {
    histogram: Histogram,
    numerator: f64,
    denominator: f64,
    since: Duration,
}

impl TimingRatio {
    pub fn new(bounds: &'static [f64], now: Duration) -> TimingRatio {
        TimingRatio {
            histogram: Histogram::new(bounds),
            numerator: 0.0,
            denominator: 1.0,
            since: now,
        }
    }

    pub fn set(&mut self, now: Duration, numerator: u32) {
        self.advance(now);
        self.numerator = f64::from(numerator);
    }

    /// What a ratio of 1 is; 0 counts as 1.
    pub fn set_denominator(&mut self, now: Duration, denominator: u32) {
        self.advance(now);
        self.denominator = f64::from(denominator.max(1));
    }

    /// The histogram up to now.
    pub fn observed(&mut self, now: Duration) -> &Histogram {
        self.advance(now);
        &self.histogram
    }

    fn advance(&mut self, now: Duration) {
        let held = now.saturating_sub(self.since);
        if !held.is_zero() {
            self.since = now;
            self.histogram
                .add(self.numerator / self.denominator, held.as_nanos() as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_counts_in_nanoseconds() {
        let at = Duration::from_nanos;
        let mut ratio = TimingRatio::new(&[0.0, 0.5, 1.0], at(10));
        ratio.set_denominator(at(10), 4);
        ratio.set(at(20), 2);
        ratio.set(at(50), 8);
        let seen = ratio.observed(at(51));
        assert_eq!(seen.buckets(), [(0.0, 10), (0.5, 30), (1.0, 0), (f64::INFINITY, 1)]);
        assert_eq!((seen.count(), seen.sum()), (41, 17.0));
    }
}
