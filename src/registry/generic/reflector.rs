//! Reflector: the objects of one resource, followed in the store's memory. Who derives something from them is told what
//! changed.
//!
//! Nothing runs in the background. Whoever is about to decide asks whether the store has moved on, which costs next to
//! nothing, and takes in what happened since: so a decision is as fresh as the store's memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keelson_access::lister::{Change, Feed, Place};
use keelson_storage::{Entry, Epoch, Event, Position, Revision, Snapshot};

use super::Resource;

/// Events that are taken in one by one; when there are more, everything is read again.
const MAX_EVENTS: usize = 10_000;
/// Revisions in which nothing of the resource changed, and that are looked through once more when something has.
const MAX_LAG: u64 = 256;

/// A position that is read without a lock. None of a store is the default.
#[derive(Default)]
struct Told {
    epoch: AtomicU64,
    revision: AtomicU64,
}

impl Told {
    /// Whoever reads while it is being set reads one that counts for less, or is newer than what it compares with.
    fn get(&self) -> Position {
        let epoch = Epoch(self.epoch.load(Ordering::Acquire));
        let revision = Revision(self.revision.load(Ordering::Acquire));
        Position { epoch, revision }
    }

    fn set(&self, to: Position) {
        self.revision.store(to.revision.0, Ordering::Release);
        self.epoch.store(to.epoch.0, Ordering::Release);
    }
}

/// Tells the changes of one resource's objects, see [`Feed`].
pub(crate) struct Reflector {
    resource: Arc<Resource>,
    /// Everything up to here was told.
    at: Told,
    turn: Mutex<()>,
}

impl Reflector {
    /// From the beginning: nothing has been told yet.
    pub fn of(resource: Arc<Resource>) -> Reflector {
        Reflector {
            resource,
            at: Told::default(),
            turn: Mutex::default(),
        }
    }

    fn prefix(&self) -> &str {
        &self.resource.key_prefix
    }

    /// `None`: something of that can't be read before a key management service has answered, which is asked now. What
    /// was told stays in force until then.
    fn since(&self, to: Position, held: &Snapshot) -> Option<Vec<Change>> {
        let at = self.at.get();
        let goes_on = at.epoch == to.epoch && at.revision <= to.revision;
        let events = || {
            let store = &self.resource.backend.store;
            store.events(self.prefix(), at, to.revision, MAX_EVENTS)
        };
        match goes_on.then(events).flatten() {
            Some(events) => {
                let mut puts = events.iter().filter_map(|event| match event {
                    Event::Put { entry, .. } => Some(entry),
                    Event::Delete { .. } => None,
                });
                let ready = puts.all(|entry| self.resource.unprepared(entry).is_none());
                ready.then(|| events.iter().filter_map(|event| self.change(event)).collect())
            }
            None => {
                let all = || held.range(self.prefix(), self.prefix());
                // Nothing is in force before the first time: then it has to be waited for.
                let told = at != Position::default();
                if told && all().any(|entry| self.resource.unprepared(&entry).is_some()) {
                    return None;
                }
                let puts = all().filter_map(|entry| self.put(&entry));
                Some(std::iter::once(Change::Reset).chain(puts).collect())
            }
        }
    }

    /// Everything up to `now` was told, since nothing has changed. It is noted now and then: what changes next is looked
    /// for from there on.
    fn move_on(&self, now: Position) {
        let lag = |at: Position| now.revision.0.saturating_sub(at.revision.0);
        if lag(self.at.get()) < MAX_LAG {
            return;
        }
        // Whoever is at it tells what has changed, and notes how far that goes.
        let Ok(_turn) = self.turn.try_lock() else { return };
        let at = self.at.get();
        if at.epoch == now.epoch && lag(at) > 0 {
            self.at.set(now);
        }
    }

    fn change(&self, event: &Event) -> Option<Change> {
        match event {
            Event::Put { entry, .. } => self.put(entry),
            Event::Delete { key, .. } => Some(Change::Gone(self.place(key)?)),
        }
    }

    /// An object that cannot be read counts as gone: it decides nothing.
    fn put(&self, entry: &Entry) -> Option<Change> {
        let place = self.place(&entry.key)?;
        Some(match self.resource.decode(entry) {
            Ok(object) => Change::Put(place, object),
            Err(error) => {
                tracing::warn!(key = &*entry.key, %error, "an object that decisions need cannot be read");
                Change::Gone(place)
            }
        })
    }

