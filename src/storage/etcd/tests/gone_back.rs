//! etcd that was put back to an older state while stores are open, whatever revision it has come to when they reach it
//! again.

use etcd_client::Client;

use super::simulated::{Simulated, settle};
use super::*;
use crate::Epoch;
use crate::simulation::etcd::cluster::ORDERLY;

/// The keys of a folder in memory.
fn held(store: &EtcdStore, folder: &str) -> Vec<String> {
    let held = store.held(folder).expect("memory holds it");
    held.range(folder, folder).map(|entry| entry.key.to_string()).collect()
}

fn epoch(store: &EtcdStore, folder: &str) -> Epoch {
    store.held_position(folder).expect("memory holds it").epoch
}

/// Reads a watch until it ends, and returns why. Before that it may tell progress, and these keys.
async fn end(watch: &mut WatchStream, may_tell: &[&str]) -> StoreError {
    loop {
        match next(watch).await {
            Ok(WatchItem::Progress(_)) => {}
            Ok(WatchItem::Events(events)) => {
                let keys = events.iter().map(|event| match event {
                    Event::Put { entry, .. } => entry.key.to_string(),
                    Event::Delete { key, .. } => key.to_string(),
                });
                keys.for_each(|key| assert!(may_tell.contains(&&*key), "{key}"));
            }
            Err(error) => return error,
        }
    }
}

/// So much as was lost is written again by others, or one less or more, before the store is there again; the terms of
/// the cluster say nothing.
#[tokio::test(start_paused = true)]
async fn a_past_that_has_become_another_is_noticed() {
    for (lost, again) in [(3, 0), (3, 2), (3, 3), (3, 4), (1, 1), (1, 9)] {
        for told in [false, true] {
            let etcd = Simulated::begin(1, ORDERLY).await;
            let store = &etcd.store;
            let kept = etcd.put("/a/kept", "x");
            let mut last = kept;
            for n in 0..lost {
                last = etcd.put(&format!("/a/lost-{n}"), "x");
            }
            store.snapshot("/a/").await.unwrap();
            let before = (epoch(store, "/a/"), store.timeline().unwrap());
            let mut mirrored = store.watch("/a/", last).await.unwrap();
            let from = if told { Revision(last.0 - 1) } else { last };
            let mut direct = store.watch("/", from).await.unwrap();
            settle().await;

            let term = etcd.cluster.state().term + 5;
            etcd.cluster.restore(kept, Duration::from_secs(1), term);
            let mut expected = vec!["/a/kept".to_owned()];
            for n in 0..again {
                etcd.put(&format!("/a/new-{n}"), "x");
                expected.push(format!("/a/new-{n}"));
            }
            let what = format!("{lost} lost, {again} written, told {told}");
            let ended = end(&mut mirrored, &[]).await;
            assert!(matches!(ended, StoreError::Compacted { .. }), "{what}: {ended:?}");
            if told || again < lost {
                let ended = end(&mut direct, &["/a/lost-2", "/a/lost-0"]).await;
                assert!(matches!(ended, StoreError::Compacted { .. }), "{what}: {ended:?}");
            }
            let shown = store.snapshot("/a/").await.unwrap();
            let keys: Vec<_> = shown.range("/a/", "/a/").map(|entry| entry.key.to_string()).collect();
            assert_eq!(keys, expected, "{what}");
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert_eq!(held(store, "/a/"), expected, "{what}");
            assert!(epoch(store, "/a/") > before.0, "{what}");
            assert!(store.is_other_timeline(before.1), "{what}");
            assert!(!store.is_other_timeline(store.timeline().unwrap()));
        }
    }
}

/// The same keys, written again as often: only a revision, or a value, tells them from those that were.
#[tokio::test(start_paused = true)]
async fn keys_that_were_written_anew_are_others() {
    for (lost, again) in [
        (["/a/x", "/b/x"], ["/b/x", "/a/x"]),
        (["/b/x", "/a/x"], ["/b/x", "/a/x"]),
    ] {
        let etcd = Simulated::begin(1, ORDERLY).await;
        let store = &etcd.store;
        etcd.put("/b/x", "kept");
        let kept = etcd.put("/a/x", "kept");
        for key in lost {
            etcd.put(key, "lost");
        }
        store.snapshot("/a/").await.unwrap();
        let mut direct = store.watch("/", kept).await.unwrap();
        assert_eq!(keys(&mut direct, 2).await, lost);
        let term = etcd.cluster.state().term;
        etcd.cluster.restore(kept, Duration::from_secs(1), term + 1);
        for key in again {
            etcd.put(key, "other");
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let entry = store.held("/a/").unwrap().get("/a/x").unwrap();
        assert_eq!((&entry.value[..], entry.version), (&b"other"[..], 2));
        let ended = end(&mut direct, &[]).await;
        assert!(matches!(ended, StoreError::Compacted { .. }), "{ended:?}");
    }
}

/// A stream that breaks costs nobody anything, as long as etcd is what it was.
#[tokio::test(start_paused = true)]
async fn etcd_that_was_away_is_no_other() {
    let etcd = Simulated::begin(3, ORDERLY).await;
    let store = &etcd.store;
    for n in 0..3 {
        etcd.put(&format!("/a/{n}"), "x");
    }
    let start = store.snapshot("/a/").await.unwrap().revision();
    let before = (epoch(store, "/a/"), store.timeline());
    let (mut direct, mut mirrored) = (
        store.watch("/", start).await.unwrap(),
        store.watch("/a/", start).await.unwrap(),
    );
    for n in 3..9 {
        etcd.cluster.restart(Duration::from_secs(n));
        settle().await;
        assert!(store.recall("/a/", "/a/0").is_none(), "nobody knows now");
        etcd.put(&format!("/a/{n}"), "x");
        for watch in [&mut direct, &mut mirrored] {
            assert_eq!(keys(watch, 1).await, [format!("/a/{n}")]);
        }
        settle().await;
        assert!(store.recall("/a/", "/a/0").is_some());
    }
    assert_eq!((epoch(store, "/a/"), store.timeline()), before);
}

/// Whoever compacts while a store is away takes its means to look; then it reads again, and says nothing of the
/// timeline.
#[tokio::test(start_paused = true)]
async fn a_past_that_is_forgotten_is_no_other() {
    let etcd = Simulated::begin(1, ORDERLY).await;
    let store = &etcd.store;
    let start = etcd.put("/a/1", "x");
    store.snapshot("/a/").await.unwrap();
    let before = (epoch(store, "/a/"), store.timeline());
    let mut mirrored = store.watch("/a/", start).await.unwrap();
    etcd.cluster.restart(Duration::from_secs(2));
    let later = etcd.put("/a/2", "x");
    etcd.cluster.compact(later).unwrap_or_else(|_| panic!("not compacted"));
    let ended = end(&mut mirrored, &[]).await;
    assert!(matches!(ended, StoreError::Compacted { .. }), "{ended:?}");
    assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), 2);
    assert!(epoch(store, "/a/") > before.0);
    assert_eq!(store.timeline(), before.1);
}

