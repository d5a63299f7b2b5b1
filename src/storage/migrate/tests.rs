//! A real etcd as source and target: every key and every byte comes along.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::{Exported, Options, from_etcd, from_snapshot, to_etcd};
use crate::embedded::{EmbeddedStore, offline};
use crate::etcd::EtcdStore;
use crate::etcd::connect;
use crate::tests::etcd_server::EtcdServer;
use crate::{Entry, Expect, HistoryLimits, LeaseId, ListOptions, Revision, Store, Write, Written};

const KEYS: usize = 2500;

fn options(overwrite: bool) -> Options {
    Options {
        prefix: "/registry/".to_owned(),
        overwrite,
    }
}

/// Bytes of any kind, some of them too long for a page of the database.
fn value(n: usize) -> Bytes {
    let length = if n.is_multiple_of(500) { 100_000 } else { n % 700 };
    (0..length).map(|at| (at * 31 + n) as u8).collect()
}

async fn put(store: &dyn Store, key: &str, expect: Expect, value: Bytes, lease: Option<LeaseId>) -> Revision {
    match store.write(key, expect, Write::Put { value, lease }).await.unwrap() {
        Written::Done { revision, .. } => revision,
        conflict => panic!("{conflict:?}"),
    }
}

/// Keys that were changed, deleted, made again, under a lease and elsewhere.
async fn fill(store: &EtcdStore) {
    let mut writes = Vec::new();
    for n in 0..KEYS {
        writes.push(async move {
            put(
                store,
                &format!("/registry/things/{n:05}"),
                Expect::Absent,
                value(n),
                None,
            )
            .await
        });
    }
    let made = futures_util::future::join_all(writes).await;
    for (n, revision) in made.iter().enumerate().take(50) {
        let key = format!("/registry/things/{n:05}");
        let changed = put(store, &key, Expect::Revision(*revision), value(n + 1), None).await;
        if n % 5 == 0 {
            store
                .write(&key, Expect::Revision(changed), Write::Delete)
                .await
                .unwrap();
        }
        if n % 10 == 0 {
            put(store, &key, Expect::Absent, value(n + 2), None).await;
        }
    }
    let lease = store.grant(Duration::from_secs(3000)).await.unwrap();
    put(store, "/registry/events/one", Expect::Absent, value(9), Some(lease)).await;
    put(store, "/elsewhere", Expect::Absent, value(1), None).await;
}

async fn all(store: &dyn Store) -> Vec<Entry> {
    store.list("/registry/", ListOptions::default()).await.unwrap().entries
}

fn values(entries: &[Entry]) -> BTreeMap<String, Bytes> {
    entries
        .iter()
        .map(|entry| (entry.key.to_string(), entry.value.clone()))
        .collect()
}

fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open(dir, HistoryLimits::default()).unwrap()
}

/// All that the folder's store has is what etcd has, and the store goes on from there.
async fn compare(dir: &Path, there: &[Entry], revision: Revision) {
    offline::check(dir).unwrap();
    let here = open(dir);
    let entries = all(&here).await;
    assert_eq!(entries.len(), there.len());
    for (ours, theirs) in entries.iter().zip(there) {
        assert_eq!((&ours.key, &ours.value), (&theirs.key, &theirs.value));
        let numbers = |entry: &Entry| (entry.mod_revision, entry.create_revision, entry.version, entry.lease);
        assert_eq!(numbers(ours), numbers(theirs), "{}", ours.key);
    }
    assert!(here.get("/elsewhere").await.unwrap().entry.is_none());
    let next = put(&here, "/registry/next", Expect::Absent, Bytes::new(), None).await;
    assert_eq!(next, Revision(revision.0 + 1));
    here.close().await;
}

