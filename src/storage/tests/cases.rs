//! The contract, case by case. A case gets a store that may hold other keys, and a prefix of its own.

mod watches;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::{
    Entry, Epoch, Event, Expect, LeaseId, ListOptions, Listed, Position, Revision, Snapshot, Store, StoreError,
    Version, WatchItem, WatchStream, Write, Written,
};

pub use watches::*;

type Shared = Arc<dyn Store>;

/// Nothing that a case waits for takes so long, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn put(value: impl AsRef<[u8]>) -> Write {
    Write::Put {
        value: Bytes::copy_from_slice(value.as_ref()),
        lease: None,
    }
}

/// Writes and expects that it is done.
async fn write(store: &Shared, key: &str, expect: Expect, write: Write) -> Revision {
    match store.write(key, expect, write).await.unwrap() {
        Written::Done { revision, .. } => revision,
        Written::Conflict { current, .. } => panic!("{key}: expected {expect:?}, is {current:?}"),
    }
}

async fn create(store: &Shared, key: &str, value: impl AsRef<[u8]>) -> Revision {
    write(store, key, Expect::Absent, put(value)).await
}

async fn entry(store: &Shared, key: &str) -> Option<Entry> {
    store.get(key).await.unwrap().entry
}

fn keys(listed: &Listed) -> Vec<&str> {
    listed
        .entries
        .iter()
        .map(|entry| entry.key.rsplit('/').next().unwrap())
        .collect()
}

