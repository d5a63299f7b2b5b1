//! Compaction that several servers of one etcd take turns at, kube-apiserver among them: whoever raises the version of
//! a common key first compacts to the revision of the turn before.

use std::time::Duration;

use tokio::sync::watch;

use super::calls::Calls;
use super::watch::Signal;
use crate::{Revision, StoreError};

/// The common key; no prefix. Its value is the revision compacted to.
const KEY: &str = "compact_rev_key";

/// What a server knows of the turns.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Turn {
    /// Version of the key.
    version: u64,
    /// The store's revision then.
    revision: Revision,
}

/// Takes part until the store is closed.
pub(super) async fn run(calls: Calls, interval: Duration, mut signal: watch::Receiver<Signal>) {
    let mut turn = Turn::default();
    loop {
        tokio::select! {
            biased;
            _ = signal.wait_for(|signal| signal.closed) => return,
            () = tokio::time::sleep(interval) => {}
        }
        match compact(&calls, turn).await {
            Ok(next) => turn = next,
            Err(error) => tracing::warn!(%error, "compaction of etcd; the next turn tries again"),
        }
    }
}

/// Takes a turn if nobody else has; compacts to where the store was at the last one.
pub(super) async fn compact(calls: &Calls, last: Turn) -> Result<Turn, StoreError> {
    let value = last.revision.to_string();
    let (mine, version, revision) = calls.put_version(KEY, last.version, &value).await?;
    if mine && last.revision.0 > 0 {
        calls.compact(last.revision).await?;
    }
    Ok(Turn { version, revision })
}
