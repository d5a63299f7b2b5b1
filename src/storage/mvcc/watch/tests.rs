//! Watches of a store in which many changes share one revision, as in etcd when a lease or a transaction ends many
//! keys.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::mvcc::{History, Leases, Version, View};
use crate::{Event, ListOptions, Position, WatchItem};

/// More than any limit of queues and slices.
const MANY: usize = 2500;

/// A store that lies elsewhere: whoever writes says which revision that is.
struct Elsewhere {
    mvcc: Arc<Mvcc>,
    revision: u64,
}

impl Elsewhere {
    fn new() -> Elsewhere {
        let mvcc = Mvcc::new(View::default(), History::default(), Leases::default());
        Elsewhere { mvcc, revision: 1 }
    }

    /// Puts (`true`) or deletes keys, all at the next revision.
    fn change(&mut self, keys: impl IntoIterator<Item = (String, bool)>) -> Vec<Arc<Change>> {
        self.revision += 1;
        let view = self.mvcc.view().unwrap();
        let changes = keys.into_iter().map(|(key, put)| {
            let before = view.version(&key).map(|(_, held)| held.clone());
            let revision = Revision(self.revision);
            let (created, version) = before
                .as_ref()
                .map_or((revision, 1), |b| (b.create_revision, b.version + 1));
            let after = put.then(|| Arc::new(Version::new(Bytes::from_static(b"x"), created, revision, version)));
            Arc::new(Change {
                revision: revision.0,
                key: key.into(),
                before,
                after,
            })
        });
        changes.collect()
    }

    fn put(&mut self, keys: impl IntoIterator<Item = String>) -> u64 {
        let changes = self.change(keys.into_iter().map(|key| (key, true)));
        self.happened(&changes)
    }

    fn delete(&mut self, keys: impl IntoIterator<Item = String>) -> u64 {
        let changes = self.change(keys.into_iter().map(|key| (key, false)));
        self.happened(&changes)
    }

    fn happened(&self, changes: &[Arc<Change>]) -> u64 {
        self.mvcc.apply(changes);
        self.mvcc.advance(Revision(self.revision));
        self.revision
    }

    fn watch(&self, prefix: &str, after: u64) -> WatchStream {
        self.mvcc.watch(prefix, Revision(after)).unwrap()
    }
}

fn many(folder: &str) -> impl Iterator<Item = String> {
    let folder = folder.to_owned();
    (0..MANY).map(move |n| format!("{folder}{n:04}"))
}

/// What a watch has now; `None`: nothing yet.
fn poll(watch: &mut WatchStream) -> Option<WatchItem> {
    let item = watch.next().now_or_never()?;
    Some(item.expect("the watch has ended").unwrap())
}

/// What a reader knows: keys with the revisions of their versions, as of a revision of which nothing is missing.
#[derive(Clone, Default)]
struct Known {
    keys: BTreeMap<String, u64>,
    upto: u64,
}

impl Known {
    /// Takes in an item; no revision may be cut, and nothing come twice or late.
    fn take(&mut self, item: WatchItem) {
        let events = match item {
            WatchItem::Progress(revision) => {
                assert!(revision.0 >= self.upto);
                self.upto = revision.0;
                return;
            }
            WatchItem::Events(events) => events,
        };
        let before = self.upto;
        for event in events {
            let revision = event.revision().0;
            assert!(revision > before, "revision {revision} goes on in another item");
            match event {
                Event::Put { entry, .. } => {
                    assert!(entry.mod_revision.0 >= self.upto);
                    self.keys.insert(entry.key.to_string(), revision);
                }
                Event::Delete { key, .. } => {
                    self.keys.remove(&*key).expect("what is deleted was there");
                }
            }
            self.upto = revision;
        }
    }

    /// What a list of a prefix shows at a revision.
    fn listed(mvcc: &Mvcc, prefix: &str, revision: u64) -> BTreeMap<String, u64> {
        let options = ListOptions {
            revision: Some(Revision(revision)),
            ..Default::default()
        };
        let listed = mvcc.list(prefix, &options).unwrap();
        let entries = listed.entries.iter();
        entries
            .map(|entry| (entry.key.to_string(), entry.mod_revision.0))
            .collect()
    }