/// What memory holds of a prefix, when that has come to a revision.
async fn held_at(store: &Shared, p: &str, revision: Revision) -> Snapshot {
    let come = async {
        loop {
            match store.held(p).filter(|held| held.revision() >= revision) {
                Some(held) => return held,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, come).await.expect("memory lags behind")
}

async fn next(watch: &mut WatchStream) -> Result<WatchItem, StoreError> {
    tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("the watch is silent")
        .expect("the watch has ended")
}

/// The next events of a watch, progress left out.
async fn events(watch: &mut WatchStream, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        if let WatchItem::Events(more) = next(watch).await.unwrap() {
            events.extend(more);
        }
    }
    assert_eq!(events.len(), count);
    events
}

fn revision(event: &Event) -> Revision {
    match event {
        Event::Put { entry, .. } => entry.mod_revision,
        Event::Delete { revision, .. } => *revision,
    }
}

/// Key, value ("-" for a deletion) and value before, in short.
fn told(event: &Event) -> (String, String, String) {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let before = |previous: &Option<Entry>| previous.as_ref().map_or("-".to_owned(), |entry| text(&entry.value));
    match event {
        Event::Put { entry, previous } => (entry.key.to_string(), text(&entry.value), before(previous)),
        Event::Delete { key, previous, .. } => (key.to_string(), "-".to_owned(), before(previous)),
    }
}

pub async fn the_first_write_makes_revision_two(store: Shared, p: &str) {
    assert_eq!(store.current_revision().await.unwrap(), Revision(1));
    assert_eq!(create(&store, &format!("{p}a"), "1").await, Revision(2));
    assert_eq!(store.current_revision().await.unwrap(), Revision(2));
}

pub async fn a_key_is_made_changed_and_deleted(store: Shared, p: &str) {
    let key = &format!("{p}a");
    assert_eq!(entry(&store, key).await, None);
    let made = create(&store, key, "one").await;
    let held = entry(&store, key).await.unwrap();
    let expected = Entry::new(&**key, Version::new(Bytes::from_static(b"one"), made, made, 1));
    assert_eq!(held, expected);

    let changed = write(&store, key, Expect::Revision(made), put("two")).await;
    let expected = Entry::new(&**key, Version::new(Bytes::from_static(b"two"), made, changed, 2));
    assert_eq!(entry(&store, key).await, Some(expected));

    let deleted = write(&store, key, Expect::Revision(changed), Write::Delete).await;
    let got = store.get(key).await.unwrap();
    assert_eq!((got.entry, got.revision), (None, deleted));

    let again = create(&store, key, "").await;
    let held = entry(&store, key).await.unwrap();
    assert_eq!((held.version, held.create_revision, held.value.len()), (1, again, 0));
}

pub async fn writes_conflict_when_the_key_is_not_as_expected(store: Shared, p: &str) {
    let key = &format!("{p}a");
    let absent = store.write(key, Expect::Revision(Revision(1)), put("x")).await.unwrap();
    assert!(matches!(absent, Written::Conflict { current: None, .. }));
    let absent = store
        .write(key, Expect::Revision(Revision(1)), Write::Delete)
        .await
        .unwrap();
    assert!(matches!(absent, Written::Conflict { current: None, .. }));

    let made = write(&store, key, Expect::Revision(Revision(0)), put("one")).await;
    for expect in [
        Expect::Absent,
        Expect::Revision(Revision(0)),
        Expect::Revision(Revision(made.0 - 1)),
    ] {
        for write in [put("two"), Write::Delete] {
            match store.write(key, expect, write).await.unwrap() {
                Written::Conflict {
                    current: Some(current),
                    revision,
                } => {
                    assert_eq!((current.value.as_ref(), current.mod_revision), (b"one".as_ref(), made));
                    assert_eq!(revision, made);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(
        store.current_revision().await.unwrap(),
        made,
        "a conflict changes nothing"
    );
}

pub async fn every_write_raises_the_revision_by_one(store: Shared, p: &str) {
    let mut last = store.current_revision().await.unwrap();
    for n in 0..5 {
        let key = format!("{p}{n}");
        let made = create(&store, &key, "x").await;
        assert_eq!(made.0, last.0 + 1);
        let deleted = write(&store, &key, Expect::Revision(made), Write::Delete).await;
        assert_eq!(deleted.0, made.0 + 1);
        let nothing = write(&store, &key, Expect::Absent, Write::Delete).await;
        assert_eq!(nothing, deleted, "deleting nothing is not a write");
        last = deleted;
    }
    assert_eq!(store.current_revision().await.unwrap(), last);
}

pub async fn lists_go_by_prefix_limit_and_start(store: Shared, p: &str) {
    for key in ["ab/x", "a", "a/3", "a/1", "a/2/deep", "a0", "b/1"] {
        create(&store, &format!("{p}{key}"), key).await;
    }
    let current = store.current_revision().await.unwrap();
    let prefix = &format!("{p}a/");
    let all = store.list(prefix, ListOptions::default()).await.unwrap();
    assert_eq!(keys(&all), ["1", "deep", "3"]);
    assert_eq!((all.count, all.more, all.revision), (3, false, current));
    assert_eq!(all.entries[0].value.as_ref(), b"a/1");
    assert_eq!(all.entries[0].version, 1);

    let page = ListOptions {
        limit: 2,
        ..Default::default()
    };
    let first = store.list(prefix, page.clone()).await.unwrap();
    assert_eq!((keys(&first), first.count, first.more), (vec!["1", "deep"], 3, true));
    let from = Some(format!("{prefix}2/deep\0"));
    let second = store.list(prefix, ListOptions { from, ..page.clone() }).await.unwrap();
    assert_eq!((keys(&second), second.count, second.more), (vec!["3"], 1, false));
    let exact = store
        .list(
            prefix,
            ListOptions {
                limit: 3,
                ..Default::default()
            },
        )
        .await
        .unwrap();
    assert_eq!((exact.entries.len(), exact.more), (3, false));
    let from = Some(format!("{p}zzz"));
    let beyond = store.list(prefix, ListOptions { from, ..page.clone() }).await.unwrap();
    assert_eq!((keys(&beyond), beyond.count, beyond.more), (vec![], 0, false));
    let from = Some("/".to_owned());
    let before = store
        .list(
            prefix,
            ListOptions {
                from,
                ..Default::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(keys(&before), ["1", "deep", "3"]);
    let none = store.list(&format!("{p}none/"), page).await.unwrap();
    assert_eq!(
        (keys(&none), none.count, none.more, none.revision),
        (vec![], 0, false, current)
    );
}

pub async fn lists_show_the_past(store: Shared, p: &str) {
    let empty = store.current_revision().await.unwrap();
    let a1 = create(&store, &format!("{p}a"), "a1").await;
    let b1 = create(&store, &format!("{p}b"), "b1").await;
    let a2 = write(&store, &format!("{p}a"), Expect::Revision(a1), put("a2")).await;
    let b2 = write(&store, &format!("{p}b"), Expect::Revision(b1), Write::Delete).await;
    let c1 = create(&store, &format!("{p}c"), "c1").await;
    let b3 = create(&store, &format!("{p}b"), "b3").await;
    let expected: [(Revision, &[&str]); 7] = [
        (empty, &[]),
        (a1, &["a1"]),
        (b1, &["a1", "b1"]),
        (a2, &["a2", "b1"]),
        (b2, &["a2"]),
        (c1, &["a2", "c1"]),
        (b3, &["a2", "b3", "c1"]),
    ];
    let look = async || {
        for (revision, values) in &expected[1..] {
            let at = ListOptions {
                revision: Some(*revision),
                ..Default::default()
            };
            let listed = store.list(p, at.clone()).await.unwrap();
            let found: Vec<_> = listed
                .entries
                .iter()
                .map(|entry| str::from_utf8(&entry.value).unwrap())
                .collect();
            assert_eq!(&found, values, "at {revision}");
            assert_eq!((listed.count, listed.revision), (values.len(), *revision));
            let page = store.list(p, ListOptions { limit: 1, ..at.clone() }).await.unwrap();
            assert_eq!(
                (page.entries.len(), page.count, page.more),
                (1, values.len(), values.len() > 1)
            );
            let from = Some(format!("{p}b"));
            let rest = store.list(p, ListOptions { from, ..at }).await.unwrap();
            assert_eq!(
                rest.count,
                values.iter().filter(|value| **value >= "b").count(),
                "from b at {revision}"
            );
        }
    };
    look().await;
    let before = ListOptions {
        revision: Some(empty),
        ..Default::default()
    };
    assert_eq!(store.list(p, before.clone()).await.unwrap().count, 0);
    store.compact(a1).await.unwrap();
    look().await;
    let Err(StoreError::Compacted { .. }) = store.list(p, before).await else {
        panic!("history is still there")
    };
    let last = write(&store, &format!("{p}a"), Expect::Revision(a2), Write::Delete).await;
    store.compact(last).await.unwrap();
    let left = store
        .list(
            p,
            ListOptions {
                revision: Some(last),
                ..Default::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(keys(&left), ["b", "c"], "compaction leaves the current state");
}

pub async fn snapshots_show_one_revision_whole(store: Shared, p: &str) {
    let names = |snapshot: &Snapshot, from: &str| -> Vec<String> {
        let from = format!("{p}{from}");
        let range = snapshot.range(p, &from);
        range.map(|entry| entry.key[p.len()..].to_owned()).collect()
    };
    assert_eq!(store.snapshot(p).await.unwrap().count(p), 0);
    for name in ["a/1", "a/2", "b/1"] {
        create(&store, &format!("{p}{name}"), name).await;
    }
    let before = store.snapshot(p).await.unwrap();
    assert_eq!(names(&before, ""), ["a/1", "a/2", "b/1"]);
    let from = held_at(&store, p, before.revision()).await.position().unwrap();
    assert_eq!(from.revision, before.revision());
    assert_eq!(names(&before, "a/2"), ["a/2", "b/1"]);
    let gone = before.get(&format!("{p}a/1")).unwrap();
    write(&store, &gone.key, Expect::Revision(gone.mod_revision), Write::Delete).await;
    let newest = create(&store, &format!("{p}c"), "c").await;
    let held = store.held(p).unwrap();
    assert!(
        held.revision() >= before.revision() && held.count(p) >= 2,
        "what is held is no older than what was seen"
    );

    let after = store.snapshot(p).await.unwrap();
    assert!(after.revision() >= newest, "a snapshot shows every answered write");
    assert_eq!(names(&after, ""), ["a/2", "b/1", "c"]);
    assert_eq!((after.count(p), after.count(&format!("{p}a/"))), (3, 1));
    assert_eq!(names(&before, "").len(), 3, "a snapshot does not change");
    assert_eq!((before.count(p), before.count(&format!("{p}a/"))), (3, 2));

    let to = held_at(&store, p, after.revision()).await.revision();
    let told: Vec<_> = store.events(p, from, to, 2).unwrap().iter().map(told).collect();
    assert_eq!((&*told[0].1, &*told[1].1), ("-", "c"));
    assert_eq!(store.events(p, from, to, 1), None, "more events than the limit");
    assert_eq!(store.events(p, from, Revision(to.0 + 1), 9), None, "what is to come");
    let other = Position {
        epoch: Epoch(from.epoch.0 + 1_000_000),
        ..from
    };
    assert_eq!(store.events(p, other, to, 9), None, "another timeline");
}

pub async fn snapshots_share_their_entries_with_reads_and_events(store: Shared, p: &str) {
    let key = &format!("{p}a");
    let begin = store.snapshot(p).await.unwrap().revision();
    let begin = held_at(&store, p, begin).await.position().unwrap();
    let made = create(&store, key, "x").await;
    let of_snapshot = store.snapshot(p).await.unwrap().get(key).unwrap();
    let of_get = entry(&store, key).await.unwrap();
    let told = store.events(p, begin, made, 10).unwrap();
    let [Event::Put { entry: of_event, .. }] = &told[..] else {
        panic!("{told:?}")
    };
    let mut watch = store.watch(p, begin.revision).await.unwrap();
    let watched = events(&mut watch, 1).await;
    let Event::Put { entry: of_watch, .. } = &watched[0] else {
        panic!("{watched:?}")
    };
    for other in [&of_get, of_event, of_watch] {
        assert!(Arc::ptr_eq(&other.held, &of_snapshot.held));
    }
}

pub async fn long_lists_come_whole(store: Shared, p: &str) {
    let value = vec![b'x'; 20_000];
    let makers = (0..8).map(|maker| {
        let (store, value) = (&store, &value);
        async move {
            for n in (maker..600).step_by(8) {
                create(store, &format!("{p}{n:04}"), value).await;
            }
        }
    });
    join_all(makers).await;
    let listed = store.list(p, ListOptions::default()).await.unwrap();
    assert_eq!((listed.entries.len(), listed.count, listed.more), (600, 600, false));
    assert!(listed.entries.is_sorted_by(|a, b| a.key < b.key));
    assert!(listed.entries.iter().all(|entry| entry.value == value));
    let big = vec![b'y'; 1_400_000];
    create(&store, &format!("{p}big"), &big).await;
    assert_eq!(entry(&store, &format!("{p}big")).await.unwrap().value, big);
}

pub async fn revisions_beyond_history_are_refused(store: Shared, p: &str) {
    let key = &format!("{p}a");
    let first = create(&store, key, "1").await;
    let second = create(&store, &format!("{p}b"), "2").await;
    let third = write(&store, key, Expect::Revision(first), put("3")).await;
    let at = |revision| ListOptions {
        revision: Some(revision),
        ..Default::default()
    };

    let wanted = Revision(third.0 + 1);
    match store.list(p, at(wanted)).await {
        Err(StoreError::Future { wanted: named, current }) => assert_eq!((named, current), (wanted, third)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(store.compact(wanted).await, Err(StoreError::Future { .. })));

    store.compact(second).await.unwrap();
    store.compact(second).await.expect("nothing to do");
    store.compact(first).await.expect("nothing to do");
    match store.list(p, at(first)).await {
        Err(StoreError::Compacted { oldest }) => assert_eq!(oldest, second),
        other => panic!("{other:?}"),
    }
    let listed = store.list(p, at(second)).await.unwrap();
    let values: Vec<_> = listed.entries.iter().map(|entry| entry.value.as_ref()).collect();
    assert_eq!(values, [b"1", b"2"]);

    let mut watch = store.watch(p, first).await.expect("revision two is there");
    assert_eq!(
        events(&mut watch, 2).await.iter().map(revision).collect::<Vec<_>>(),
        [second, third]
    );
    let gone = match store.watch(p, Revision(first.0 - 1)).await {
        Ok(mut watch) => next(&mut watch).await.map(drop),
        Err(error) => Err(error),
    };
    match gone {
        Err(StoreError::Compacted { oldest }) => assert_eq!(oldest, second),
        other => panic!("{other:?}"),
    }
}

/// Whoever knows a revision that has not come has it from a timeline that is lost: to wait for it would be to miss all
/// that happens before. Numbers at the ends of their range are no others.
pub async fn nothing_is_read_from_a_revision_to_come(store: Shared, p: &str) {
    const I64: u64 = i64::MAX as u64;
    create(&store, &format!("{p}a"), "1").await;
    for mirrored in [false, true] {
        if mirrored {
            store.snapshot(p).await.unwrap();
        }
        let now = create(&store, &format!("{p}{mirrored}"), "1").await;
        for wanted in [now.0 + 1, now.0 + 1000, I64 - 1, I64, I64 + 1, u64::MAX - 1, u64::MAX].map(Revision) {
            let asked = ListOptions {
                revision: Some(wanted),
                ..Default::default()
            };
            let refusals = [
                store.watch(p, wanted).await.map(drop),
                store.list(p, asked).await.map(drop),
                store.compact(wanted).await,
            ];
            for (which, refusal) in refusals.into_iter().enumerate() {
                match refusal {
                    Err(StoreError::Future { wanted: named, current }) => assert_eq!((named, current), (wanted, now)),
                    other => panic!("{which}: {wanted}: {other:?}"),
                }
            }
            let key = format!("{p}a");
            let written = store.write(&key, Expect::Revision(wanted), put("2")).await.unwrap();
            assert!(matches!(written, Written::Conflict { .. }), "{wanted}: {written:?}");
            let position = store.held_position(p).unwrap_or_default();
            assert_eq!(store.events(p, position, wanted, 9), None);
        }
        let mut watch = store.watch(p, now).await.expect("the newest one");
        let later = create(&store, &format!("{p}later-{mirrored}"), "1").await;
        assert_eq!(revision(&events(&mut watch, 1).await[0]), later);
    }
}

pub async fn keys_end_with_their_lease(store: Shared, p: &str) {
    let (kept, ended, shared) = (&format!("{p}kept"), &format!("{p}ended"), &format!("{p}shared"));
    let granted = Instant::now();
    let lease = store.grant(Duration::from_secs(2)).await.unwrap();
    let under = |value: &'static str| Write::Put {
        value: Bytes::from_static(value.as_bytes()),
        lease: Some(lease),
    };
    let start = write(&store, ended, Expect::Absent, under("1")).await;
    assert_eq!(entry(&store, ended).await.unwrap().lease, Some(lease));
    write(&store, shared, Expect::Absent, under("2")).await;
    let first = write(&store, kept, Expect::Absent, under("3")).await;
    write(&store, kept, Expect::Revision(first), put("4")).await;

    let mut watch = store.watch(p, start).await.unwrap();
    events(&mut watch, 3).await;
    let mut seen: Vec<_> = events(&mut watch, 2).await.iter().map(told).collect();
    assert!(granted.elapsed() >= Duration::from_secs(2), "too early");
    seen.sort();
    assert_eq!(seen[0], (ended.clone(), "-".to_owned(), "1".to_owned()));
    assert_eq!(seen[1], (shared.clone(), "-".to_owned(), "2".to_owned()));
    assert_eq!(entry(&store, ended).await, None);
    let held = entry(&store, kept).await.unwrap();
    assert_eq!(
        (held.value.as_ref(), held.lease),
        (b"4".as_ref(), None),
        "it was taken from its lease"
    );
    let gone = store.write(ended, Expect::Absent, under("5")).await;
    assert!(
        matches!(gone, Err(StoreError::LeaseNotFound(id)) if id == lease),
        "{gone:?}"
    );
}

/// More keys than a store ends at once.
pub async fn many_keys_end_together(store: Shared, p: &str) {
    keys_end_together(store, p, 5_000, Duration::from_secs(6)).await;
}

/// So many keys under a few leases: each ends, and is told once.
pub async fn keys_end_together(store: Shared, p: &str, count: usize, ttl: Duration) {
    const LEASES: usize = 5;
    let leases = join_all((0..LEASES).map(|_| store.grant(ttl))).await;
    let leases: Vec<LeaseId> = leases.into_iter().map(Result::unwrap).collect();
    let start = store.current_revision().await.unwrap();
    let writes = (0..count).map(|n| {
        let (store, key) = (store.clone(), format!("{p}{n:06}"));
        let put = Write::Put {
            value: Bytes::from_static(b"x"),
            lease: Some(leases[n % LEASES]),
        };
        async move { write(&store, &key, Expect::Absent, put).await }
    });
    join_all(writes).await;
    let mut watch = store.watch(p, start).await.unwrap();
    let seen = events(&mut watch, 2 * count).await;
    let gone = seen.iter().filter_map(|event| match event {
        Event::Delete { key, .. } => Some(key.to_string()),
        Event::Put { .. } => None,
    });
    let gone: BTreeSet<String> = gone.collect();
    assert_eq!((seen.len(), gone.len()), (2 * count, count));
    assert!(keys(&store.list(p, ListOptions::default()).await.unwrap()).is_empty());
}

pub async fn unknown_leases_are_refused(store: Shared, p: &str) {
    let before = store.current_revision().await.unwrap();
    let lease = LeaseId(0x7ead_beef);
    let write = Write::Put {
        value: Bytes::from_static(b"x"),
        lease: Some(lease),
    };
    let refused = store.write(&format!("{p}a"), Expect::Absent, write).await;
    assert!(
        matches!(refused, Err(StoreError::LeaseNotFound(id)) if id == lease),
        "{refused:?}"
    );
    assert_eq!(store.current_revision().await.unwrap(), before);
}

pub async fn no_update_is_lost_among_many_writers(store: Shared, p: &str) {
    const WRITERS: usize = 16;
    const UPDATES: usize = 20;
    let key = format!("{p}counter");
    create(&store, &key, "0").await;
    let writers = (0..WRITERS).map(|_| {
        let (store, key) = (store.clone(), key.clone());
        tokio::spawn(async move {
            for _ in 0..UPDATES {
                let mut held = entry(&store, &key).await.unwrap();
                loop {
                    let count: usize = str::from_utf8(&held.value).unwrap().parse().unwrap();
                    let next = put((count + 1).to_string());
                    match store
                        .write(&key, Expect::Revision(held.mod_revision), next)
                        .await
                        .unwrap()
                    {
                        Written::Done { .. } => break,
                        Written::Conflict { current, .. } => held = current.unwrap(),
                    }
                }
            }
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    let held = entry(&store, &key).await.unwrap();
    assert_eq!(held.value.as_ref(), (WRITERS * UPDATES).to_string().as_bytes());
    assert_eq!(held.version as usize, WRITERS * UPDATES + 1);
}

pub async fn a_forgotten_prefix_ends_its_watches_and_begins_anew(store: Shared, p: &str) {
    let (gone, other) = (&format!("{p}gone/"), &format!("{p}gone-not/"));
    let made = create(&store, &format!("{gone}a"), "1").await;
    for prefix in [gone, other] {
        store.snapshot(prefix).await.unwrap();
    }
    let below = &format!("{gone}below/");
    let ends = [gone, below];
    let mut watches = Vec::new();
    for prefix in ends {
        watches.push(store.watch(prefix, made).await.unwrap());
    }
    let mut stays = store.watch(other, made).await.unwrap();
    let written = create(&store, &format!("{below}b"), "1").await;
    held_at(&store, gone, written).await;
    store.forget(gone);
    for watch in &mut watches {
        let mut told = 0;
        loop {
            match next(watch).await {
                Ok(WatchItem::Events(events)) => told += events.len(),
                Ok(WatchItem::Progress(_)) => {}
                Err(StoreError::Closed) => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(told, 1, "what had happened is told before the end");
        assert!(watch.next().await.is_none());
    }
    assert_eq!(entry(&store, &format!("{gone}a")).await.unwrap().mod_revision, made);
    let held = store.snapshot(gone).await.unwrap();
    assert_eq!(held.count(gone), 2);
    let mut again = store.watch(gone, made).await.unwrap();
    assert_eq!(revision(&events(&mut again, 1).await[0]), written);
    create(&store, &format!("{other}c"), "1").await;
    assert_eq!(events(&mut stays, 1).await.len(), 1);
}

pub async fn closing_ends_everything(store: Shared, p: &str) {
    let key = &format!("{p}a");
    let made = create(&store, key, "1").await;
    let mut watch = store.watch(p, made).await.unwrap();
    store.health().await.unwrap();
    store.close().await;
    loop {
        match next(&mut watch).await {
            Ok(WatchItem::Progress(_)) => {}
            Err(StoreError::Closed) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(watch.next().await.is_none(), "the stream ends after its error");
    assert!(matches!(
        store.write(key, Expect::Revision(made), put("2")).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.get(key).await, Err(StoreError::Closed)));
    assert!(matches!(
        store.list(p, ListOptions::default()).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.watch(p, made).await, Err(StoreError::Closed)));
    assert!(matches!(store.current_revision().await, Err(StoreError::Closed)));
    assert!(matches!(
        store.grant(Duration::from_secs(9)).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.health().await, Err(StoreError::Closed)));
    store.close().await;
}
