//! A disk that refuses writes, and history that goes by itself.

use std::time::Duration;

use futures_util::StreamExt;

use super::super::writer::Command;
use super::{EmbeddedStore, all, open, write};
use crate::{Event, Expect, HistoryLimits, ListOptions, Store, StoreError, WatchItem, Write};

#[tokio::test]
async fn a_full_disk_stops_writes_only_and_only_while_it_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let first = write(&store, "/a", Expect::Absent, Some("1")).await;
    let mut watch = store.watch("/", first).await.unwrap();
    let big = || Write::Put {
        value: vec![b'x'; 1 << 20].into(),
        lease: None,
    };

    let pages = async |pages| assert!(store.queue.send(Command::Fault { pages }).await.is_ok());
    pages(1).await;
    for _ in 0..3 {
        let refused = store.write("/big", Expect::Absent, big()).await;
        let Err(StoreError::Unavailable(reason)) = refused else {
            panic!("{refused:?}")
        };
        assert!(reason.contains("store.db") && reason.contains("full"), "{reason}");
        assert!(store.health().await.is_err());
        assert_eq!(all(&store, None).await.len(), 1, "reads go on, without what failed");
        assert_eq!(store.current_revision().await.unwrap(), first);
    }
    pages(1 << 30).await;
    healed(&store).await;
    let second = write(&store, "/a", Expect::Revision(first), Some("2")).await;
    assert_eq!(second.0, first.0 + 1);
    store.health().await.unwrap();
    loop {
        match watch.next().await.unwrap().unwrap() {
            WatchItem::Progress(_) => {}
            WatchItem::Events(events) => {
                assert!(matches!(&events[..], [Event::Put { entry, .. }] if entry.mod_revision == second));
                break;
            }
        }
    }
    store.close().await;
    let entries = all(&open(dir.path()).unwrap(), None).await;
    assert_eq!(entries.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), ["/a"]);
}

#[tokio::test]
async fn the_store_heals_without_being_asked() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store.queue.send(Command::Fault { pages: 1 }).await.ok().unwrap();
    let big = Write::Put {
        value: vec![b'x'; 1 << 20].into(),
        lease: None,
    };
    store.write("/big", Expect::Absent, big).await.unwrap_err();
    store.queue.send(Command::Fault { pages: 1 << 30 }).await.ok().unwrap();
    healed(&store).await;
}

async fn healed(store: &EmbeddedStore) {
    for _ in 0..100 {
        if store.health().await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("still faulty: {:?}", store.health().await);
}

#[tokio::test]
async fn history_within_its_limits_is_kept_and_the_rest_goes() {
    let dir = tempfile::tempdir().unwrap();
    let limits = HistoryLimits {
        age: None,
        bytes: 100_000,
    };
    let store = EmbeddedStore::open(dir.path(), limits).unwrap();
    let value = "x".repeat(1000);
    let mut last = write(&store, "/a", Expect::Absent, Some(&value)).await;
    let first = last;
    for _ in 0..200 {
        last = write(&store, "/a", Expect::Revision(last), Some(&value)).await;
    }
    for _ in 0..100 {
        let old = ListOptions {
            revision: Some(first),
            ..Default::default()
        };
        if let Err(StoreError::Compacted { oldest }) = store.list("/", old).await {
            assert!(oldest > first && oldest <= last);
            let recent = ListOptions {
                revision: Some(oldest),
                ..Default::default()
            };
            assert_eq!(store.list("/", recent).await.unwrap().entries.len(), 1);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("history was never cut");
}

/// The file of a store that held much and holds little now becomes small again.
#[tokio::test]
async fn unused_space_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let value = "x".repeat(100_000);
    let file = dir.path().join("store.db");
    let size = || file.metadata().unwrap().len();
    let mut last = write(&store, "/a", Expect::Absent, Some(&value)).await;
    // What is written reaches the file when the log has grown.
    for _ in 0..2000 {
        if size() > 2_000_000 {
            break;
        }
        last = write(&store, "/a", Expect::Revision(last), Some(&value)).await;
    }
    assert!(size() > 2_000_000, "{}", size());
    store.compact(last).await.unwrap();
    for _ in 0..300 {
        if size() < 1_000_000 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} bytes at the end", size());
}

/// Compaction ends a watch whose reader has fallen behind history, and no other.
#[tokio::test]
async fn a_watch_left_behind_by_history_ends_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let mut last = write(&store, "/a", Expect::Absent, Some("x")).await;
    let mut slow = store.watch("/", last).await.unwrap();
    let mut idle = store.watch("/other/", last).await.unwrap();
    for _ in 0..3000 {
        last = write(&store, "/a", Expect::Revision(last), Some("x")).await;
    }
    store.compact(last).await.unwrap();
    let end = loop {
        match slow.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(
        matches!(end, StoreError::Compacted { oldest } if oldest == last),
        "{end:?}"
    );
    assert!(slow.next().await.is_none());
    write(&store, "/other/a", Expect::Absent, Some("x")).await;
    loop {
        match idle.next().await.unwrap().unwrap() {
            WatchItem::Progress(_) => {}
            WatchItem::Events(events) => return assert_eq!(events.len(), 1),
        }
    }
}

/// Space that the log has is written faster than space that it has to find.
#[tokio::test]
async fn the_log_begins_anew_while_writes_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let value = "x".repeat(64 << 10);
    let mut last = write(&store, "/a", Expect::Absent, Some(&value)).await;
    // so many that their log stays below the limit at which the writer empties it
    for n in 0..1_500 {
        if store.shared.progress.now().round > 0 {
            break;
        }
        last = write(&store, "/a", Expect::Revision(last), Some(&value)).await;
        if n % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert!(
        store.shared.progress.now().round > 0,
        "{:?}",
        store.shared.progress.now()
    );
    store.close().await;
    let store = open(dir.path()).unwrap();
    assert_eq!(store.current_revision().await.unwrap(), last);
}