fn refusal<T: std::fmt::Debug>(result: Result<T, crate::StoreError>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_from_etcd_and_back() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = EtcdStore::connect(&server.config()).await.unwrap();
    fill(&etcd).await;
    let there = all(&etcd).await;
    let revision = etcd.current_revision().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut carried = Vec::new();
    let imported = from_etcd(&server.config(), dir.path(), &options(false), &mut |keys| {
        carried.push(keys)
    })
    .await;
    let imported = imported.unwrap();
    assert_eq!((imported.report.keys, imported.expired), (there.len(), 0));
    assert_eq!(carried, [1000, 2000, there.len()]);
    compare(dir.path(), &there, revision).await;

    let again = from_etcd(&server.config(), dir.path(), &options(false), &mut |_| {}).await;
    assert!(refusal(again).ends_with(&format!(
        "holds {} keys already, which were not to be overwritten",
        there.len() + 1
    )));
    let again = from_etcd(&server.config(), dir.path(), &options(true), &mut |_| {}).await;
    assert_eq!(again.unwrap().report.keys, there.len());

    let Some(other) = EtcdServer::start() else { return };
    let exported = to_etcd(dir.path(), &other.config(), &options(false), &mut |_| {}).await;
    let value_bytes = there.iter().map(|entry| entry.value.len() as u64).sum();
    let keys = there.len();
    assert_eq!(exported.unwrap(), Exported { keys, value_bytes });
    let back = EtcdStore::connect(&other.config()).await.unwrap();
    let returned = all(&back).await;
    assert_eq!(values(&returned), values(&there));
    assert_eq!(returned.iter().filter(|entry| entry.lease.is_some()).count(), 1);
    let again = to_etcd(dir.path(), &other.config(), &options(false), &mut |_| {}).await;
    assert!(refusal(again).ends_with(&format!(
        "etcd holds {keys} keys below /registry/ already, which were not to be overwritten"
    )));
    let again = to_etcd(dir.path(), &other.config(), &options(true), &mut |_| {}).await;
    assert_eq!(again.unwrap().keys, keys);
    assert_eq!(values(&all(&back).await), values(&there));
}

async fn snapshot(server: &EtcdServer, file: &Path) {
    let client = connect::client(&server.config()).await.unwrap();
    let mut stream = client.maintenance_client().snapshot().await.unwrap();
    let mut file = std::fs::File::create(file).unwrap();
    while let Some(part) = stream.message().await.unwrap() {
        file.write_all(part.blob()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_comes_from_a_snapshot_that_is_whole() {
    let Some(server) = EtcdServer::start() else { return };
    let etcd = EtcdStore::connect(&server.config()).await.unwrap();
    fill(&etcd).await;
    // What compaction removes is not looked for.
    etcd.compact(Revision(KEYS as u64 + 20)).await.unwrap();
    let there = all(&etcd).await;
    let revision = etcd.current_revision().await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("snapshot.db");
    snapshot(&server, &file).await;
    let dir = files.path().join("store");
    let imported = from_snapshot(&file, &dir, &options(false), &mut |_| {}).unwrap();
    assert_eq!(imported.report.keys, there.len());
    compare(&dir, &there, revision).await;

    let bytes = std::fs::read(&file).unwrap();
    let broken = files.path().join("broken.db");
    let attempt = |bytes: &[u8]| {
        std::fs::write(&broken, bytes).unwrap();
        refusal(from_snapshot(
            &broken,
            &files.path().join("other"),
            &options(false),
            &mut |_| {},
        ))
    };
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    assert!(attempt(&flipped).ends_with("its checksum is wrong"));
    assert!(attempt(&bytes[..bytes.len() - 100]).contains("not a snapshot of etcd"));
    assert!(attempt(&[7; 544]).ends_with("its checksum is wrong"));
    let sum = ring::digest::digest(&ring::digest::SHA256, &[7; 512]);
    assert!(attempt(&[&[7; 512], sum.as_ref()].concat()).ends_with("not a database of etcd"));
}

#[tokio::test]
async fn a_source_that_is_not_there_leaves_the_target_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("store");
    let missing = from_snapshot(&dir.path().join("none"), &target, &options(false), &mut |_| {});
    assert!(refusal(missing).contains("none: "));
    let store = open(&target);
    assert_eq!(all(&store).await, []);
    store.close().await;
}