/// Before its streams have broken, a request may be the first to see that etcd has gone back: nothing of memory is
/// shown from then on.
#[tokio::test(start_paused = true)]
async fn whoever_sees_it_first_tells_all() {
    let etcd = Simulated::begin(1, ORDERLY).await;
    let store = &etcd.store;
    let kept = etcd.put("/a/kept", "x");
    let last = etcd.put("/a/lost", "x");
    etcd.put("/b/lost", "x");
    for folder in ["/a/", "/b/"] {
        store.snapshot(folder).await.unwrap();
    }
    let mut mirrored = store.watch("/b/", last).await.unwrap();
    assert_eq!(keys(&mut mirrored, 1).await, ["/b/lost"]);
    // Streams that say nothing more don't break either.
    etcd.mute();
    etcd.cluster.restore(kept, Duration::ZERO, 9);
    assert_eq!(held(store, "/b/"), ["/b/lost"], "nobody knows yet");
    assert_eq!(store.get("/x").await.unwrap().revision, kept);
    assert!(store.held("/a/").is_none() && store.held("/b/").is_none());
    assert!(store.recall("/a/", "/a/lost").is_none());
    assert_eq!(store.snapshot("/b/").await.unwrap().count("/b/"), 0);
    let ended = end(&mut mirrored, &[]).await;
    assert!(matches!(ended, StoreError::Compacted { .. }), "{ended:?}");
}

/// A watch that is asked for while etcd goes back does not go on from a revision that is lost.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_opened_meanwhile_is_refused() {
    let etcd = Simulated::begin(1, ORDERLY).await;
    let kept = etcd.put("/a/kept", "x");
    let last = etcd.put("/a/lost", "x");
    assert_eq!(etcd.store.current_revision().await.unwrap(), last);
    etcd.cluster.restore(kept, Duration::from_secs(1), 2);
    let store = etcd.store.clone();
    let watch = tokio::spawn(async move { store.watch("/", last).await });
    for n in 0..5 {
        etcd.put(&format!("/a/new-{n}"), "x");
    }
    let refused = watch.await.unwrap().err();
    assert!(matches!(refused, Some(StoreError::Compacted { .. })), "{refused:?}");
}

async fn put(client: &Client, key: &str) {
    client.kv_client().put(key, "other", None).await.unwrap();
}

/// A real etcd whose files are put back. Others reach it before the store does, and write as much as was lost.
#[tokio::test]
async fn files_that_were_put_back_and_written_to_are_noticed() {
    const LOST: usize = 20;
    for again in [LOST - 1, LOST, LOST + 5] {
        let Some(mut server) = EtcdServer::start() else { return };
        let store = EtcdStore::connect(&server.config()).await.unwrap();
        write(&store, "/a/kept", Expect::Absent, "x").await;
        server.stop();
        let (data, older) = (server.dir().join("data"), server.dir().join("older"));
        copy(&data, &older);
        server.restart();
        while store.health().await.is_err() {}
        let mut last = Revision(0);
        for n in 0..LOST {
            last = write(&store, &format!("/a/lost-{n}"), Expect::Absent, "x").await;
        }
        assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), LOST + 1);
        let before = (epoch(&store, "/a/"), store.timeline().unwrap());
        let mut mirrored = store.watch("/a/", last).await.unwrap();
        let mut direct = store.watch("/", Revision(last.0 - 1)).await.unwrap();
        assert_eq!(keys(&mut direct, 1).await, [format!("/a/lost-{}", LOST - 1)]);

        server.stop();
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::rename(&older, &data).unwrap();
        server.restart_elsewhere();
        let client = connect::client(&server.config()).await.unwrap();
        for n in 0..again {
            put(&client, &format!("/a/new-{n}")).await;
        }
        server.stop();
        server.restart_where_it_was();
        for watch in [&mut direct, &mut mirrored] {
            let ended = end(watch, &[]).await;
            assert!(matches!(ended, StoreError::Compacted { .. }), "{again}: {ended:?}");
        }
        assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), again + 1);
        while store.held("/a/").is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(held(&store, "/a/").len(), again + 1);
        assert!(epoch(&store, "/a/") > before.0);
        assert!(store.is_other_timeline(before.1));
    }
}