    fn check(&self, mvcc: &Mvcc, prefix: &str) {
        assert!(
            self.keys == Self::listed(mvcc, prefix, self.upto),
            "a reader of {prefix} that has heard of everything up to {} knows something else than a list shows",
            self.upto
        );
    }
}

/// Reads until there is nothing more, comparing at every step with a list of the revision that the watch has come to.
fn read_all(store: &Elsewhere, prefix: &str, watch: &mut WatchStream, known: &mut Known) {
    // A reader of a long history lets others have a turn, and one that was asked before it came to the end forgets it.
    for _ in 0..1000 {
        if known.upto == store.revision {
            break;
        }
        store.mvcc.request_progress();
        while let Some(item) = poll(watch) {
            known.take(item);
            known.check(&store.mvcc, prefix);
        }
    }
    assert_eq!(known.upto, store.revision, "{prefix}");
}

#[test]
fn a_revision_of_history_is_told_whole() {
    let mut store = Elsewhere::new();
    store.put(many("/a/"));
    store.put(["/b/x".to_owned()]);
    store.delete(many("/a/"));
    for prefix in ["/a/", "/a/1", "/", "/b/"] {
        let mut watch = store.watch(prefix, 1);
        read_all(
            &store,
            prefix,
            &mut watch,
            &mut Known {
                upto: 1,
                ..Known::default()
            },
        );
    }
    let mut watch = store.watch("/a/", 1);
    let Some(WatchItem::Events(events)) = poll(&mut watch) else {
        panic!("no events")
    };
    assert_eq!(events.len(), MANY);
}

/// Small revisions, revisions of some hundred changes and too large ones for any queue, with readers of all kinds.
#[test]
fn queues_and_their_overflow_cut_no_revision() {
    let mut store = Elsewhere::new();
    let prefixes = ["/a/", "/a/1", "/b/", "/"];
    let mut readers: Vec<_> = (0..12_usize)
        .map(|n| {
            (
                n,
                prefixes[n % 4],
                store.watch(prefixes[n % 4], 1),
                Known {
                    upto: 1,
                    ..Known::default()
                },
            )
        })
        .collect();
    for round in 0..40_u64 {
        let some = |folder: &str, count: usize| many(folder).take(count).collect::<Vec<_>>();
        match round % 5 {
            0 => store.put(some("/a/", 600)),
            1 => store.put(some("/b/", 1)),
            2 => store.put(some("/a/", 300).into_iter().chain(some("/b/", 300)).collect::<Vec<_>>()),
            3 if round % 2 == 0 => store.put(many("/a/")),
            _ => store.delete(
                Known::listed(&store.mvcc, "/a/", store.revision)
                    .into_keys()
                    .collect::<Vec<_>>(),
            ),
        };
        // Some read always, some at times, and of those only a part.
        for (n, prefix, watch, known) in &mut readers {
            match *n / 4 {
                0 => read_all(&store, prefix, watch, known),
                1 if round % 3 == 0 => {
                    if let Some(item) = poll(watch) {
                        known.take(item);
                        known.check(&store.mvcc, prefix);
                    }
                }
                _ => {}
            }
        }
    }
    for (_, prefix, watch, known) in &mut readers {
        read_all(&store, prefix, watch, known);
    }
}

/// Whoever comes back with the revision of any bookmark misses nothing.
#[test]
fn a_watch_goes_on_from_any_bookmark() {
    let mut store = Elsewhere::new();
    let mut marks = Vec::new();
    let mut watch = store.watch("/a/", 1);
    let mut known = Known {
        upto: 1,
        ..Known::default()
    };
    for _ in 0..3 {
        store.put(many("/a/").take(700));
        store.put(many("/b/").take(5));
        store.delete(many("/a/").take(700));
        store.mvcc.request_progress();
        while let Some(item) = poll(&mut watch) {
            known.take(item);
            marks.push(known.clone());
        }
    }
    assert!(marks.len() >= 6, "{}", marks.len());
    for mut known in marks {
        let mut again = store.watch("/a/", known.upto);
        read_all(&store, "/a/", &mut again, &mut known);
    }
}

