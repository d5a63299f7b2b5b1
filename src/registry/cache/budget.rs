//! A bound on the memory of renditions.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use keelson_storage::Version;

use super::Derived;

/// Entries of the queue that may belong to versions that are gone, beyond as many as there are living ones.
const SLACK: usize = 1024;
/// Entries that are looked at when one more has come, at most: nobody may be held up by very many. What that leaves
/// over the limit goes when the next ones come.
const LOOKS: usize = 256;

/// How much memory renditions may take, and which are there. When they are too many, those go that were not used since
/// the last look at them.
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// Versions that have renditions, oldest first; some of them are gone.
    queue: Mutex<VecDeque<Weak<Version>>>,
    /// Versions that have renditions and are not gone.
    living: AtomicUsize,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            used: AtomicUsize::new(0),
            queue: Mutex::default(),
            living: AtomicUsize::new(0),
        })
    }

    /// Bytes that renditions take now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Takes a version into the books that has its first rendition.
    pub(super) fn enter(&self, version: &Arc<Version>) {
        let living = self.living.fetch_add(1, Ordering::Relaxed) + 1;
        let mut queue = self.queue();
        queue.push_back(Arc::downgrade(version));
        if queue.len() > 2 * living + SLACK {
            let oldest: Vec<_> = queue.drain(..LOOKS).collect();
            queue.extend(oldest.into_iter().filter(|version| version.strong_count() > 0));
        }
    }

    /// The other end of [`Budget::enter`].
    pub(super) fn leave(&self, bytes: usize) {
        self.living.fetch_sub(1, Ordering::Relaxed);
        self.release(bytes);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts new renditions, and makes room for them.
    pub(super) fn charge(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > self.limit {
            self.make_room();
        }
    }

    fn make_room(&self) {
        // A version that was used since the last look has a second chance; after one round all chances are used up.
        let mut looks = LOOKS.min(2 * self.queue().len());
        while self.used() > self.limit && looks > 0 {
            looks -= 1;
            let Some(next) = self.queue().pop_front() else { return };
            let Some(version) = next.upgrade() else { continue };
            let Some(derived) = version.derived(Derived::default) else {
                continue;
            };
            match derived.take_unless_used() {
                Some(bytes) => self.leave(bytes),
                None => self.queue().push_back(next),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Weak<Version>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
