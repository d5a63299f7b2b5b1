//! Sharing of leases, by the rule of kube-apiserver: a lease is granted for a little longer than asked, and serves
//! later requests as long as it outlives them, but not by more than that little.

use std::time::Duration;

use crate::LeaseId;

/// So many keys share one lease at most.
const KEYS_PER_LEASE: u32 = 1000;
/// A shared lease lives at most so much longer than asked …
const LONGEST_EXTENSION: Duration = Duration::from_secs(60);
/// … and at most this part of the time asked for.
const EXTENSION_DIVISOR: u32 = 20;

/// Remembers the lease granted last.
#[derive(Default)]
pub(crate) struct LeasePool {
    last: Option<Granted>,
}

struct Granted {
    id: LeaseId,
    expires: Duration,
    keys: u32,
}

impl LeasePool {
    /// A lease that can serve one more key for `ttl` from `now`.
    pub fn reuse(&mut self, now: Duration, ttl: Duration) -> Option<LeaseId> {
        let last = self.last.as_mut()?;
        let needed = now + ttl;
        let fits = needed <= last.expires && last.expires <= needed + extension(ttl);
        if !fits || last.keys >= KEYS_PER_LEASE {
            return None;
        }
        last.keys += 1;
        Some(last.id)
    }

    /// Notes a lease that was granted at `now` for [`LeasePool::lifetime`] of `ttl`, and given to one key.
    pub fn granted(&mut self, id: LeaseId, now: Duration, ttl: Duration) {
        self.last = Some(Granted {
            id,
            expires: now + Self::lifetime(ttl),
            keys: 1,
        });
    }

    /// The lease turned out to be gone.
    pub fn forget(&mut self, id: LeaseId) {
        if self.last.as_ref().is_some_and(|last| last.id == id) {
            self.last = None;
        }
    }

    /// For how long to grant a lease when `ttl` is asked for.
    pub fn lifetime(ttl: Duration) -> Duration {
        ttl + extension(ttl)
    }
}

fn extension(ttl: Duration) -> Duration {
    (ttl / EXTENSION_DIVISOR).min(LONGEST_EXTENSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_serves_like_requests_within_its_extension() {
        let mut pool = LeasePool::default();
        assert_eq!(pool.reuse(at(0), HOUR), None);
        pool.granted(LeaseId(7), at(0), HOUR);
        assert_eq!(LeasePool::lifetime(HOUR), at(3660));
        assert_eq!(pool.reuse(at(30), HOUR), Some(LeaseId(7)));
        assert_eq!(pool.reuse(at(60), HOUR), Some(LeaseId(7)));
        assert_eq!(pool.reuse(at(61), HOUR), None, "it would end before the key's time");
        assert_eq!(
            pool.reuse(at(30), HOUR / 2),
            None,
            "it would outlive the key's time by far"
        );
    }

    #[test]
    fn a_lease_serves_so_many_keys_only() {
        let mut pool = LeasePool::default();
        pool.granted(LeaseId(1), at(0), HOUR);
        let shared = (0..2 * KEYS_PER_LEASE)
            .filter(|_| pool.reuse(at(1), HOUR).is_some())
            .count();
        assert_eq!(shared as u32, KEYS_PER_LEASE - 1);
    }

    #[test]
    fn a_lease_that_is_gone_serves_no_more() {
        let mut pool = LeasePool::default();
        pool.granted(LeaseId(2), at(0), HOUR);
        pool.forget(LeaseId(1));
        assert_eq!(pool.reuse(at(1), HOUR), Some(LeaseId(2)));
        pool.forget(LeaseId(2));
        assert_eq!(pool.reuse(at(1), HOUR), None);
    }

    #[test]
    fn short_leases_are_extended_by_a_twentieth() {
        assert_eq!(LeasePool::lifetime(at(100)), at(105));
    }
}
