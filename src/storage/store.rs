//! The contract of a store.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::{Entry, Position, Snapshot, Timeline};

/// A point in the store's history. Every successful write makes a new one; the first is 2, as in etcd.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LeaseId(pub i64);

/// The answer of [`Store::get`].
#[derive(Clone, Debug)]
pub struct Got {
    pub entry: Option<Entry>,
    /// Revision of the store when it answered.
    pub revision: Revision,
}

/// Which keys of a prefix to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// As of this revision; `None`: now.
    pub revision: Option<Revision>,
    /// Without a revision: what others have read meanwhile will do too, if it shows this revision or a later one.
    pub at_least: Option<Revision>,
    /// At most so many; 0: all.
    pub limit: usize,
    /// Only keys at or after this one.
    pub from: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Listed {
    /// In the order of their keys.
    pub entries: Vec<Entry>,
    /// The revision that the list shows.
    pub revision: Revision,
    /// Keys of the prefix, from `from` on, including those beyond the limit.
    pub count: usize,
    /// More keys follow the last entry.
    pub more: bool,
}

/// The answer of [`Store::recent`].
#[derive(Clone)]
pub enum Recent {
    /// All of the prefix as it is now.
    Held(Snapshot),
    /// Memory lags behind this revision, which has come.
    Behind(Revision),
}

/// What must hold for a write to happen. Revision 0 means the same as `Absent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// The key is absent.
    Absent,
    /// The key was last changed at this revision.
    Revision(Revision),
}

#[derive(Clone, Debug)]
pub enum Write {
    Put { value: Bytes, lease: Option<LeaseId> },
    Delete,
}

/// The outcome of [`Store::write`].
#[derive(Clone, Debug)]
pub enum Written {
    /// Done and durable.
    Done { revision: Revision },
    /// The expectation did not hold; this is what the key holds now.
    Conflict { current: Option<Entry>, revision: Revision },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    Put {
        entry: Entry,
        /// What the key held before; `None` if it was absent.
        previous: Option<Entry>,
    },
    Delete {
        key: Arc<str>,
        revision: Revision,
        previous: Option<Entry>,
    },
}

impl Event {
    /// Whether compaction has taken what the key held before. Then nobody can say what the change means for a
    /// selection, and a watch must not yield it.
    pub(crate) fn has_lost_its_past(&self) -> bool {
        match self {
            Event::Put { entry, previous } => previous.is_none() && entry.version > 1,
            Event::Delete { previous, .. } => previous.is_none(),
        }
    }

    /// The revision of the change.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Event::Put { entry, .. } => entry.mod_revision,
            Event::Delete { revision, .. } => *revision,
        }
    }
}

/// What a watch yields. After an error the stream ends.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// Events in the order of their revisions; all events of one revision are in one item.
    Events(Vec<Event>),
    /// Everything up to this revision has been delivered.
    Progress(Revision),
}

pub type WatchStream = BoxStream<'static, Result<WatchItem, StoreError>>;

/// A copy of a store, which [`crate::embedded::offline::restore`] puts back. It is gone when this is dropped.
#[derive(Debug)]
pub struct StoreCopy {
    /// From its start.
    pub file: File,
    /// The next copy may be made when this one is gone.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// An ordered map with revisions. Cheap to clone behind an `Arc`; all methods may be called from any thread.
///
/// Reads that name no revision are linearizable: they see every write that was answered before they began.
pub trait Store: Send + Sync + 'static {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Got, StoreError>>;

    /// Keys that start with `prefix`, which ends with a slash. Fails with [`StoreError::Compacted`] or
    /// [`StoreError::Future`] when `options.revision` names a revision that is gone or has not come yet.
    fn list<'a>(&'a self, prefix: &'a str, options: ListOptions) -> BoxFuture<'a, Result<Listed, StoreError>>;

    /// All of a prefix as it is now, from memory as far as possible; linearizable as the other reads. A store that lies
    /// elsewhere keeps in memory from then on what it was asked for here: so ask for few, large prefixes.
    fn snapshot<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Snapshot, StoreError>>;

    /// As [`Store::snapshot`], if memory can say what is there now; whoever needs a part alone reads that part
    /// otherwise, with [`ListOptions::at_least`], instead of having all of a large prefix read for it.
    fn recent<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Recent, StoreError>> {
        async move { self.snapshot(prefix).await.map(Recent::Held) }.boxed()
    }

    /// What memory holds of a prefix at this moment, without asking anybody: it may lag behind a store that lies
    /// elsewhere. `None`: nothing is held yet (see [`Store::snapshot`]), or not now.
    fn held(&self, prefix: &str) -> Option<Snapshot>;

    /// Where that is.
    fn held_position(&self, prefix: &str) -> Option<Position> {
        self.held(prefix)?.position()
    }

