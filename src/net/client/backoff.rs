//! Back-off of calls.

use std::time::Duration;

/// The longest wait that another server's `Retry-After` makes a call take.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// How often a call is made, and how long the waits between are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first wait.
    pub initial: Duration,
    /// What the next wait is longer by.
    pub factor: f64,
    /// The part of a wait that chance may add to it.
    pub jitter: f64,
    /// Calls, the first one included; at least one is made.
    pub steps: u32,
}

impl Backoff {
    /// That of kube-apiserver's webhooks: five calls with waits of 0.5, 0.75, 1.125 and 1.69 s and up to a fifth more.
    pub const WEBHOOK: Backoff = Backoff {
        initial: Duration::from_millis(500),
        factor: 1.5,
        jitter: 0.2,
        steps: 5,
    };
    /// One call.
    pub const ONCE: Backoff = Backoff {
        steps: 1,
        ..Backoff::WEBHOOK
    };

    /// The wait after the nth failed call, counted from 0; `chance` is from 0 to 1. `None`: that was the last one.
    pub fn wait(&self, failed: u32, chance: f64) -> Option<Duration> {
        if failed + 1 >= self.steps {
            return None;
        }
        let factor = self.factor.powi(i32::try_from(failed).unwrap_or(i32::MAX)) * (1.0 + chance * self.jitter);
        Some(Duration::try_from_secs_f64(self.initial.as_secs_f64() * factor).unwrap_or(MAX_RETRY_AFTER))
    }
}

/// The wait that an answer asks for, in whole seconds; dates, signs and nonsense ask for none.
pub(super) fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?;
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let seconds = text.parse().unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let waits: Vec<u128> = (0..)
            .map_while(|n| Backoff::WEBHOOK.wait(n, 0.0))
            .map(|wait| wait.as_millis())
            .collect();
        assert_eq!(waits, [500, 750, 1125, 1687]);
        assert_eq!(Backoff::WEBHOOK.wait(0, 1.0), Some(Duration::from_millis(600)));
        assert_eq!(Backoff::ONCE.wait(0, 0.0), None);
    }

    #[test]
    fn what_others_ask_for_is_bounded() {
        for (text, want) in [
            ("3", Some(3)),
            ("99999999999999999999999", Some(30)),
            ("-1", None),
            ("+1", None),
            ("Fri, 31 Dec 1999 23:59:59 GMT", None),
            ("", None),
        ] {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::RETRY_AFTER, text.parse().unwrap());
            assert_eq!(retry_after(&headers), want.map(Duration::from_secs), "{text:?}");
        }
    }
}
