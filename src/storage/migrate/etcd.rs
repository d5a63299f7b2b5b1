//! A live etcd as source and as target.

use std::collections::HashSet;
use std::collections::hash_map::{self, HashMap};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Exported, Filler, Options, Progress};
use crate::embedded::offline::Contents;
use crate::etcd::calls::{Calls, ListFailure};
use crate::{Entry, EtcdConfig, Expect, LeaseId, ListOptions, Revision, StoreError, Write, Written};

/// Keys read at once.
const PAGE: usize = 1000;
/// Keys written at once.
const WRITERS: usize = 64;

pub(super) struct Source {
    calls: Calls,
}

impl Source {
    pub async fn connect(config: &EtcdConfig) -> Result<Source, StoreError> {
        let calls = Calls::connect(config).await?;
        calls.current_revision().await?;
        Ok(Source { calls })
    }

    /// Reads everything as it is at the revision of the first page, which it returns.
    pub async fn read(
        &self,
        options: &Options,
        filler: &mut Filler,
        progress: Progress<'_>,
    ) -> Result<Revision, StoreError> {
        let mut page = ListOptions {
            limit: PAGE,
            ..ListOptions::default()
        };
        loop {
            let listed = self.calls.list(&options.prefix, &page).await.map_err(explain)?;
            page.revision = Some(listed.revision);
            page.from = listed.entries.last().map(|last| format!("{}\0", last.key));
            for id in listed.entries.iter().filter_map(|entry| entry.lease) {
                if let hash_map::Entry::Vacant(unknown) = filler.leases.entry(id) {
                    unknown.insert(self.calls.time_left(id).await?);
                }
            }
            filler.add(listed.entries)?;
            progress(filler.keys);
            if !listed.more {
                return Ok(listed.revision);
            }
        }
    }
}

fn explain(failure: ListFailure) -> StoreError {
    match failure {
        ListFailure::Other(error) => error,
        ListFailure::Compacted | ListFailure::Future => {
            StoreError::Unavailable("etcd was compacted while it was read; try again".to_owned())
        }
    }
}

/// Writes all of a store's keys with the prefix.
pub(super) async fn write(
    config: &EtcdConfig,
    contents: &Contents,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Exported, StoreError> {
    let calls = Calls::connect(config).await?;
    let one = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    let there = calls.list(&options.prefix, &one).await.map_err(explain)?.count;
    if there > 0 && !options.overwrite {
        return Err(StoreError::Unavailable(format!(
            "etcd holds {there} keys below {} already, which were not to be overwritten",
            options.prefix
        )));
    }
    let leases = grant(&calls, contents, options).await?;
    let entries = contents.snapshot.range(&options.prefix, "");
    let mut done = Exported {
        keys: 0,
        value_bytes: 0,
    };
    let writes = entries.map(|entry| put(&calls, entry, &leases, options.overwrite));
    let mut writes = stream::iter(writes).buffer_unordered(WRITERS);
    while let Some(bytes) = writes.try_next().await? {
        done.keys += 1;
        done.value_bytes += bytes;
        if done.keys.is_multiple_of(PAGE) {
            progress(done.keys);
        }
    }
    progress(done.keys);
    Ok(done)
}

/// New leases in the place of those that the keys have.
async fn grant(calls: &Calls, contents: &Contents, options: &Options) -> Result<HashMap<LeaseId, LeaseId>, StoreError> {
    let used: HashSet<LeaseId> = contents
        .snapshot
        .range(&options.prefix, "")
        .filter_map(|entry| entry.lease)
        .collect();
    let mut granted = HashMap::new();
    for (id, time) in contents.leases.iter().filter(|(id, _)| used.contains(id)) {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX).max(1);
        granted.insert(*id, calls.grant(seconds).await?);
    }
    Ok(granted)
}

/// Returns how many bytes the value has.
async fn put(
    calls: &Calls,
    entry: Entry,
    leases: &HashMap<LeaseId, LeaseId>,
    overwrite: bool,
) -> Result<u64, StoreError> {
    let lease = entry.lease.and_then(|id| leases.get(&id)).copied();
    let bytes = entry.value.len() as u64;
    if overwrite {
        calls.put(&entry.key, &entry.value, lease).await?;
        return Ok(bytes);
    }
    let write = Write::Put {
        value: entry.value.clone(),
        lease,
    };
    match calls.write(&entry.key, Expect::Absent, &write).await? {
        Written::Done { .. } => Ok(bytes),
        // An earlier attempt of ours may have succeeded without our hearing of it.
        Written::Conflict {
            current: Some(found), ..
        } if found.value == entry.value => Ok(bytes),
        Written::Conflict { .. } => Err(StoreError::Unavailable(format!(
            "etcd: key {} was written meanwhile by someone else",
            entry.key
        ))),
    }
}
