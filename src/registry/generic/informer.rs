//! Informer: tells which objects of a resource have changed. There is no second copy of them: whoever is told reads
//! what is there now ([`Lister`]), out of the same memory that clients are answered from. So a reader never sees less
//! than what it was told of, nor less than what this server has written itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Event, Revision, Snapshot, StoreError, WatchItem, WatchStream};

use super::{Lister, Resource};

/// Between attempts while the store cannot be read.
const PAUSE: Duration = Duration::from_millis(500);

/// Which object of a resource. The namespace of those that have none is "".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct NamespacedName {
    /// Its namespace; "" for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl NamespacedName {
    /// That of an object.
    pub fn of(object: &dyn Object) -> NamespacedName {
        let meta = object.meta();
        NamespacedName {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
        }
    }
}

impl fmt::Display for NamespacedName {
    /// `namespace/name`, or the name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// How far an informer is, and what its listers have shown.
#[derive(Default)]
pub(super) struct Progress {
    /// What was told is not newer than this.
    told: AtomicU64,
    synced: AtomicBool,
    keys: Mutex<Keys>,
}

/// Keys of objects that somebody knows of; their texts are those of the store. Whoever knows of an object is told when
/// it goes, also while nobody watched.
#[derive(Default)]
struct Keys {
    /// The objects that were told of.
    told: BTreeSet<Arc<str>>,
    /// Other keys that listers read or have shown: memory may be ahead of what was told.
    read: BTreeMap<Arc<str>, Reading>,
}

#[derive(Default)]
struct Reading {
    /// Those who read just now.
    readers: usize,
    /// There was an object.
    shown: bool,
}

impl Progress {
    pub fn told(&self) -> Revision {
        Revision(self.told.load(Ordering::Acquire))
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is about to read a key.
    pub fn begins_to_read(&self, key: &str) {
        let mut keys = self.keys();
        match keys.read.get_mut(key) {
            Some(reading) => reading.readers += 1,
            None => drop(keys.read.insert(
                key.into(),
                Reading {
                    readers: 1,
                    shown: false,
                },
            )),
        }
    }

    /// It was read, or will not be. `found`: there is an object, read when `told` was told. False: more was told
    /// meanwhile, so that nobody would say when that object goes; it has to be read again.
    pub fn has_read(&self, key: &str, found: bool, told: Revision) -> bool {
        let mut keys = self.keys();
        let is_news = found && !keys.told.contains(key);
        let is_late = is_news && self.told() != told;
        let Some(reading) = keys.read.get_mut(key) else {
            return true;
        };
        reading.readers = reading.readers.saturating_sub(1);
        reading.shown |= is_news && !is_late;
        if reading.readers == 0 && !reading.shown {
            keys.read.remove(key);
        }
        !is_late
    }
}

impl Keys {
    /// It was told of the key: nobody knows more than that who has read it before.
    fn tell(&mut self, key: &Arc<str>, is_there: bool) {
        match is_there {
            true => drop(self.told.insert(key.clone())),
            false => drop(self.told.remove(key)),
        }
        if let Some(reading) = self.read.get_mut(key) {
            reading.shown = false;
            if reading.readers == 0 {
                self.read.remove(key);
            }
        }
    }

    /// Tells of all that is there, and returns what somebody may know that is not.
    fn tell_anew(&mut self, there: BTreeSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        let mut gone = std::mem::replace(&mut self.told, there);
        let shown = self.read.iter().filter(|(_, reading)| reading.shown);
        gone.extend(shown.map(|(key, _)| key.clone()));
        gone.retain(|key| !self.told.contains(key));
        self.read.retain(|_, reading| reading.readers > 0);
        gone
    }
}

/// An object that has changed, or may have.
pub struct Change {
    /// Which one.
    pub key: NamespacedName,
    resource: Arc<Resource>,
    new: Option<Entry>,
    old: Option<Entry>,
}

impl Change {
    /// The object is not there any more.
    pub fn is_deletion(&self) -> bool {
        self.new.is_none()
    }

    /// The stored form of the object as it became then.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.new.as_ref()
    }

    /// The object was there before and is there still.
    pub fn is_update(&self) -> bool {
        self.new.is_some() && self.old.is_some()
    }

    /// The object as it became then; `None`: it was deleted. It may have changed since: [`Lister::get`] says what is
    /// there.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn object(&self) -> Result<Option<Box<dyn Object>>, StatusError> {
        self.read(self.new.as_ref()).await
    }

