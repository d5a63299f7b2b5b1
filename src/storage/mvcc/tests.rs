//! The heart against a model that keeps a whole copy of the state per revision.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::{Entry, Expect, WatchItem, Write, Written};

/// xorshift64*: the same sequence for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}

const KEYS: [&str; 7] = ["/a", "/a/", "/a/1", "/a/2", "/a0", "/ab/1", "/b/1"];
const PREFIXES: [&str; 4] = ["/", "/a/", "/b/", "/none/"];

/// What each key holds: value, and the revisions that made it and changed it, and its version.
type Snapshot = BTreeMap<&'static str, (Bytes, u64, u64, u64)>;

struct Model {
    /// From revision 1 on.
    states: Vec<Snapshot>,
    oldest: u64,
}

impl Model {
    fn revision(&self) -> u64 {
        self.states.len() as u64
    }

    /// Decides like the heart, whether and what to write.
    fn write(&mut self, key: &'static str, expect: Expect, value: Option<Bytes>) -> Option<u64> {
        let mut state = self.states.last().unwrap().clone();
        let held = state.get(key).map(|held| held.2);
        let expected = match expect {
            Expect::Absent => None,
            Expect::Revision(revision) => Some(revision.0),
        };
        if held != expected {
            return None;
        }
        let revision = self.revision() + 1;
        match (value, state.get(key).cloned()) {
            (Some(value), Some((_, created, _, version))) => {
                state.insert(key, (value, created, revision, version + 1));
            }
            (Some(value), None) => {
                state.insert(key, (value, revision, revision, 1));
            }
            (None, Some(_)) => {
                state.remove(key);
            }
            (None, None) => return Some(revision - 1),
        }
        self.states.push(state);
        Some(revision)
    }

    fn list(&self, prefix: &str, from: &str, revision: u64) -> Vec<(&'static str, Bytes, u64, u64, u64)> {
        let state = &self.states[revision as usize - 1];
        let matching = state.iter().filter(|(key, _)| key.starts_with(prefix) && **key >= from);
        matching
            .map(|(key, held)| (*key, held.0.clone(), held.1, held.2, held.3))
            .collect()
    }
}

fn check_lists(mvcc: &Mvcc, model: &Model, dice: &mut Dice) {
    for revision in 1..=model.revision() {
        for prefix in PREFIXES {
            let limit = dice.roll(4) as usize;
            let from = KEYS[dice.roll(KEYS.len() as u64) as usize];
            let options = ListOptions {
                revision: Some(Revision(revision)),
                limit,
                from: Some(from.to_owned()),
                ..ListOptions::default()
            };
            let listed = mvcc.list(prefix, &options);
            if revision < model.oldest {
                assert!(matches!(listed, Err(StoreError::Compacted { oldest }) if oldest.0 == model.oldest));
                continue;
            }
            let (listed, expected) = (listed.unwrap(), model.list(prefix, from, revision));
            let all = listed.entries.iter().zip(&expected);
            for (entry, (key, value, created, modified, version)) in all {
                assert_eq!((&*entry.key, &entry.value, entry.version), (*key, value, *version));
                assert_eq!((entry.create_revision.0, entry.mod_revision.0), (*created, *modified));
            }
            let shown = if limit == 0 {
                expected.len()
            } else {
                expected.len().min(limit)
            };
            assert_eq!((listed.entries.len(), listed.count), (shown, expected.len()));
            assert_eq!((listed.more, listed.revision.0), (shown < expected.len(), revision));
        }
    }
}

#[test]
fn lists_at_any_revision_are_what_a_model_says() {
    for seed in 1..=40 {
        let (mvcc, mut dice) = (Mvcc::empty(), Dice(seed));
        let mut model = Model {
            states: vec![Snapshot::new()],
            oldest: 0,
        };
        for step in 0..120 {
            let key = KEYS[dice.roll(KEYS.len() as u64) as usize];
            let held = mvcc.get(key).unwrap().entry;
            let right = held.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
            let expect = if dice.roll(8) > 0 {
                right
            } else {
                Expect::Revision(Revision(1 + dice.roll(20)))
            };
            let value = (dice.roll(3) > 0).then(|| Bytes::from(step.to_string()));
            let write = value
                .clone()
                .map_or(Write::Delete, |value| Write::Put { value, lease: None });
            let mut batch = Batch::new(&mvcc).unwrap();
            let written = batch.write(key, expect, write).unwrap();
            mvcc.apply(&batch.into_changes());
            match model.write(key, expect, value) {
                Some(revision) => {
                    assert!(matches!(written, Written::Done { revision: done, .. } if done.0 == revision))
                }
                None => assert!(matches!(written, Written::Conflict { .. })),
            }
            if dice.roll(25) == 0 {
                let revision = Revision(1 + dice.roll(model.revision()));
                if mvcc.check_compaction(revision).unwrap() {
                    mvcc.compact(revision);
                    model.oldest = revision.0;
                }
                check_lists(&mvcc, &model, &mut dice);
            }
        }
        check_lists(&mvcc, &model, &mut dice);
    }
}