/// While a revision is being queued nobody is told that it was delivered.
#[test]
fn no_progress_within_a_revision() {
    let mut store = Elsewhere::new();
    let done = Arc::new(AtomicBool::new(false));
    let mut watch = store.watch("/z/", 1);
    let told = done.clone();
    let reader = std::thread::spawn(move || {
        let (mut upto, mut events) = (1, 0_usize);
        loop {
            let last = told.load(Ordering::Acquire);
            match poll(&mut watch) {
                Some(WatchItem::Progress(revision)) => upto = revision.0,
                Some(WatchItem::Events(more)) => {
                    for event in &more {
                        assert!(event.revision().0 > upto, "{} after progress {upto}", event.revision());
                    }
                    events += more.len();
                    upto = more.last().map_or(upto, |event| event.revision().0);
                }
                None if last => return events,
                None => std::hint::spin_loop(),
            }
        }
    });
    const ROUNDS: usize = 300;
    for _ in 0..ROUNDS {
        store.put(many("/a/").take(300).chain(["/z/1".to_owned()]));
    }
    done.store(true, Ordering::Release);
    assert_eq!(reader.join().unwrap(), ROUNDS);
}

/// What many changes of the oldest revision superseded is forgotten, not only what one of them did.
#[test]
fn compaction_forgets_what_a_whole_revision_superseded() {
    let mut store = Elsewhere::new();
    store.put(many("/a/"));
    let early: Vec<_> = many("/a/")
        .map(|key| store.mvcc.get(&key).unwrap().entry.unwrap().held.mod_revision)
        .collect();
    assert!(early.iter().all(|revision| revision.0 == 2));
    let second = store.put(many("/a/"));
    let gone = store.mvcc.compact(Revision(second));
    assert_eq!(gone.len(), MANY);
    assert!(gone.iter().all(|revision| *revision == 2));
    let mut watch = store.watch("/a/", second - 1);
    let Some(WatchItem::Events(events)) = poll(&mut watch) else {
        panic!("no events")
    };
    assert_eq!(events.len(), MANY);
    assert!(events.iter().all(|event| !event.has_lost_its_past()));
}

/// A watch that began after a revision which has not come here ends, if it is not known any more which revision that
/// is.
#[test]
fn watches_ahead_are_forgotten() {
    let mut store = Elsewhere::new();
    let first = store.put(["/a/1".to_owned()]);
    let mut here = store.mvcc.watch_ahead("/a/", Revision(first)).unwrap();
    let mut ahead = store.mvcc.watch_ahead("/a/", Revision(first + 1)).unwrap();
    store.mvcc.forget_ahead(Revision(first));
    let ended = ahead.next().now_or_never().flatten();
    assert!(matches!(ended, Some(Err(StoreError::Closed))), "{ended:?}");
    store.put(["/a/2".to_owned()]);
    assert!(matches!(poll(&mut here), Some(WatchItem::Events(_))));
}

/// History over its budget is cut between revisions.
#[test]
fn a_budget_cuts_between_revisions() {
    let mut store = Elsewhere::new();
    for _ in 0..5 {
        store.put(many("/a/").take(100));
    }
    assert_eq!(store.mvcc.over_budget(0), Some(Revision(6)), "the last one stays whole");
    // Half of that is two and a half revisions.
    let budget = store
        .mvcc
        .read()
        .history
        .slice(0, 6)
        .map(|change| change.size())
        .sum::<usize>()
        - 1;
    let kept = store.mvcc.over_budget(budget).unwrap();
    assert_eq!(kept, Revision(5));
    store.mvcc.compact(kept);
    let at = |revision| Position {
        revision: Revision(revision),
        ..store.mvcc.position().unwrap()
    };
    assert_eq!(store.mvcc.events("/a/", at(4), Revision(6), 1000).unwrap().len(), 200);
    assert_eq!(store.mvcc.events("/a/", at(3), Revision(6), 1000), None);
    assert_eq!(store.mvcc.over_budget(budget), None);
}
