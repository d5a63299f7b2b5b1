//! The objects of one resource, followed in the store's memory: who derives something from them is told what changed.
//!
//! Nothing runs in the background. Whoever is about to decide asks whether the store has moved on, which costs next to
//! nothing, and takes in what happened since: so a decision is as fresh as the store's memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keelson_machinery::object::Object;
use keelson_storage::{Entry, Event, Revision, Snapshot};

use super::Followed;
use crate::registry::{Registry, Resource};

/// Events that are taken in one by one; when there are more, everything is read again.
const MAX_EVENTS: usize = 10_000;

/// What happened to the objects of a resource.
pub(crate) enum Change {
    /// All that was told before no longer counts.
    Reset,
    Put(Place, Box<dyn Object>),
    Gone(Place),
}

/// Which object. The namespace of those that have none is "".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub namespace: Box<str>,
    pub name: Box<str>,
}

pub(crate) struct Follower {
    resource: Arc<Resource>,
    /// Everything up to this revision was told; 0: nothing yet.
    at: AtomicU64,
    turn: Mutex<()>,
}

impl Follower {
    /// `None`: the server has no such resource.
    pub fn of(registry: &Registry, group: &str, plural: &str) -> Option<Follower> {
        Some(Follower {
            resource: registry.resource(group, plural)?.clone(),
            at: AtomicU64::new(0),
            turn: Mutex::default(),
        })
    }

    fn prefix(&self) -> &str {
        &self.resource.key_prefix
    }

    pub fn followed(&self) -> Followed {
        Followed::of(&self.resource)
    }

    /// Tells what happened since the last call, if anything did.
    pub fn catch_up(&self, take: &mut dyn FnMut(Vec<Change>)) {
        let store = &self.resource.backend.store;
        let is_current = |revision: Revision| self.at.load(Ordering::Acquire) == revision.0;
        if store.held_revision(self.prefix()).is_none_or(is_current) {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at again: another thread may have been here. What is older now is a store that was put back.
        let held = store.held(self.prefix());
        let Some(held) = held.filter(|held| !is_current(held.revision())) else {
            return;
        };
        let changes = self.since(self.at.load(Ordering::Acquire), &held);
        if !changes.is_empty() {
            take(changes);
        }
        self.at.store(held.revision().0, Ordering::Release);
    }

    fn since(&self, at: u64, held: &Snapshot) -> Vec<Change> {
        let events = |after| {
            let store = &self.resource.backend.store;
            store.events(self.prefix(), Revision(after), held.revision(), MAX_EVENTS)
        };
        match (1..=held.revision().0).contains(&at).then(|| events(at)).flatten() {
            Some(events) => events.iter().filter_map(|event| self.change(event)).collect(),
            None => {
                let all = held.range(self.prefix(), self.prefix());
                let puts = all.filter_map(|entry| self.put(&entry));
                std::iter::once(Change::Reset).chain(puts).collect()
            }
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
