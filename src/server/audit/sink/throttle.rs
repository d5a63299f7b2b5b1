//! At most so many deliveries a second, with some at once after a rest.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket of tokens that fills up at a steady rate.
#[derive(Debug)]
pub struct Throttle {
    per_second: f64,
    burst: f64,
    tokens: f64,
    /// When `tokens` were counted.
    counted: Instant,
}

impl Throttle {
    /// A full bucket of `burst` tokens.
    pub fn new(per_second: f64, burst: u32) -> Throttle {
        let burst = f64::from(burst.max(1));
        Throttle {
            per_second: per_second.max(f64::MIN_POSITIVE),
            burst,
            tokens: burst,
            counted: Instant::now(),
        }
    }

    /// Takes a token, waiting for one if need be.
    pub async fn take(&mut self) {
        let lack = self.lack(Instant::now());
        if !lack.is_zero() {
            tokio::time::sleep(lack).await;
        }
    }

    /// Takes a token at `now`; the answer is how long it takes until it is there.
    fn lack(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst) - 1.0;
        self.counted = now;
        let seconds = (-self.tokens / self.per_second).max(0.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_run_out_and_come_back() {
        let mut throttle = Throttle::new(10.0, 2);
        let start = throttle.counted;
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(throttle.lack(at(0)), Duration::ZERO);
        assert_eq!(throttle.lack(at(0)), Duration::ZERO);
        assert_eq!(throttle.lack(at(0)).as_millis(), 100);
        assert_eq!(throttle.lack(at(0)).as_millis(), 200);
        assert_eq!(
            throttle.lack(at(1000)),
            Duration::ZERO,
            "no more than the burst is saved up"
        );
        assert_eq!(throttle.lack(at(1000)), Duration::ZERO);
        assert_eq!(throttle.lack(at(1000)).as_millis(), 100);
    }
}
