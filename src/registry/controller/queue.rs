//! Work queue: keys that wait to be worked on. One that waits already is not added a second time, one that is being
//! worked on is given to nobody else until that is done, and one that failed comes back after a wait that doubles.
//!
//! Time is that of the runtime, so a test that pauses it simulates the queue too.

mod backoff;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keelson_machinery::env::Entropy;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::metrics::QueueSeries;

pub use backoff::Backoff;

/// What a key has to be.
pub trait Key: Clone + Eq + Hash {}

impl<K: Clone + Eq + Hash> Key for K {}

/// A work queue. All methods may be called from any thread.
pub struct Queue<K: Key> {
    state: Mutex<State<K>>,
    /// Something changed that a worker may wait for.
    changed: Notify,
    backoff: Backoff,
    entropy: Arc<dyn Entropy>,
    series: QueueSeries,
}

struct State<K> {
    /// The next one is at the front.
    ready: VecDeque<K>,
    /// Keys with work to do, and since when: those in `ready`, and those that came back while they were worked on.
    dirty: HashMap<K, Instant>,
    /// Keys that are worked on, and since when.
    processing: HashMap<K, Instant>,
    /// Keys that are added later, in the order of that moment; the number tells those of one moment apart.
    delayed: BTreeMap<(Instant, u64), K>,
    /// Their places in `delayed`.
    due: HashMap<K, (Instant, u64)>,
    last_number: u64,
    /// How often in a row each failed.
    failures: HashMap<K, u32>,
    ended: bool,
}

/// What a worker is to do.
enum Turn<K> {
    Take(K),
    /// Until something changes, or until then.
    Wait(Option<Instant>),
    End,
}

/// A key that is worked on. Whoever drops it is done with it.
pub struct Work<'a, K: Key> {
    queue: &'a Queue<K>,
    key: K,
}

impl<K: Key> Queue<K> {
    /// An empty queue that nobody measures. `entropy` draws the jitter of waits.
    pub fn new(backoff: Backoff, entropy: Arc<dyn Entropy>) -> Queue<K> {
        Queue::measured(backoff, entropy, QueueSeries::default())
    }

    /// The same, which tells these series what happens.
    pub(crate) fn measured(backoff: Backoff, entropy: Arc<dyn Entropy>, series: QueueSeries) -> Queue<K> {
        Queue {
            state: Mutex::default(),
            changed: Notify::new(),
            backoff,
            entropy,
            series,
        }
    }

    /// Adds a key, unless it waits already. One that is being worked on will be worked on once more.
    pub fn add(&self, key: K) {
        if self.lock().add(key, Instant::now(), &self.series) {
            self.changed.notify_waiters();
        }
    }

    /// Adds a key after a time; of several such calls the one with the earliest end counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let mut state = self.lock();
        if state.ended {
            return;
        }
        self.series.retried();
        let at = Instant::now() + delay;
        if let Some(known) = state.due.get(&key).copied() {
            if known.0 <= at {
                return;
            }
            state.delayed.remove(&known);
        }
        state.last_number += 1;
        let place = (at, state.last_number);
        state.due.insert(key.clone(), place);
        state.delayed.insert(place, key);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Adds a key that failed, after a wait that doubles from failure to failure.
    pub fn retry(&self, key: K) {
        let failed = {
            let mut state = self.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            *failures = failures.saturating_add(1);
            *failures - 1
        };
        self.add_after(key, self.backoff.wait(failed, self.chance()));
    }

    /// Forgets the failures of a key: its next wait is the first one again.
    pub fn forget(&self, key: &K) {
        self.lock().failures.remove(key);
    }

    /// How often in a row a key has failed.
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or_default()
    }

    /// How many keys wait for a worker now; those that are added later do not count.
    pub fn len(&self) -> usize {
        self.lock().ready.len()
    }

    /// Whether no key waits for a worker now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next key, as soon as there is one; `None`: the queue has ended. Several workers may wait.
    pub async fn next(&self) -> Option<Work<'_, K>> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on nothing is missed.
            changed.as_mut().enable();
            let turn = self.lock().turn(Instant::now(), &self.series);
            match turn {
                Turn::Take(key) => return Some(Work { queue: self, key }),
                Turn::End => return None,
                Turn::Wait(None) => changed.await,
                Turn::Wait(Some(until)) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    /// Gives no more keys to anybody; what waits is forgotten.
    pub fn end(&self) {
        {
            let mut state = self.lock();
            state.ended = true;
            state.ready.clear();
            state.delayed.clear();
            state.due.clear();
            self.series.depth(0);
        }
        self.changed.notify_waiters();
    }

    fn done(&self, key: &K) {
        if self.lock().done(key, Instant::now(), &self.series) {
            self.changed.notify_waiters();
        }
    }

    /// From 0 to 1.
    fn chance(&self) -> f64 {
        const BITS: u32 = f64::MANTISSA_DIGITS;
        let mut random = [0; size_of::<u64>()];
        self.entropy.fill(&mut random);
        (u64::from_le_bytes(random) >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Default for State<K> {
    fn default() -> Self {
        State {
            ready: VecDeque::new(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            last_number: 0,
            failures: HashMap::new(),
            ended: false,
        }
    }
}

impl<K: Key> State<K> {
    /// Whether there is something for a worker then.
    fn add(&mut self, key: K, now: Instant, series: &QueueSeries) -> bool {
        if self.ended || self.dirty.contains_key(&key) {
            return false;
        }
        series.added();
        self.dirty.insert(key.clone(), now);
        if self.processing.contains_key(&key) {
            return false;
        }
        self.ready.push_back(key);
        series.depth(self.ready.len());
        true
    }

    /// Whether there is something for a worker then.
    fn done(&mut self, key: &K, now: Instant, series: &QueueSeries) -> bool {
        if let Some(since) = self.processing.remove(key) {
            series.worked(since, now);
        }
        let again = !self.ended && self.dirty.contains_key(key);
        if again {
            self.ready.push_back(key.clone());
            series.depth(self.ready.len());
        }
        again
    }

    fn turn(&mut self, now: Instant, series: &QueueSeries) -> Turn<K> {
        if self.ended {
            return Turn::End;
        }
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let key = first.remove();
            self.due.remove(&key);
            self.add(key, now, series);
        }
        let Some(key) = self.ready.pop_front() else {
            return Turn::Wait(self.delayed.first_key_value().map(|((at, _), _)| *at));
        };
        series.depth(self.ready.len());
        let since = self.dirty.remove(&key).unwrap_or(now);
        series.taken(since, now);
        self.processing.insert(key.clone(), now);
        Turn::Take(key)
    }
}

impl<K: Key> Deref for Work<'_, K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Key> Drop for Work<'_, K> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Work<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}
