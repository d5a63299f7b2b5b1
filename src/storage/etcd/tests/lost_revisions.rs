//! Revisions that clients were told of before etcd was put back by its files, so that no number tells of it, and bring
//! back while or after a store finds it out: they are answered with 410 or not at all, never from another past.

use super::simulated::{Simulated, settle};
use super::*;
use crate::simulation::etcd::cluster::ORDERLY;

/// Long enough for streams to be replaced.
const REPLACED: Duration = Duration::from_secs(20);

/// A store that holds `/a/`, and an etcd with two more changes of it.
async fn begin() -> (Simulated, Revision, Revision) {
    let etcd = Simulated::begin(1, ORDERLY).await;
    let kept = etcd.put("/a/1", "kept");
    etcd.store.snapshot("/a/").await.unwrap();
    etcd.put("/a/2", "lost");
    let last = etcd.put("/a/3", "lost");
    (etcd, kept, last)
}

/// Puts etcd back; others write so much before it is reached again.
fn put_back(etcd: &Simulated, to: Revision, away: Duration, again: usize) {
    let term = etcd.cluster.term();
    etcd.cluster.restore(to, away, term);
    for n in 0..again {
        etcd.put(&format!("/a/new-{n}"), "other");
    }
}

fn at(revision: Revision) -> ListOptions {
    ListOptions {
        revision: Some(revision),
        ..ListOptions::default()
    }
}

fn is_compacted<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Compacted { .. }))
}

/// The request is tried again until etcd is there, and gets its answer before anybody has looked at etcd's past.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_asked_for_before_is_refused() {
    for again in [2, 5] {
        let (etcd, kept, last) = begin().await;
        settle().await;
        let store = etcd.store.clone();
        etcd.cluster.restart(Duration::from_millis(50));
        let page = tokio::spawn(async move { store.list("/a/", at(last)).await });
        tokio::task::yield_now().await;
        put_back(&etcd, kept, Duration::from_millis(60), again);
        let page = page.await.unwrap();
        assert!(is_compacted(&page), "{again}: {page:?}");
    }
}

/// A stream that is mute does not break when etcd goes away: it has to say something first.
#[tokio::test(start_paused = true)]
async fn a_mute_stream_is_no_proof() {
    let (etcd, kept, last) = begin().await;
    settle().await;
    assert_eq!(etcd.store.list("/a/", at(last)).await.unwrap().count, 3);
    etcd.mute();
    put_back(&etcd, kept, Duration::ZERO, 3);
    let page = etcd.store.list("/a/", at(last)).await;
    assert!(matches!(page, Err(StoreError::Unavailable(_))), "{page:?}");
    tokio::time::sleep(REPLACED).await;
    let page = etcd.store.list("/a/", at(last)).await;
    assert!(is_compacted(&page), "{page:?}");
}

/// Memory is at the revision that etcd tells, but of another past: that etcd has elected a leader says so.
#[tokio::test(start_paused = true)]
async fn a_list_of_now_is_not_of_what_a_mute_stream_told() {
    let (etcd, kept, last) = begin().await;
    settle().await;
    let shown = |snapshot: Snapshot| -> Vec<String> {
        let entries = snapshot.range("/a/", "/a/");
        entries.map(|entry| entry.key.to_string()).collect()
    };
    let before = etcd.store.snapshot("/a/").await.unwrap();
    assert_eq!((before.revision(), shown(before).len()), (last, 3));
    etcd.mute();
    let term = etcd.cluster.term_at(kept) + 1;
    etcd.cluster.restore(kept, Duration::ZERO, term);
    etcd.put("/a/new-0", "other");
    assert_eq!(etcd.put("/a/new-1", "other"), last);
    let now = etcd.store.snapshot("/a/").await.unwrap();
    assert_eq!(now.revision(), last);
    assert_eq!(shown(now), ["/a/1", "/a/new-0", "/a/new-1"]);
}

/// What memory has not come to when its stream breaks is not vouched for by a stream that goes on from there.
#[tokio::test(start_paused = true)]
async fn a_revision_that_memory_had_not_reached_is_lost() {
    let (etcd, _, kept) = begin().await;
    settle().await;
    let told = etcd.put("/b/1", "lost");
    assert_eq!(etcd.store.current_revision().await.unwrap(), told);
    put_back(&etcd, kept, Duration::from_secs(1), 3);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(etcd.store.held("/a/").unwrap().count("/a/"), 6);
    let page = etcd.store.list("/a/", at(told)).await;
    assert!(is_compacted(&page), "{page:?}");
    let watch = etcd.store.watch("/a/", told).await.map(drop);
    assert!(is_compacted(&watch), "{watch:?}");
    let watch = etcd.store.watch("/a/", kept).await.map(drop);
    assert!(watch.is_ok(), "memory had reached it");
}

/// Where etcd is what it was, and nobody writes: the present revision, which a client reads anew, is no longer refused
/// after a while.
#[tokio::test(start_paused = true)]
async fn the_present_revision_is_told_anew() {
    let (etcd, ..) = begin().await;
    settle().await;
    let told = etcd.put("/b/1", "x");
    assert_eq!(etcd.store.current_revision().await.unwrap(), told);
    etcd.cluster.restart(Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(etcd.store.snapshot("/a/").await.unwrap().revision(), told);
    let watch = etcd.store.watch("/a/", told).await.map(drop);
    assert!(is_compacted(&watch), "{watch:?}");
    tokio::time::sleep(REPLACED).await;
    assert!(etcd.store.watch("/a/", told).await.is_ok());
    assert_eq!(etcd.store.list("/a/", at(told)).await.unwrap().count, 3);
}

/// Compaction may leave a revision that a watch can begin after, and none at which memory could be compared.
#[tokio::test(start_paused = true)]
async fn a_past_that_nothing_tells_of_is_not_gone_on_from() {
    let (etcd, kept, last) = begin().await;
    settle().await;
    put_back(&etcd, kept, Duration::from_secs(2), 5);
    let oldest = Revision(last.0 + 1);
    etcd.cluster.compact(oldest).unwrap_or_else(|_| panic!("not compacted"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(etcd.store.snapshot("/a/").await.unwrap().count("/a/"), 6);
    let watch = etcd.store.watch("/a/", last).await.map(drop);
    assert!(is_compacted(&watch), "{watch:?}");
}

/// A watch that waits until it is known what etcd is.
#[tokio::test(start_paused = true)]
async fn a_watch_that_waits_meanwhile_is_refused() {
    let (etcd, kept, last) = begin().await;
    settle().await;
    etcd.cluster.restart(Duration::from_secs(2));
    settle().await;
    let store = etcd.store.clone();
    let watch = tokio::spawn(async move { store.watch("/a/", last).await.map(drop) });
    settle().await;
    put_back(&etcd, kept, Duration::from_secs(2), 2);
    let watch = watch.await.unwrap();
    assert!(is_compacted(&watch), "{watch:?}");
}