/// In one batch each write sees those before it, and nobody sees any until they are applied.
#[test]
fn a_batch_is_seen_by_itself_only() {
    let mvcc = Mvcc::empty();
    let put = |value: &'static str| Write::Put {
        value: Bytes::from_static(value.as_bytes()),
        lease: None,
    };
    let mut batch = Batch::new(&mvcc).unwrap();
    assert!(matches!(
        batch.write("/a", Expect::Absent, put("1")),
        Ok(Written::Done {
            revision: Revision(2),
            ..
        })
    ));
    assert!(matches!(
        batch.write("/a", Expect::Absent, put("2")),
        Ok(Written::Conflict { current: Some(_), .. })
    ));
    let second = batch.write("/a", Expect::Revision(Revision(2)), put("3"));
    assert!(matches!(second, Ok(Written::Done { revision: Revision(3) })));
    assert!(mvcc.get("/a").unwrap().entry.is_none());
    assert_eq!(mvcc.current_revision().unwrap(), Revision(1));
    mvcc.apply(&batch.into_changes());
    let entry = mvcc.get("/a").unwrap().entry.unwrap();
    assert_eq!(
        (entry.version, entry.create_revision, entry.mod_revision),
        (2, Revision(2), Revision(3))
    );
}

/// A view that was read from elsewhere does not know the change that made its revision.
#[test]
fn leases_end_a_part_at_a_time() {
    const KEYS: usize = 10;
    let mvcc = Mvcc::empty();
    let leases = [LeaseId(1), LeaseId(2)];
    let mut batch = Batch::new(&mvcc).unwrap();
    for lease in leases {
        mvcc.leases().insert(lease, Duration::ZERO);
        for n in 0..KEYS {
            let write = Write::Put {
                value: Bytes::from_static(b"x"),
                lease: Some(lease),
            };
            let key = format!("/{}/{n}", lease.0);
            batch.write(&key, Expect::Absent, write).unwrap();
        }
    }
    mvcc.apply(&batch.into_changes());
    // 4 keys, 4, 2 of the first and 2 of the second, 4, 4, none.
    for (done, gone) in [(0, 4), (0, 4), (1, 4), (1, 4), (2, 4), (2, 0)] {
        let mut batch = Batch::new(&mvcc).unwrap();
        assert_eq!(batch.expire(&leases, 4), done);
        let changes = batch.into_changes();
        assert_eq!(changes.len(), gone);
        mvcc.apply(&changes);
    }
    let view = mvcc.list("/", &ListOptions::default()).unwrap();
    assert!(view.entries.is_empty());
}

#[tokio::test]
async fn a_view_from_elsewhere_is_watched_after_its_revision_only() {
    let held = Version::new("x".into(), Revision(3), Revision(5), 2);
    let view = View::of(vec![Entry::new("/a/1", held)], Revision(5));
    let mvcc = Mvcc::new(view, History::default(), Leases::default());
    let refused = mvcc.watch("/a/", Revision(4)).err();
    assert!(
        matches!(refused, Some(StoreError::Compacted { oldest: Revision(5) })),
        "{refused:?}"
    );
    let at = |revision| Position {
        revision: Revision(revision),
        ..mvcc.position().unwrap()
    };
    assert_eq!(mvcc.events("/a/", at(4), Revision(5), 10), None);
    assert!(mvcc.watch("/a/", Revision(5)).is_ok());
    assert_eq!(mvcc.events("/a/", at(5), Revision(5), 10), Some(vec![]));
    let new = Mvcc::empty();
    new.compact(Revision(1));
    assert!(new.watch("/", Revision(0)).is_ok());
}

