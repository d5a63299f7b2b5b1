//! Reads of etcd that several requests share: what many ask for at once, because memory lags behind, is read once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;

use super::calls::{Calls, ListFailure};
use crate::{ListOptions, Listed, Revision, Snapshot, StoreError};

/// Reads that are under way.
#[derive(Default)]
pub(super) struct Reads {
    under_way: Mutex<HashMap<Part, UnderWay>>,
}

/// What is read: a prefix from a key on, and how many keys of it at most.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Part {
    prefix: String,
    from: Option<String>,
    limit: usize,
}

/// A read of the newest state.
pub(super) struct Read {
    pub listed: Listed,
    snapshot: OnceLock<Snapshot>,
}

impl Read {
    /// The same as a snapshot, made for the first who asks.
    pub fn snapshot(&self) -> Snapshot {
        let make = || Snapshot::of(self.listed.entries.clone(), self.listed.revision);
        self.snapshot.get_or_init(make).clone()
    }
}

type Outcome = Result<Arc<Read>, StoreError>;
type UnderWay = watch::Receiver<Option<Outcome>>;

impl Reads {
    /// A list that shows a revision which is `at_least` this one, from a read that may have begun before. Of the
    /// options the revision says nothing.
    pub async fn list(
        self: &Arc<Self>,
        calls: &Calls,
        prefix: &str,
        options: &ListOptions,
        at_least: Revision,
    ) -> Outcome {
        let part = Part {
            prefix: prefix.to_owned(),
            from: options.from.clone(),
            limit: options.limit,
        };
        let mut failed = false;
        loop {
            let (mut read, is_own) = self.join(calls, &part);
            let done = read.wait_for(Option::is_some).await.map(|done| done.clone());
            let outcome = done.ok().flatten().unwrap_or_else(|| Err(StoreError::Closed));
            match outcome {
                // One that began later than the request is new enough, whatever etcd has become.
                outcome if is_own => return outcome,
                Ok(read) if read.listed.revision >= at_least => return Ok(read),
                // Another attempt may be luckier, but not one of each who waits, one after the other.
                Err(error) if failed => return Err(error),
                Err(_) => failed = true,
                Ok(_) => {}
            }
        }
    }

    /// The read that is under way, or a new one.
    fn join(self: &Arc<Self>, calls: &Calls, part: &Part) -> (UnderWay, bool) {
        let mut under_way = self.lock();
        if let Some(read) = under_way.get(part) {
            return (read.clone(), false);
        }
        let (tell, told) = watch::channel(None);
        under_way.insert(part.clone(), told.clone());
        drop(under_way);
        let (reads, own, part) = (self.clone(), calls.clone(), part.clone());
        // Whoever asked first may leave: the others go on waiting.
        calls.tasks.spawn_at_home(async move {
            let outcome = read(&own, &part).await;
            reads.lock().remove(&part);
            tell.send_replace(Some(outcome));
        });
        (told, true)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Part, UnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read(calls: &Calls, part: &Part) -> Outcome {
    let options = ListOptions {
        from: part.from.clone(),
        limit: part.limit,
        ..ListOptions::default()
    };
    let listed = calls
        .list(&part.prefix, &options)
        .await
        .map_err(|failure| match failure {
            ListFailure::Other(error) => error,
            ListFailure::Compacted | ListFailure::Future => {
                StoreError::Unavailable("etcd: compaction overtook the list".to_owned())
            }
        })?;
    let snapshot = OnceLock::new();
    Ok(Arc::new(Read { listed, snapshot }))
}