    /// Where memory is, if it is known to hold nothing of a prefix that came after a position; `None`: there may be
    /// something, or nothing is held. Whoever asks before each of many decisions asks for this: it is remembered when a
    /// prefix that was asked about has changed.
    fn unchanged_since(&self, prefix: &str, position: Position) -> Option<Position> {
        self.held_position(prefix).filter(|held| *held == position)
    }

    /// What memory holds of a key of `prefix`, for whoever can put up with the past for a moment: a write that names
    /// the revision of what it replaces. It is never older than what this store has written itself, and its past is a
    /// matter of seconds. `None`: memory does not say, [`Store::get`] does; a store that lies elsewhere holds the
    /// prefix in memory from then on.
    fn recall(&self, _prefix: &str, _key: &str) -> Option<Entry> {
        None
    }

    /// Lets go of what is kept in memory for a prefix and can be had again: a mirror of it ends, and so do the watches
    /// that are fed from it, with [`StoreError::Closed`]. Keys and values stay; whoever asks for the prefix later
    /// begins anew. Meant for prefixes whose resource is gone.
    fn forget(&self, _prefix: &str) {}

    /// Events of the prefix after `after`, up to and including `until`, from memory and without waiting. `None`: there
    /// are more than `limit`, history does not reach back so far, or memory holds another timeline by now or is not at
    /// `until` yet.
    fn events(&self, prefix: &str, after: Position, until: Revision, limit: usize) -> Option<Vec<Event>>;

    /// Compare and write; the answer comes after the write is durable.
    ///
    /// Deleting an absent key that is expected to be absent is done without a new revision.
    /// [`StoreError::LeaseNotFound`] says that the lease has expired: grant another one. After any other error the
    /// write may or may not have happened.
    fn write<'a>(&'a self, key: &'a str, expect: Expect, write: Write) -> BoxFuture<'a, Result<Written, StoreError>>;

    /// Events of the prefix after revision `after`. Fails with [`StoreError::Compacted`] when history no longer
    /// reaches back so far; the same error ends a stream whose reader is so slow that history left it behind. Fails
    /// with [`StoreError::Future`] when `after` has not come yet, as far as a linearizable read can tell: whoever knows
    /// such a revision has it from another timeline. The stream yields [`WatchItem::Progress`] when asked
    /// ([`Store::request_progress`]), and when it is polled, has nothing else to yield and has come further than it
    /// said: an idle watch is not woken for it.
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<WatchStream, StoreError>>;

    /// Asks every open watch of this store to yield a [`WatchItem::Progress`] soon.
    fn request_progress(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Copies everything into a new file, from which [`crate::embedded::offline::restore`] makes a store. Only a store
    /// with files of its own can do so.
    fn snapshot_to<'a>(&'a self, _file: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        let reason = "only the embedded store has snapshots".to_owned();
        std::future::ready(Err(StoreError::Unavailable(reason))).boxed()
    }

    /// A copy of everything as it is now, made while the store serves; `None`: only a store with files of its own has
    /// such copies.
    fn copy(&self) -> Option<BoxFuture<'_, Result<StoreCopy, StoreError>>> {
        None
    }

    /// Bytes that the store takes where it lies; `None`: it lies in memory.
    fn size(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        std::future::ready(Ok(None)).boxed()
    }

    /// The timeline that revisions are of; `None`: the store can't say.
    fn timeline(&self) -> Option<Timeline> {
        None
    }

    /// Whether revisions of `other` are known to be of another timeline than this store's.
    fn is_other_timeline(&self, other: Timeline) -> bool {
        self.timeline().is_some_and(|own| own.store != other.store)
    }

    /// The newest revision (linearizable).
    fn current_revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>>;

    /// Forgets history before `revision`; the current state stays. `revision` itself can still be listed, and watched
    /// from the revision before it unless it replaced something that is forgotten now. Fails with
    /// [`StoreError::Future`] beyond the newest revision; does nothing if that much is forgotten already.
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>>;

    /// A lease: keys put under it are deleted when it expires, `ttl` from now or a little (at most 5 %, at most a
    /// minute) later, since calls with like `ttl` may share one.
    fn grant(&self, ttl: Duration) -> BoxFuture<'_, Result<LeaseId, StoreError>>;

    /// Whether other servers may have it open at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// An error says why writes can't be served now.
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Ends watches and background work; what was answered is durable already.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[derive(Debug, thiserror::Error, Clone)]
pub enum StoreError {
    /// The revision asked for is older than the history that is kept.
    #[error("the required revision has been compacted: {oldest} is the oldest kept")]
    Compacted { oldest: Revision },
    /// The revision asked for has not come yet.
    #[error("revision {wanted} is larger than the current one, {current}")]
    Future { wanted: Revision, current: Revision },
    /// The lease of a write is unknown or has expired.
    #[error("lease {} does not exist", .0.0)]
    LeaseNotFound(LeaseId),
    /// The store can't be reached or can't write; trying again may help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A row is damaged: file or key, and what is wrong.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
}