fn put(mvcc: &Mvcc, key: &str) -> u64 {
    let mut batch = Batch::new(mvcc).unwrap();
    let expect = match mvcc.get(key).unwrap().entry {
        Some(entry) => Expect::Revision(entry.mod_revision),
        None => Expect::Absent,
    };
    let write = Write::Put {
        value: Bytes::from_static(b"value"),
        lease: None,
    };
    batch.write(key, expect, write).unwrap();
    mvcc.apply(&batch.into_changes());
    mvcc.current_revision().unwrap().0
}

fn put_often(mvcc: &Mvcc, key: &str, times: usize) -> u64 {
    let mut last = 0;
    for _ in 0..times {
        last = put(mvcc, key);
    }
    last
}

/// What a watch has now; `None`: nothing yet.
fn poll(watch: &mut crate::WatchStream) -> Option<Result<WatchItem, StoreError>> {
    watch
        .next()
        .now_or_never()
        .map(|item| item.expect("the watch has ended"))
}

/// A watch tells how far it is when it is polled and there is nothing else; so nobody has to wake it for that.
#[test]
fn an_idle_watch_knows_how_far_it_is() {
    let mvcc = Mvcc::empty();
    let mut watch = mvcc.watch("/a/", Revision(1)).unwrap();
    assert!(poll(&mut watch).is_none());
    let last = put_often(&mvcc, "/b/x", 3);
    assert!(matches!(poll(&mut watch), Some(Ok(WatchItem::Progress(revision))) if revision.0 == last));
    assert!(poll(&mut watch).is_none());
    mvcc.request_progress();
    assert!(matches!(poll(&mut watch), Some(Ok(WatchItem::Progress(revision))) if revision.0 == last));
    put(&mvcc, "/a/x");
    assert!(matches!(poll(&mut watch), Some(Ok(WatchItem::Events(events))) if events.len() == 1));
}

/// A watch that nobody reads holds nothing of what passes by; it goes on from history, as long as that reaches.
#[test]
fn a_watch_that_is_not_read_holds_no_changes() {
    let mvcc = Mvcc::empty();
    let first = put(&mvcc, "/a/x");
    let (mut late, mut too_late) = (
        mvcc.watch("/a/", Revision(first)).unwrap(),
        mvcc.watch("/a/", Revision(first)).unwrap(),
    );
    let early = std::sync::Arc::downgrade(&mvcc.get("/a/x").unwrap().entry.unwrap().held);
    let last = put_often(&mvcc, "/a/x", 3000);
    let mut seen = first;
    while seen < last {
        let Some(Ok(WatchItem::Events(events))) = poll(&mut late) else {
            panic!("the watch waits at {seen}");
        };
        for event in events {
            seen += 1;
            assert_eq!(event.revision(), Revision(seen));
        }
    }
    assert!(early.upgrade().is_some(), "history has it");
    mvcc.compact(Revision(last));
    assert!(early.upgrade().is_none());
    assert!(matches!(poll(&mut too_late), Some(Err(StoreError::Compacted { .. }))));
}

/// Whoever follows a prefix is told that nothing has come as long as that is so, however much is written elsewhere.
#[test]
fn a_prefix_is_unchanged_until_something_of_it_changes() {
    let mvcc = Mvcc::empty();
    put(&mvcc, "/a/x");
    let begun = mvcc.position().unwrap();
    assert_eq!(mvcc.unchanged_since("/a/", begun), None, "nobody has asked before");
    assert_eq!(mvcc.unchanged_since("/a/", begun), Some(begun));
    put_often(&mvcc, "/b/x", 3);
    let later = mvcc.position().unwrap();
    assert_eq!(mvcc.unchanged_since("/a/", begun), Some(later));
    assert_eq!(mvcc.unchanged_since("/a/", later), Some(later));
    put(&mvcc, "/a/y");
    assert_eq!(mvcc.unchanged_since("/a/", later), None);
    let now = mvcc.position().unwrap();
    assert_eq!(mvcc.unchanged_since("/a/", now), Some(now));
    let elsewhere = Position {
        epoch: Epoch::default(),
        ..now
    };
    assert_eq!(mvcc.unchanged_since("/a/", elsewhere), None, "another timeline");
    mvcc.forget("/a/");
    assert_eq!(mvcc.unchanged_since("/a/", now), None);
    mvcc.close();
    assert_eq!(mvcc.unchanged_since("/a/", now), None);
}
