//! The token cache: what tokens were found to be, remembered for a short while.
//!
//! A token is known by a keyed hash of it; the key is made when the cache is, and neither it nor a token leaves it.
//! While a token is being looked at, others who bring the same wait for what is found.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::OnceCell;

use super::metrics::CacheMetrics;
use super::{AuthenticationMetrics, Outcome};

/// Shares the locks among tokens.
const SHARDS: usize = 32;
/// Outcomes that a shard holds; beyond, the oldest go.
const SHARD_CAPACITY: usize = 1024;

/// The keyed hash of a token and the audiences that it was looked at for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

/// Outcomes by token.
pub struct TokenCache {
    key: hmac::Key,
    shards: Vec<Mutex<Shard>>,
    success: Duration,
    failure: Duration,
    metrics: OnceLock<Arc<AuthenticationMetrics>>,
}

#[derive(Default)]
struct Shard {
    known: HashMap<Key, (Outcome, Instant)>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    under_way: HashMap<Key, Arc<OnceCell<Outcome>>>,
}

/// The system gives no randomness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the system gives no randomness")]
pub struct NoRandomness;

impl TokenCache {
    /// Remembers tokens that stand for somebody for so many milliseconds, and others for so many; 0: not at all.
    /// Errors are not remembered.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new(success_ms: u64, failure_ms: u64) -> Result<TokenCache, NoRandomness> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(TokenCache {
            key: key.map_err(|_| NoRandomness)?,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            success: Duration::from_millis(success_ms),
            failure: Duration::from_millis(failure_ms),
            metrics: OnceLock::new(),
        })
    }

    pub(super) fn count_in(&self, metrics: &Arc<AuthenticationMetrics>) {
        let _ = self.metrics.set(metrics.clone());
    }

    pub fn key(&self, token: &str, audiences: &[String]) -> Key {
        let mut context = hmac::Context::with_key(&self.key);
        // Lengths keep what belongs together apart from what does not.
        context.update(&token.len().to_le_bytes());
        context.update(token.as_bytes());
        for audience in audiences {
            context.update(&audience.len().to_le_bytes());
            context.update(audience.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(context.sign().as_ref());
        Key(key)
    }

    /// What is remembered.
    pub fn get(&self, key: &Key) -> Option<Outcome> {
        let now = Instant::now();
        let shard = self.shard(key);
        let (outcome, until) = shard.known.get(key)?;
        let found = (now < *until).then(|| outcome.clone());
        drop(shard);
        if found.is_some()
            && let Some(metrics) = self.cache_metrics()
        {
            metrics.hit(now);
        }
        found
    }

    /// Finds it out by `look`, unless somebody is about that already, and remembers it.
    pub async fn fetch(&self, key: Key, look: impl Future<Output = Outcome>) -> Outcome {
        let begin = Instant::now();
        let cell = self.shard(&key).under_way.entry(key).or_default().clone();
        let waits = cell.initialized() || Arc::strong_count(&cell) > 2;
        let counted = self.cache_metrics().map(|metrics| metrics.begin(waits));
        // If whoever looks goes away meanwhile, the next who waits looks.
        let outcome = cell.get_or_init(|| look).await.clone();
        drop(counted);
        self.remember(key, &cell, &outcome);
        if let Some(metrics) = self.cache_metrics() {
            metrics.fetched(begin, outcome.is_ok());
        }
        outcome
    }

    fn remember(&self, key: Key, cell: &Arc<OnceCell<Outcome>>, outcome: &Outcome) {
        let mut shard = self.shard(&key);
        // Only the first who comes back finds it there.
        if shard
            .under_way
            .get(&key)
            .is_none_or(|current| !Arc::ptr_eq(current, cell))
        {
            return;
        }
        shard.under_way.remove(&key);
        let time = match outcome {
            Ok(Some(_)) => self.success,
            Ok(None) => self.failure,
            Err(_) => Duration::ZERO,
        };
        if !time.is_zero() {
            shard.put(key, outcome.clone(), Instant::now() + time);
        }
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        let [first, ..] = key.0;
        let index = usize::from(first) % SHARDS;
        self.shards
            .get(index)
            .unwrap_or_else(|| unreachable!("there are so many shards"))
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn cache_metrics(&self) -> Option<&CacheMetrics> {
        self.metrics.get().map(|metrics| &metrics.cache)
    }
}

impl Shard {
    fn put(&mut self, key: Key, outcome: Outcome, until: Instant) {
        if self.known.insert(key, (outcome, until)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > SHARD_CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::Identity;
    use crate::user::User;

    fn somebody() -> Outcome {
        Ok(Some(Identity::of(User::anonymous())))
    }

    #[tokio::test]
    async fn what_is_found_is_remembered_for_its_time() {
        let cache = TokenCache::new(60_000, 0).unwrap();
        let key = cache.key("t", &[]);
        assert!(cache.get(&key).is_none());
        cache.fetch(key, async { somebody() }).await.unwrap();
        assert_eq!(cache.get(&key), Some(somebody()));
        let other = cache.key("u", &[]);
        cache.fetch(other, async { Ok(None) }).await.unwrap();
        assert!(cache.get(&other).is_none(), "failures are not remembered here");
        let brief = TokenCache::new(0, 60_000).unwrap();
        brief.fetch(key, async { somebody() }).await.unwrap();
        assert!(brief.get(&key).is_none());
        brief.fetch(other, async { Ok(None) }).await.unwrap();
        assert_eq!(brief.get(&other), Some(Ok(None)));
    }

    #[tokio::test]
    async fn errors_are_not_remembered() {
        let cache = TokenCache::new(60_000, 60_000).unwrap();
        let key = cache.key("t", &[]);
        cache.fetch(key, async { Err("away".into()) }).await.unwrap_err();
        assert!(cache.get(&key).is_none());
        assert_eq!(cache.fetch(key, async { somebody() }).await, somebody());
    }

    #[test]
    fn tokens_and_audiences_are_told_apart() {
        let cache = TokenCache::new(1, 0).unwrap();
        let of = |token: &str, audiences: &[&str]| {
            let audiences: Vec<String> = audiences.iter().map(|a| (*a).to_owned()).collect();
            cache.key(token, &audiences).0
        };
        let all = [
            of("ab", &[]),
            of("a", &["b"]),
            of("a", &[]),
            of("a", &["b", "c"]),
            of("a", &["bc"]),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[n + 1..].contains(one), "{n}");
        }
        assert_ne!(
            all[0],
            TokenCache::new(1, 0).unwrap().key("ab", &[]).0,
            "another cache has another key"
        );
    }

    #[tokio::test]
    async fn who_brings_the_same_token_waits_for_what_the_first_finds() {
        let cache = TokenCache::new(0, 0).unwrap();
        let key = cache.key("t", &[]);
        let looked = std::cell::Cell::new(0);
        let look = || async {
            looked.set(looked.get() + 1);
            tokio::task::yield_now().await;
            somebody()
        };
        let (one, other) = tokio::join!(cache.fetch(key, look()), cache.fetch(key, look()));
        assert_eq!((one, other, looked.get()), (somebody(), somebody(), 1));
        cache.fetch(key, look()).await.unwrap();
        assert_eq!(looked.get(), 2);
    }

    #[test]
    fn the_oldest_make_room() {
        let cache = TokenCache::new(1, 0).unwrap();
        let mut shard = Shard::default();
        let until = Instant::now() + Duration::from_secs(60);
        for n in 0..SHARD_CAPACITY + 3 {
            shard.put(cache.key(&n.to_string(), &[]), Ok(None), until);
        }
        assert_eq!(shard.known.len(), SHARD_CAPACITY);
        assert!(!shard.known.contains_key(&cache.key("2", &[])));
        assert!(shard.known.contains_key(&cache.key("3", &[])));
    }
}
