//! Many keys that change in one transaction of etcd.

use std::collections::BTreeSet;

use etcd_client::{Client, DeleteOptions, PutOptions, Txn, TxnOp};

use super::*;

/// More than any limit of queues and slices.
const MANY: usize = 2500;

fn key(n: usize) -> String {
    format!("/a/ns/{n:04}")
}

/// Puts the keys in one transaction of etcd, under a lease if one is given.
async fn put_together(client: &Client, count: usize, lease: i64) -> Revision {
    let put = |n| TxnOp::put(key(n), "x", Some(PutOptions::new().with_lease(lease)));
    let txn = Txn::new().and_then((0..count).map(put).collect::<Vec<_>>());
    let done = client.kv_client().txn(txn).await.unwrap();
    Revision(done.header().unwrap().revision() as u64)
}

/// What one reader of a watch has.
struct Reader {
    watch: WatchStream,
    keys: BTreeSet<String>,
    upto: Revision,
    /// What it had when it was told that nothing is missing up to a revision.
    marks: Vec<(Revision, BTreeSet<String>)>,
}

impl Reader {
    fn new(watch: WatchStream, upto: Revision) -> Reader {
        Reader {
            watch,
            keys: BTreeSet::new(),
            upto,
            marks: Vec::new(),
        }
    }

    /// Reads until everything up to a revision has come.
    async fn read_until(&mut self, revision: Revision) {
        while self.upto < revision {
            let item = next(&mut self.watch).await.unwrap();
            let before = self.upto;
            match item {
                WatchItem::Progress(revision) => self.upto = revision,
                WatchItem::Events(events) => events.iter().for_each(|event| {
                    assert!(event.revision() > before, "revision {} is cut", event.revision());
                    self.upto = event.revision();
                    match event {
                        Event::Put { entry, .. } => self.keys.insert(entry.key.to_string()),
                        Event::Delete { key, .. } => self.keys.remove(&**key),
                    };
                }),
            }
            self.marks.push((self.upto, self.keys.clone()));
        }
    }
}

fn etcd_with_large_transactions() -> Option<EtcdServer> {
    EtcdServer::start_with("http", |_| vec!["--max-txn-ops".into(), "10000".into()])
}

/// Watches from memory and from etcd, read at once and late, through keys that are made together and end together; each
/// can be taken up again after whatever it was told of.
#[tokio::test]
async fn keys_of_one_transaction_come_whole() {
    let Some(server) = etcd_with_large_transactions() else {
        return;
    };
    let client = connect::client(&server.config()).await.unwrap();
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let start = store.snapshot("/a/").await.unwrap().revision();
    let mut readers = Vec::new();
    for prefix in ["/a/", "/a/ns/", "/"] {
        for _ in 0..2 {
            readers.push(Reader::new(store.watch(prefix, start).await.unwrap(), start));
        }
    }
    let mut last = start;
    for _ in 0..3 {
        put_together(&client, MANY, 0).await;
        let all = DeleteOptions::new().with_prefix();
        let deleted = client.kv_client().delete("/a/", Some(all)).await.unwrap();
        last = Revision(deleted.header().unwrap().revision() as u64);
        store.request_progress().await.unwrap();
        for reader in readers.iter_mut().step_by(2) {
            reader.read_until(last).await;
            assert_eq!(reader.keys.len(), 0);
        }
    }
    for reader in &mut readers {
        reader.read_until(last).await;
        assert_eq!(reader.keys.len(), 0);
    }
    for (upto, keys) in readers.iter().flat_map(|reader| &reader.marks) {
        let watch = store.watch("/a/", *upto).await.unwrap();
        let mut again = Reader::new(watch, *upto);
        again.keys = keys.clone();
        again.read_until(last).await;
        assert_eq!(again.keys.len(), 0, "taken up after {upto}");
    }
}

/// etcd ends all keys of a lease in one revision.
#[tokio::test]
async fn keys_of_one_lease_end_whole() {
    let Some(server) = etcd_with_large_transactions() else {
        return;
    };
    let client = connect::client(&server.config()).await.unwrap();
    let store = EtcdStore::connect(&server.config()).await.unwrap();
    let start = store.snapshot("/a/").await.unwrap().revision();
    let lease = store.grant(Duration::from_secs(3600)).await.unwrap();
    let made = put_together(&client, MANY, lease.0).await;
    let mut readers = Vec::new();
    for _ in 0..2 {
        readers.push(Reader::new(store.watch("/a/", start).await.unwrap(), start));
    }
    readers[0].read_until(made).await;
    assert_eq!(readers[0].keys.len(), MANY);
    client.lease_client().revoke(lease.0).await.unwrap();
    let ended = store.current_revision().await.unwrap();
    assert_eq!(ended.0, made.0 + 1, "one revision");
    for reader in &mut readers {
        reader.read_until(ended).await;
        assert_eq!(reader.keys.len(), 0);
    }
}
