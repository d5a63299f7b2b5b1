//! Promises of the embedded store beyond the contract: it survives, or says what is wrong.

mod crash;
mod damage;
mod disk;
#[cfg(target_os = "linux")]
mod faults;
mod files;
mod offline;
mod reopen;
mod sequences;

use std::path::Path;

use bytes::Bytes;

use super::EmbeddedStore;
use crate::{Entry, Expect, HistoryLimits, ListOptions, Revision, Store, StoreError, Write, Written};

const NEVER: HistoryLimits = HistoryLimits {
    age: None,
    bytes: usize::MAX,
};

fn open(dir: &Path) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(dir, NEVER)
}

async fn write(store: &EmbeddedStore, key: &str, expect: Expect, value: Option<&str>) -> Revision {
    let write = value.map_or(Write::Delete, |value| Write::Put {
        value: Bytes::from(value.to_owned()),
        lease: None,
    });
    match store.write(key, expect, write).await.unwrap() {
        Written::Done { revision, .. } => revision,
        conflict => panic!("{conflict:?}"),
    }
}

async fn all(store: &EmbeddedStore, revision: Option<Revision>) -> Vec<Entry> {
    store
        .list(
            "/",
            ListOptions {
                revision,
                ..Default::default()
            },
        )
        .await
        .unwrap()
        .entries
}