    fn place(&self, key: &str) -> Option<Place> {
        let rest = key.strip_prefix(self.prefix())?;
        let (namespace, name) = match self.resource.hub.namespaced {
            true => rest.split_once('/')?,
            false => ("", rest),
        };
        Some(Place {
            namespace: namespace.into(),
            name: name.into(),
        })
    }
}

impl Feed for Reflector {
    fn catch_up(&self, take: &mut dyn FnMut(Vec<Change>)) {
        let store = &self.resource.backend.store;
        if let Some(now) = store.unchanged_since(self.prefix(), self.at.get()) {
            return self.move_on(now);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at again: another thread may have been here.
        let Some(held) = store.held(self.prefix()) else { return };
        let Some(to) = held.position().filter(|to| *to != self.at.get()) else {
            return;
        };
        let Some(changes) = self.since(to, &held) else { return };
        if !changes.is_empty() {
            take(changes);
        }
        self.at.set(to);
    }
}

#[cfg(test)]
#[path = "../testing/swapped.rs"]
#[allow(dead_code, reason = "some of it is for tests of lists")]
mod swapped;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use keelson_storage::memory::MemoryStore;
    use keelson_storage::{Expect, HistoryLimits, Store, Write, Written};

    use super::swapped::Swapped;
    use super::*;
    use crate::generic::{Backend, KindCode, Registry, RuntimeConfig};
    use keelson_base::env::{SystemClock, SystemEntropy};

    fn empty() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap())
    }

    fn reflector(store: Arc<dyn Store>) -> Reflector {
        let backend = Backend {
            store,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            budget: crate::cache::Budget::new(0),
            encryption: keelson_storage::encryption::Encryption::none(),
            placement: Arc::default(),
            corrupt: Default::default(),
        };
        let schemes = [&keelson_codegen_sample::api::SCHEME];
        let registry = Registry::new(
            &schemes,
            &KindCode::default(),
            &backend,
            "/registry",
            &RuntimeConfig::all(),
        )
        .unwrap();
        Reflector::of(registry.resource("shop.example.com", "orders").unwrap())
    }

    async fn put(store: &dyn Store, reflector: &Reflector, name: &str) -> u64 {
        let value = format!(
            r#"{{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{{"name":"{name}","namespace":"default"}}}}"#
        );
        let put = Write::Put {
            value: value.into(),
            lease: None,
        };
        let key = format!("{}default/{name}", reflector.prefix());
        match store.write(&key, Expect::Absent, put).await.unwrap() {
            Written::Done { revision } => revision.0,
            conflict => panic!("{conflict:?}"),
        }
    }

    /// Brings what is known up to date; the second value says whether all was told anew.
    fn catch_up(reflector: &Reflector, known: &mut BTreeSet<String>) -> bool {
        let mut anew = false;
        reflector.catch_up(&mut |changes| {
            for change in changes {
                match change {
                    Change::Reset => {
                        anew = true;
                        known.clear();
                    }
                    Change::Put(place, _) => drop(known.insert(place.name.into())),
                    Change::Gone(place) => drop(known.remove(&*place.name)),
                }
            }
        });
        anew
    }

    /// What was true on a timeline that is lost decides nothing, whatever revision the store is at when that is
    /// noticed.
    #[tokio::test]
    async fn a_store_that_went_back_is_read_anew() {
        for behind in [-1_i64, 0, 1] {
            let store = Arc::new(Swapped::new(empty()));
            let reflector = reflector(store.clone());
            let mut known = BTreeSet::new();
            let mut newest = 0;
            for name in ["a", "b", "lost"] {
                newest = put(&*store.now(), &reflector, name).await;
            }
            assert!(catch_up(&reflector, &mut known));
            put(&*store.now(), &reflector, "c").await;
            assert!(!catch_up(&reflector, &mut known));
            assert_eq!(known.iter().collect::<Vec<_>>(), ["a", "b", "c", "lost"]);
            newest += 1;

            let other = empty();
            let mut expected = BTreeSet::new();
            for n in 2..=newest.saturating_add_signed(behind) {
                let name = format!("new-{n}");
                assert_eq!(put(&*other, &reflector, &name).await, n);
                expected.insert(name);
            }
            store.put_back(other);
            assert!(catch_up(&reflector, &mut known));
            assert_eq!(known, expected, "{behind}");
            assert!(!catch_up(&reflector, &mut known));
        }
    }
}