    /// What it was before; `None`: it was made then, or nobody knows any more.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn old_object(&self) -> Result<Option<Box<dyn Object>>, StatusError> {
        self.read(self.old.as_ref()).await
    }

    async fn read(&self, entry: Option<&Entry>) -> Result<Option<Box<dyn Object>>, StatusError> {
        let Some(entry) = entry else { return Ok(None) };
        self.resource.prepare(entry).await?;
        self.resource.decode(entry).map(Some)
    }

    /// As [`Change::object`], as a value of its type; `None` too where it is of another type.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn typed<T: Reflect + Clone>(&self) -> Result<Option<T>, StatusError> {
        let object = self.object().await?;
        Ok(object.and_then(|object| object.downcast_ref::<T>().cloned()))
    }

    /// As [`Change::old_object`], as a value of its type; `None` too where it is of another type.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn old_typed<T: Reflect + Clone>(&self) -> Result<Option<T>, StatusError> {
        let object = self.old_object().await?;
        Ok(object.and_then(|object| object.downcast_ref::<T>().cloned()))
    }
}

/// What an informer tells at once.
pub struct Changes {
    /// All objects are told of: the informer has just begun, or had to begin again since the store's history did not
    /// reach back to what was told last. Then `old_object` is not known, and of what is gone only the key.
    pub anew: bool,
    /// In the order in which they happened; with `anew` in no particular one.
    pub all: Vec<Change>,
}

/// Follows the objects of one resource.
pub struct Informer {
    resource: Arc<Resource>,
    progress: Arc<Progress>,
    /// Where to watch from; `None`: all has to be read first.
    after: Option<Revision>,
    stream: Option<WatchStream>,
}

impl Informer {
    /// One that has told nothing yet.
    pub fn new(resource: Arc<Resource>) -> Informer {
        Informer {
            resource,
            progress: Arc::default(),
            after: None,
            stream: None,
        }
    }

    /// Reads what was told of.
    pub fn lister(&self) -> Lister {
        Lister::following(self.resource.clone(), self.progress.clone())
    }

    /// Whether all objects were told of that were there when the informer began.
    pub fn has_synced(&self) -> bool {
        self.progress.synced.load(Ordering::Acquire)
    }

    /// What has changed: first all objects, then what happens to them. Waits until there is something, and for a store
    /// that can't be read until it can. `None`: the store is closed. Dropping the future loses no change, but what it
    /// waited for is begun again by the next call.
    pub async fn next(&mut self) -> Option<Changes> {
        loop {
            let told = match (&mut self.stream, self.after) {
                (Some(stream), _) => match stream.next().await {
                    Some(Ok(WatchItem::Events(events))) => return Some(self.take(events)),
                    Some(Ok(WatchItem::Progress(_))) => Ok(()),
                    Some(Err(error)) => Err(error),
                    None => Err(StoreError::Unavailable("a watch has ended".to_owned())),
                },
                (None, Some(after)) => match self.resource.watch(&self.resource.key_prefix, after).await {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
                (None, None) => match self.resource.backend.store.snapshot(&self.resource.key_prefix).await {
                    Ok(snapshot) => return Some(self.begin(&snapshot)),
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = told {
                self.restart(error).await?;
            }
        }
    }

    /// `None`: the store is closed.
    async fn restart(&mut self, error: StoreError) -> Option<()> {
        self.stream = None;
        self.after = None;
        match error {
            StoreError::Closed => return None,
            // Reading anew is the remedy.
            StoreError::Compacted { .. } | StoreError::Future { .. } => {}
            error => {
                tracing::warn!(%error, resource = %self.resource.plural, "an informer begins again");
                tokio::time::sleep(PAUSE).await;
            }
        }
        Some(())
    }

    /// All that is there, and all that is not there any more.
    fn begin(&mut self, snapshot: &Snapshot) -> Changes {
        let prefix = &self.resource.key_prefix;
        let (mut all, mut there) = (Vec::new(), BTreeSet::new());
        for entry in snapshot.range(prefix, prefix) {
            there.insert(entry.key.clone());
            all.extend(self.change(&entry.key, Some(entry.clone()), None));
        }
        let revision = snapshot.revision();
        self.after = Some(revision);
        // First: who reads meanwhile notices.
        self.progress.told.store(revision.0, Ordering::Release);
        let gone = self.progress.keys().tell_anew(there);
        all.extend(gone.iter().filter_map(|key| self.change(key, None, None)));
        self.progress.synced.store(true, Ordering::Release);
        Changes { anew: true, all }
    }

    fn take(&mut self, events: Vec<Event>) -> Changes {
        let mut all = Vec::with_capacity(events.len());
        for event in events {
            let (revision, change) = match event {
                Event::Put { entry, previous } => {
                    let key = entry.key.clone();
                    self.progress.keys().tell(&key, true);
                    (entry.mod_revision, self.change(&key, Some(entry), previous))
                }
                Event::Delete {
                    key,
                    revision,
                    previous,
                } => {
                    self.progress.keys().tell(&key, false);
                    (revision, self.change(&key, None, previous))
                }
            };
            self.progress.told.store(revision.0, Ordering::Release);
            all.extend(change);
        }
        Changes { anew: false, all }
    }

    /// `None`: no object of the resource has such a key.
    fn change(&self, key: &str, new: Option<Entry>, old: Option<Entry>) -> Option<Change> {
        Some(Change {
            key: self.resource.name_of(key)?,
            resource: self.resource.clone(),
            new,
            old,
        })
    }
}
