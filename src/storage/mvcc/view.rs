//! Views: one immutable look at all keys, at the current state and what is kept of the past.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::version::{Change, Version, entry};
use crate::{Entry, Epoch, ListOptions, Listed, Revision, StoreError};

/// The revision of a store that was never written to, as in etcd.
pub(super) const FIRST: u64 = 1;

/// Clones in constant time; a clone does not change when the store does.
#[derive(Clone)]
pub(crate) struct View {
    current: OrdMap<Arc<str>, Arc<Version>>,
    /// Superseded versions by key and the revision that made them; `None`: a deletion.
    past: OrdMap<(Arc<str>, u64), Option<Arc<Version>>>,
    /// How many current keys each folder has below it; folders end with a slash.
    counts: OrdMap<Arc<str>, usize>,
    revision: u64,
    oldest: u64,
    epoch: Epoch,
}

impl Default for View {
    fn default() -> Self {
        View {
            current: OrdMap::new(),
            past: OrdMap::new(),
            counts: OrdMap::new(),
            revision: FIRST,
            oldest: 0,
            epoch: Epoch::default(),
        }
    }
}

impl View {
    /// These keys and no past.
    pub fn of(entries: Vec<Entry>, revision: Revision) -> View {
        let mut view = View::default();
        for entry in entries {
            view.count(&entry.key, |count| count + 1);
            view.current.insert(entry.key, entry.held);
        }
        view.set_oldest(revision.0);
        view
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whose timeline this is; none's if it is not held in memory.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// This view, held in memory from now on.
    pub fn begin(self, epoch: Epoch) -> View {
        View { epoch, ..self }
    }

    /// The oldest revision that can be read.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    pub fn set_oldest(&mut self, revision: u64) {
        self.oldest = self.oldest.max(revision);
        self.revision = self.revision.max(revision);
    }

    /// Nothing happened up to this revision that the view does not have.
    pub fn advance(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    pub fn version(&self, key: &str) -> Option<(&Arc<str>, &Arc<Version>)> {
        self.current.get_key_value(key)
    }

    pub fn get(&self, key: &str) -> Option<Entry> {
        self.version(key).map(|(key, version)| entry(key, version))
    }

    /// All keys with what they hold now.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Version>)> {
        self.current.iter()
    }

    pub fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listed, StoreError> {
        let revision = self.readable(options.revision)?;
        let start = options.from.as_deref().filter(|from| *from > prefix).unwrap_or(prefix);
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let mut entries = Vec::new();
        let mut count = 0;
        let mut take = |key: &Arc<str>, version: &Arc<Version>| {
            count += 1;
            if entries.len() < limit {
                entries.push(entry(key, version));
            }
        };
        if revision == self.revision {
            self.range(prefix, start).for_each(|(key, version)| take(key, version));
        } else {
            self.each_at(prefix, start, revision, take);
        }
        let more = count > entries.len();
        Ok(Listed {
            entries,
            revision: Revision(revision),
            count,
            more,
        })
    }

    /// The revision that a read at `wanted` sees, if it can be read.
    pub fn readable(&self, wanted: Option<Revision>) -> Result<u64, StoreError> {
        match wanted {
            None => Ok(self.revision),
            Some(wanted) if wanted.0 > self.revision => Err(StoreError::Future {
                wanted,
                current: Revision(self.revision),
            }),
            Some(wanted) if wanted.0 < self.oldest => Err(StoreError::Compacted {
                oldest: Revision(self.oldest),
            }),
            Some(wanted) => Ok(wanted.0),
        }
    }

    /// Current keys of a prefix, from `start` on.
    pub fn range(&self, prefix: &str, start: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<Version>)> {
        self.current
            .range::<_, str>((Bound::Included(start), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Merges the current keys with the past ones: calls `take` with what each held at `revision`.
    fn each_at(&self, prefix: &str, start: &str, revision: u64, mut take: impl FnMut(&Arc<str>, &Arc<Version>)) {
        let mut current = self.range(prefix, start).peekable();
        let mut past = self
            .past
            .range((Bound::Included((Arc::from(start), 0)), Bound::Unbounded))
            .take_while(|((key, _), _)| key.starts_with(prefix))
            .peekable();
        loop {
            let key = match (current.peek(), past.peek()) {
                (None, None) => return,
                (Some((key, _)), None) => (*key).clone(),
                (None, Some(((key, _), _))) => key.clone(),
                (Some((a, _)), Some(((b, _), _))) => (*a).min(b).clone(),
            };
            let mut held = None;
            while let Some(((_, modified), version)) = past.next_if(|((past_key, _), _)| *past_key == key) {
                if *modified <= revision {
                    held = version.as_ref();
                }
            }
            if let Some((_, version)) = current.next_if(|(current_key, _)| **current_key == key)
                && version.mod_revision.0 <= revision
            {
                held = Some(version);
            }
            if let Some(version) = held {
                take(&key, version);
            }
        }
    }

    /// Takes in the next change.
    pub fn apply(&mut self, change: &Change) {
        self.revision = change.revision;
        if let Some(before) = &change.before {
            self.past
                .insert((change.key.clone(), before.mod_revision.0), Some(before.clone()));
        }
        match &change.after {
            Some(version) => {
                if self.current.insert(change.key.clone(), version.clone()).is_none() {
                    self.count(&change.key, |count| count + 1);
                }
            }
            None => {
                if self.current.remove(&change.key).is_some() {
                    self.count(&change.key, |count| count.saturating_sub(1));
                }
                self.past.insert((change.key.clone(), change.revision), None);
            }
        }
    }

    /// Counts a key in or out of all its folders.
    fn count(&mut self, key: &str, step: impl Fn(usize) -> usize) {
        for (slash, _) in key.match_indices('/') {
            let folder = &key[..=slash];
            let count = step(self.counts.get(folder).copied().unwrap_or(0));
            match (count, self.counts.get_mut(folder)) {
                (0, _) => drop(self.counts.remove(folder)),
                (_, Some(held)) => *held = count,
                (_, None) => drop(self.counts.insert(Arc::from(folder), count)),
            }
        }
    }

    /// How many keys a folder has now; its name ends with a slash.
    pub fn count_in(&self, folder: &str) -> usize {
        self.counts.get(folder).copied().unwrap_or(0)
    }

    /// Forgets what a change older than the oldest revision superseded, and the change itself if it is a deletion.
    pub fn forget(&mut self, change: &Change, gone: &mut Vec<u64>) {
        self.forget_previous(change, gone);
        if change.after.is_none() && self.past.remove(&(change.key.clone(), change.revision)).is_some() {
            gone.push(change.revision);
        }
    }

    /// Forgets what a change superseded.
    pub fn forget_previous(&mut self, change: &Change, gone: &mut Vec<u64>) {
        if let Some(before) = &change.before
            && self.past.remove(&(change.key.clone(), before.mod_revision.0)).is_some()
        {
            gone.push(before.mod_revision.0);
        }
    }
}
