//! The objects of one kind, and what clients have seen of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use keelson_history::{Border, Filter, History, Key, Moment, Version};
use serde_json::Value;

use super::object::Kind;
use super::world::World;

/// Where a watch would go on.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub revision: u64,
    /// When the request was sent whose answer told it.
    pub learned: Moment,
}

impl Position {
    /// Whether a store that was put back does not have it any more.
    pub fn is_lost(&self, border: Border) -> bool {
        self.learned < border.up && self.revision > border.common
    }
}

pub struct Lane {
    pub kind: Kind,
    pub history: Mutex<History>,
    /// The newest revision that any client was told of.
    newest: AtomicU64,
    /// The recorder, which watches everything, has heard of everything up to this revision.
    pub recorded: AtomicU64,
    /// By key, the newest revision that any client was told of.
    latest: Mutex<HashMap<Key, u64>>,
    /// The last writes of the run.
    finals: Mutex<Option<Vec<(Key, Version)>>>,
    /// By watcher.
    positions: Mutex<BTreeMap<usize, Position>>,
}

impl Lane {
    pub fn new(kind: Kind, lifetime: Option<Moment>) -> Lane {
        let history = History {
            complete: true,
            lifetime,
            untracked: kind == Kind::Pod,
            ..History::default()
        };
        Lane {
            kind,
            history: Mutex::new(history),
            newest: AtomicU64::new(1),
            recorded: AtomicU64::new(0),
            latest: Mutex::default(),
            finals: Mutex::default(),
            positions: Mutex::default(),
        }
    }

    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    pub fn saw_revision(&self, revision: u64) {
        self.newest.fetch_max(revision, Ordering::Relaxed);
    }

    pub fn saw(&self, key: Key, version: Version) {
        self.saw_revision(version.revision);
        let mut latest = self.latest.lock().unwrap();
        let held = latest.entry(key).or_default();
        *held = version.revision.max(*held);
    }

    /// The newest revision of a key that anybody saw.
    pub fn latest(&self, key: Key) -> u64 {
        self.latest.lock().unwrap().get(&key).copied().unwrap_or(1)
    }

    /// Reads one of its objects; one that nobody can have written is a violation.
    pub fn read(&self, world: &World, object: &Value) -> Option<(Key, Version)> {
        match self.kind.read(object) {
            Ok((key, version)) => {
                self.saw(key, version);
                Some((key, version))
            }
            Err(text) => {
                world.violation("objects are whole", text.chars().take(2000).collect());
                None
            }
        }
    }

    /// Whether the recorder has heard of all that was written.
    pub fn is_recorded(&self) -> bool {
        let last = self.latest.lock().unwrap().values().copied().max();
        self.recorded.load(Ordering::Relaxed) >= last.unwrap_or(0)
    }

    pub fn stand(&self, watcher: usize, position: Position) {
        self.positions.lock().unwrap().insert(watcher, position);
    }

    /// A watcher that has heard of everything.
    pub fn leave(&self, watcher: usize) {
        self.positions.lock().unwrap().remove(&watcher);
    }

    /// Whether every watcher has a position in the timeline that begins at a border.
    pub fn has_crossed(&self, border: Border) -> bool {
        let positions = self.positions.lock().unwrap();
        positions.values().all(|position| !position.is_lost(border))
    }

    /// The store was put back: what was known is not known any more. (What `latest` says makes updates fail.)
    pub fn forget(&self, border: Border) {
        self.newest.store(border.common.max(1), Ordering::Relaxed);
        self.recorded.store(0, Ordering::Relaxed);
        if border.common == 0 {
            self.latest.lock().unwrap().clear();
        }
        self.history.lock().unwrap().borders.push(border);
    }

    /// These are the last writes.
    pub fn finish(&self, finals: Vec<(Key, Version)>) {
        *self.finals.lock().unwrap() = Some(finals);
    }

    /// The revision of the last event that a watch must hear of; `None`: the last writes are not done.
    pub fn last_for(&self, filter: &Filter) -> Option<u64> {
        let finals = self.finals.lock().unwrap();
        let selected = finals.iter().flatten();
        let selected = selected.filter(|(key, version)| filter.selects(*key, version.id));
        selected.map(|(_, version)| version.revision).max()
    }
}
