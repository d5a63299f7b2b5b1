//! Streams of etcd that are open and say nothing.

use super::simulated::{Simulated, settle};
use super::*;
use crate::simulation::etcd::cluster::ORDERLY;

/// A stream that answers no more is replaced in time, also while readers ask it all the time.
#[tokio::test(start_paused = true)]
async fn a_mute_stream_is_replaced_while_readers_ask() {
    for pause in [
        Duration::from_millis(300),
        Duration::from_secs(3),
        Duration::from_secs(60),
    ] {
        let etcd = Simulated::begin(1, ORDERLY).await;
        let start = etcd.put("/a/1", "x");
        etcd.store.snapshot("/a/").await.unwrap();
        let mut direct = etcd.store.watch("/", start).await.unwrap();
        let mut mirrored = etcd.store.watch("/a/", start).await.unwrap();
        settle().await;
        etcd.mute();
        etcd.put("/a/2", "x");
        let (store, begin) = (etcd.store.clone(), tokio::time::Instant::now());
        // Memory is behind, so it is asked to come up.
        let reader = tokio::spawn(async move {
            loop {
                assert_eq!(store.snapshot("/a/").await.unwrap().count("/a/"), 2);
                store.request_progress().await.unwrap();
                tokio::time::sleep(pause).await;
            }
        });
        for watch in [&mut direct, &mut mirrored] {
            assert_eq!(keys(watch, 1).await, ["/a/2"]);
        }
        let heard = begin.elapsed();
        assert!(heard < Duration::from_secs(16), "after {heard:?}");
        settle().await;
        assert_eq!(etcd.store.held("/a/").unwrap().count("/a/"), 2);
        reader.abort();
    }
}
