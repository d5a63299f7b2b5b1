//! Members of old versions, which tell progress before events that came first.

use super::simulated::{Simulated, settle};
use super::*;
use crate::simulation::etcd::cluster::{HASTY, ORDERLY};
use crate::simulation::etcd::network::Weather;

fn slow(etcd: &Simulated) {
    etcd.network.set(Weather {
        delay: 300,
        ..Weather::default()
    });
}

/// What an old member says of progress is not believed: lists show what was written, and bookmarks come after events.
#[tokio::test(start_paused = true)]
async fn progress_of_old_members_is_not_believed() {
    let etcd = Simulated::begin(1, HASTY).await;
    let store = &etcd.store;
    let start = etcd.put("/a/0", "x");
    store.snapshot("/a/").await.unwrap();
    let mut watches = [
        store.watch("/a/", start).await.unwrap(),
        store.watch("/", start).await.unwrap(),
    ];
    slow(&etcd);
    for n in 1..30 {
        let made = etcd.put(&format!("/a/{n}"), "x");
        store.request_progress().await.unwrap();
        let listed = store.snapshot("/a/").await.unwrap();
        assert!(listed.revision() >= made && listed.count("/a/") == n + 1);
        for watch in &mut watches {
            let events = loop {
                match next(watch).await.unwrap() {
                    WatchItem::Progress(told) => assert!(told < made, "{told} before the event at {made}"),
                    WatchItem::Events(events) => break events,
                }
            };
            assert_eq!(events[0].revision(), made);
        }
    }
}

/// Nobody waits for an answer that does not come.
#[tokio::test(start_paused = true)]
async fn lists_do_not_wait_for_old_members() {
    for (version, from_memory) in [(HASTY, false), (ORDERLY, true)] {
        let etcd = Simulated::begin(3, version).await;
        etcd.put("/a/0", "x");
        etcd.store.snapshot("/a/").await.unwrap();
        settle().await;
        // Memory does not hear of this one.
        etcd.put("/b/0", "x");
        let begin = tokio::time::Instant::now();
        let listed = etcd.store.snapshot("/a/").await.unwrap();
        assert!(
            begin.elapsed() < Duration::from_millis(100),
            "{version}: {:?}",
            begin.elapsed()
        );
        assert_eq!(listed.position().is_some(), from_memory, "{version}");
    }
}
