//! Looks at etcd's past, by which a store finds out whether etcd is still what it was.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::api::{Range, Refusal};
use super::calls::{Calls, PAGE_REQUEST, REQUEST, end_of};
use crate::{Entry, Event, Revision, Snapshot, StoreError};

/// Keys in one answer at most.
const PAGE: usize = 5000;

impl Calls {
    /// Whether etcd held at the snapshot's revision what the snapshot shows of a prefix; `None`: it has forgotten. Of
    /// values only the newest is looked at: if etcd had another past before, that is the one that two timelines hardly
    /// share when they share the revisions and versions of all keys.
    pub async fn has_shown(&self, prefix: &str, snapshot: &Snapshot) -> Result<Option<bool>, StoreError> {
        let newest = snapshot.range(prefix, prefix).max_by_key(|entry| entry.mod_revision);
        if let Some(newest) = newest {
            let told = Told::of_entry(&newest);
            match self.held_at(&told.key, snapshot.revision(), true).await? {
                Past::Known(held) if told.is_shown(held.as_ref()) => {}
                Past::Known(_) | Past::Future => return Ok(Some(false)),
                Past::Forgotten => return Ok(None),
            }
        }
        self.has_keys(prefix, snapshot).await
    }

    /// As [`Calls::has_shown`], by the revisions and versions of keys.
    async fn has_keys(&self, prefix: &str, snapshot: &Snapshot) -> Result<Option<bool>, StoreError> {
        let (mut start, end) = (prefix.to_owned(), end_of(prefix));
        loop {
            let page = Range {
                key: &start,
                end: Some(&end),
                revision: snapshot.revision(),
                limit: PAGE,
                keys_only: true,
            };
            let got = match self.range(PAGE_REQUEST, &page).await {
                Ok(got) => got,
                Err(failure) => match failure.refusal() {
                    Refusal::Compacted => return Ok(None),
                    Refusal::Future => return Ok(Some(false)),
                    _ => return Err(failure.store_error()),
                },
            };
            let from = std::mem::take(&mut start);
            let mut shown = snapshot.range(prefix, &from);
            let same = got
                .entries
                .iter()
                .all(|entry| shown.next().is_some_and(|shown| is_same(&shown, entry)));
            match got.entries.last() {
                _ if !same => return Ok(Some(false)),
                Some(last) if got.more => start = format!("{}\0", last.key),
                _ => return Ok(Some(shown.next().is_none())),
            }
        }
    }

    /// Whether an event is part of etcd's past; `None`: it has forgotten.
    pub async fn has_told(&self, event: &Event) -> Result<Option<bool>, StoreError> {
        let told = Told::of(event);
        let held = match self.held_at(&told.key, told.revision, true).await? {
            Past::Known(held) => held,
            Past::Future => return Ok(Some(false)),
            Past::Forgotten => {
                // As long as it has not changed since, it tells.
                let (now, _) = self.get(&told.key).await?;
                return Ok(told.is_shown(now.as_ref()).then_some(true));
            }
        };
        if told.held.is_some() || held.is_some() {
            return Ok(Some(told.is_shown(held.as_ref())));
        }
        // It is not there: it went just then if it was there before.
        let before = Revision(told.revision.0.saturating_sub(1));
        Ok(Some(match self.held_at(&told.key, before, false).await? {
            Past::Known(held) => held.is_some(),
            Past::Forgotten => true,
            Past::Future => false,
        }))
    }

    async fn held_at(&self, key: &str, revision: Revision, value: bool) -> Result<Past, StoreError> {
        let range = Range {
            key,
            revision,
            keys_only: !value,
            ..Range::default()
        };
        match self.range(REQUEST, &range).await {
            Ok(got) => Ok(Past::Known(got.entries.into_iter().next())),
            Err(failure) => match failure.refusal() {
                Refusal::Compacted => Ok(Past::Forgotten),
                Refusal::Future => Ok(Past::Future),
                _ => Err(failure.store_error()),
            },
        }
    }
}

/// What a key held at a revision.
enum Past {
    Known(Option<Entry>),
    Forgotten,
    /// The revision has not come.
    Future,
}

/// A change that was told of, by what tells it from others.
#[derive(Clone, Debug)]
struct Told {
    key: Arc<str>,
    revision: Revision,
    /// `None`: the key was deleted.
    held: Option<Mark>,
}

/// What tells a version of a key from those on other timelines.
#[derive(Clone, PartialEq, Debug)]
struct Mark {
    created: Revision,
    modified: Revision,
    version: u64,
    /// Of the value.
    hash: u64,
}

impl Mark {
    fn of(entry: &Entry) -> Mark {
        let mut hasher = DefaultHasher::new();
        entry.value.hash(&mut hasher);
        Mark {
            created: entry.create_revision,
            modified: entry.mod_revision,
            version: entry.version,
            hash: hasher.finish(),
        }
    }
}

impl Told {
    fn of(event: &Event) -> Told {
        match event {
            Event::Put { entry, .. } => Told::of_entry(entry),
            Event::Delete { key, revision, .. } => Told {
                key: key.clone(),
                revision: *revision,
                held: None,
            },
        }
    }

    fn of_entry(entry: &Entry) -> Told {
        Told {
            key: entry.key.clone(),
            revision: entry.mod_revision,
            held: Some(Mark::of(entry)),
        }
    }

    fn is_shown(&self, entry: Option<&Entry>) -> bool {
        entry.map(Mark::of) == self.held
    }
}

fn is_same(one: &Entry, other: &Entry) -> bool {
    let revisions = |entry: &Entry| (entry.create_revision, entry.mod_revision, entry.version);
    one.key == other.key && revisions(one) == revisions(other)
}
