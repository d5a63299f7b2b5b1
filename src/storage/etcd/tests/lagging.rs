//! Memory that lags behind etcd, and many who want to know what is there now.

use futures_util::future::join_all;

use super::simulated::{Simulated, settle};
use super::*;
use crate::simulation::etcd::cluster::ORDERLY;
use crate::simulation::etcd::network::Weather;

/// Three pages of a list.
const KEYS: usize = 2500;

/// A store whose memory of `/a/` does not come up any more.
async fn behind() -> Simulated {
    let etcd = Simulated::begin(1, ORDERLY).await;
    for n in 0..KEYS {
        etcd.put(&format!("/a/{}/{n}", n % 10), "x");
    }
    etcd.store.snapshot("/a/").await.unwrap();
    settle().await;
    etcd.mute();
    etcd.put("/a/0/more", "x");
    etcd.network.set(Weather {
        delay: 40,
        ..Weather::default()
    });
    etcd.lists();
    etcd
}

/// All who wait share a read of etcd, also if the first of them leaves.
#[tokio::test(start_paused = true)]
async fn those_who_wait_share_one_read() {
    let etcd = behind().await;
    let store = &etcd.store;
    let first = tokio::time::timeout(Duration::from_millis(400), store.snapshot("/a/"));
    let others = join_all((0..50).map(|_| store.snapshot("/a/")));
    let (_, others) = tokio::join!(first, others);
    for snapshot in others {
        assert_eq!(snapshot.unwrap().count("/a/"), KEYS + 1);
    }
    let lists = etcd.lists().len();
    assert!((3..=6).contains(&lists), "{lists} requests");
}

/// What is shared is not older than whoever gets it.
#[tokio::test(start_paused = true)]
async fn a_shared_read_shows_what_was_written_before() {
    let etcd = Arc::new(behind().await);
    let readers = (0..40).map(|reader| {
        let etcd = etcd.clone();
        tokio::spawn(async move {
            for n in 0..8_u64 {
                tokio::time::sleep(Duration::from_millis(1 + (reader * 37 + n * 11) % 90)).await;
                let key = format!("/a/1/by-{reader}-{n}");
                let made = etcd.put(&key, "x");
                let listed = etcd.store.snapshot("/a/").await.unwrap();
                assert!(listed.revision() >= made && listed.get(&key).is_some(), "{key}");
            }
        })
    });
    for reader in join_all(readers).await {
        reader.unwrap();
    }
    let lists = etcd.lists().len();
    assert!(lists < 40 * 8, "{lists} requests for 320 lists");
}

/// A list of a part reads that part.
#[tokio::test(start_paused = true)]
async fn a_part_is_read_as_a_part() {
    let etcd = behind().await;
    let store = &etcd.store;
    let Recent::Behind(at_least) = store.recent("/a/").await.unwrap() else {
        panic!("memory is not behind")
    };
    let options = |limit| ListOptions {
        at_least: Some(at_least),
        limit,
        ..ListOptions::default()
    };
    let (one, folder, other) = tokio::join!(
        join_all((0..20).map(|_| store.list("/a/", options(1)))),
        join_all((0..20).map(|_| store.list("/a/3/", options(0)))),
        store.list("/a/0/", options(0)),
    );
    for listed in one {
        let listed = listed.unwrap();
        assert_eq!((listed.entries.len(), listed.count, listed.more), (1, KEYS + 1, true));
    }
    for listed in folder {
        assert_eq!(listed.unwrap().entries.len(), KEYS / 10);
    }
    assert_eq!(other.unwrap().entries.len(), KEYS / 10 + 1);
    let mut lists = etcd.lists();
    lists.sort();
    let expected = [("/a/", 1), ("/a/0/", 1000), ("/a/3/", 1000)];
    assert_eq!(lists, expected.map(|(prefix, limit)| (prefix.to_owned(), limit)));
}

/// A read that fails is not tried once more by each who waits, one after the other.
#[tokio::test(start_paused = true)]
async fn a_shared_read_that_fails_is_given_up_by_all() {
    let etcd = behind().await;
    let store = &etcd.store;
    let Recent::Behind(at_least) = store.recent("/a/").await.unwrap() else {
        panic!("memory is not behind")
    };
    etcd.network.set(Weather {
        hangs: 1000,
        ..Weather::default()
    });
    let begin = tokio::time::Instant::now();
    let options = ListOptions {
        at_least: Some(at_least),
        ..ListOptions::default()
    };
    let lists = join_all((0..50).map(|_| store.list("/a/", options.clone()))).await;
    assert!(lists.iter().all(Result::is_err));
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
}

/// While etcd's past is looked at, and while a reader stands still, more happens than any queue holds: memory goes on,
/// and looks at the past once for each stream that broke.
#[tokio::test(start_paused = true)]
async fn a_busy_prefix_is_followed_on_after_a_break() {
    let etcd = Simulated::begin(1, ORDERLY).await;
    for n in 0..KEYS {
        etcd.put(&format!("/a/{n}"), "x");
    }
    let store = &etcd.store;
    store.snapshot("/a/").await.unwrap();
    settle().await;
    let before = store.held_position("/a/").unwrap();
    etcd.network.set(Weather {
        delay: 400,
        ..Weather::default()
    });
    etcd.lists();
    etcd.cluster.restart(Duration::from_millis(50));
    for n in 0..20_000 {
        etcd.put(&format!("/a/{}", n % KEYS), "y");
        if n % 4 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let last = store.current_revision().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let held = store.held_position("/a/").unwrap();
    assert_eq!((held.epoch, held.revision), (before.epoch, last));
    let lists = etcd.lists().len();
    assert!(lists <= 2, "{lists} requests");
}
