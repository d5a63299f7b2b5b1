//! Statistics of a number over the time that it held.

use std::time::Duration;

/// Watches a number that changes now and then.
#[derive(Clone, Debug)]
pub struct Integrator {
    value: f64,
    /// When the value was set, or the period began.
    since: Duration,
    began: Duration,
    integral: f64,
    square_integral: f64,
    highest: f64,
}

/// What a number was like over a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    pub average: f64,
    pub deviation: f64,
    pub highest: f64,
}

impl Integrator {
    /// 0 from now on.
    pub fn new(now: Duration) -> Integrator {
        Integrator {
            value: 0.0,
            since: now,
            began: now,
            integral: 0.0,
            square_integral: 0.0,
            highest: 0.0,
        }
    }

    pub fn set(&mut self, now: Duration, value: f64) {
        self.advance(now);
        self.value = value;
        self.highest = self.highest.max(value);
    }

    fn advance(&mut self, now: Duration) {
        let held = now.saturating_sub(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.integral += self.value * held;
        self.square_integral += self.value * self.value * held;
    }

    /// What the number was like since the last call; the next period begins.
    pub fn reset(&mut self, now: Duration) -> Statistics {
        self.advance(now);
        let time = self.since.saturating_sub(self.began).as_secs_f64();
        let statistics = match time > 0.0 {
            true => {
                let average = self.integral / time;
                // Rounding may leave a little less than nothing.
                let variance = (self.square_integral / time - average * average).max(0.0);
                Statistics {
                    average,
                    deviation: variance.sqrt(),
                    highest: self.highest,
                }
            }
            false => Statistics {
                average: self.value,
                deviation: 0.0,
                highest: self.highest,
            },
        };
        let value = self.value;
        *self = Integrator::new(self.since);
        self.value = value;
        self.highest = value;
        statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_by_the_time_that_they_held() {
        let at = Duration::from_secs;
        let mut number = Integrator::new(at(5));
        number.set(at(7), 4.0);
        number.set(at(8), 1.0);
        let period = number.reset(at(9));
        // 0 for two seconds, 4 and 1 for one each.
        assert_eq!((period.average, period.highest), (1.25, 4.0));
        assert!((period.deviation - 1.6393596).abs() < 1e-6);
        let rest = Statistics {
            average: 1.0,
            deviation: 0.0,
            highest: 1.0,
        };
        assert_eq!(number.reset(at(20)), rest);
        assert_eq!(number.reset(at(20)), rest, "a period without length");
    }
}
