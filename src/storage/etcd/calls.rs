//! Single requests to etcd, with a time limit and retries.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::api::{Api, ApiError, Condition, Range, Ranged, Refusal, Txn, TxnDone};
use super::grpc::Grpc;
use super::members::Members;
use super::tasks::Tasks;
use super::witness::{Landmark, Witness};
use crate::{Entry, EtcdConfig, Expect, LeaseId, ListOptions, Listed, Revision, StoreError, Write, Written};

/// A request is given up after this time, retries included …
pub(super) const REQUEST: Duration = Duration::from_secs(5);
/// … and a page of a list, which may be large, after this one.
pub(super) const PAGE_REQUEST: Duration = Duration::from_secs(10);
/// The first pause before another attempt; each one doubles it.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Keys in one answer at most.
const PAGE: usize = 1000;
/// A list that compaction overtakes begins again so often.
const LIST_ATTEMPTS: usize = 3;
/// A health check is given up after this time, if its caller has that much patience.
const HEALTH: Duration = Duration::from_secs(10);

/// Runs an attempt until it succeeds, fails for good, or time is up.
async fn call<T, F: Future<Output = Result<T, ApiError>>>(
    retry: impl Fn(&ApiError) -> bool,
    attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    call_within(REQUEST, retry, attempt).await
}

async fn call_within<T, F: Future<Output = Result<T, ApiError>>>(
    limit: Duration,
    retry: impl Fn(&ApiError) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    let mut last = None;
    let tries = async {
        let mut pause = PAUSE;
        loop {
            match attempt().await {
                Err(error) if retry(&error) => last = Some(error),
                done => return done,
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    };
    match tokio::time::timeout(limit, tries).await {
        Ok(done) => done.map_err(Failure::Etcd),
        Err(_) => Err(last.map_or(Failure::Timeout(limit), Failure::Etcd)),
    }
}

pub(crate) enum Failure {
    Etcd(ApiError),
    /// After so long.
    Timeout(Duration),
}

impl Failure {
    pub fn refusal(&self) -> Refusal {
        match self {
            Failure::Etcd(error) => error.refusal(),
            Failure::Timeout(_) => Refusal::Other,
        }
    }

    pub fn store_error(&self) -> StoreError {
        match self {
            Failure::Etcd(error) => error.store_error(),
            Failure::Timeout(limit) => StoreError::Unavailable(format!("etcd: no answer within {} s", limit.as_secs())),
        }
    }
}

/// How one store talks to etcd.
#[derive(Clone)]
pub(crate) struct Calls {
    pub api: Arc<dyn Api>,
    pub tasks: Tasks,
    /// Sees the answers.
    pub witness: Arc<Witness>,
    pub members: Arc<Members>,
}

impl Calls {
    /// To the members of a configuration, none of which is reached yet. What goes on in the background does so on the
    /// runtime that calls this.
    pub async fn connect(config: &EtcdConfig) -> Result<Self, StoreError> {
        let api = Arc::new(Grpc::connect(config).await?);
        Ok(Calls::over(api, Tasks::of_this_runtime()))
    }

    /// By any other way.
    pub fn over(api: Arc<dyn Api>, tasks: Tasks) -> Self {
        Calls {
            api,
            tasks,
            witness: Arc::new(Witness::new()),
            members: Arc::default(),
        }
    }

    pub(super) async fn range(&self, limit: Duration, range: &Range<'_>) -> Result<Ranged, Failure> {
        let mark = self.witness.mark();
        let got = call_within(limit, ApiError::worth_a_retry, || self.api.range(range)).await?;
        self.witness.look(mark, &got.header);
        Ok(got)
    }

    async fn txn(&self, txn: &Txn<'_>) -> Result<TxnDone, Failure> {
        let mark = self.witness.mark();
        let done = call(ApiError::never_sent, || self.api.txn(txn)).await?;
        self.witness.look(mark, &done.header);
        Ok(done)
    }

    pub async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StoreError> {
        let range = Range {
            key,
            ..Range::default()
        };
        let got = self.range(REQUEST, &range).await;
        let got = got.map_err(|failure| failure.store_error())?;
        Ok((got.entries.into_iter().next(), got.header.revision))
    }

    pub async fn current_revision(&self) -> Result<Revision, StoreError> {
        let mark = self.witness.mark();
        let landmark = self.witness.landmark();
        let range = Range {
            key: landmark.as_ref().map_or("/", |landmark| &landmark.key),
            keys_only: true,
            ..Range::default()
        };
        let got = self.range(REQUEST, &range).await;
        let got = got.map_err(|failure| failure.store_error())?;
        if let Some(landmark) = &landmark {
            self.witness.look_at(mark, landmark, &got);
        }
        Ok(got.header.revision)
    }

    pub async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Listed, ListFailure> {
        let mut attempt = 1;
        loop {
            match self.list_once(prefix, options).await {
                Err(ListFailure::Compacted) if options.revision.is_none() && attempt < LIST_ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    async fn list_once(&self, prefix: &str, options: &ListOptions) -> Result<Listed, ListFailure> {
        let mut start = options
            .from
            .as_deref()
            .filter(|from| *from > prefix)
            .unwrap_or(prefix)
            .to_owned();
        let mut listed = Listed {
            entries: Vec::new(),
            revision: options.revision.unwrap_or_default(),
            count: 0,
            more: false,
        };
        if !start.starts_with(prefix) {
            listed.revision = self.current_revision().await.map_err(ListFailure::Other)?;
            return Ok(listed);
        }
        let (end, falls) = (end_of(prefix), self.witness.falls());
        loop {
            let left = if options.limit == 0 {
                PAGE
            } else {
                options.limit - listed.entries.len()
            };
            let page = Range {
                key: &start,
                end: Some(&end),
                revision: listed.revision,
                limit: left.min(PAGE),
                keys_only: false,
            };
            let got = self.range(PAGE_REQUEST, &page).await;
            let got = got.map_err(|failure| match failure.refusal() {
                Refusal::Compacted => ListFailure::Compacted,
                Refusal::Future => ListFailure::Future,
                _ => ListFailure::Other(failure.store_error()),
            })?;
            if !listed.entries.is_empty() && self.witness.falls() != falls {
                let why = "etcd has gone back while it was read".to_owned();
                return Err(ListFailure::Other(StoreError::Unavailable(why)));
            }
            if listed.revision.0 == 0 {
                listed.revision = got.header.revision;
            }
            if listed.entries.is_empty() {
                listed.count = got.count;
            }
            listed.entries.extend(got.entries);
            listed.more = got.more;
            let full = options.limit != 0 && listed.entries.len() >= options.limit;
            match listed.entries.last() {
                Some(last) if listed.more && !full => start = format!("{}\0", last.key),
                _ => return Ok(listed),
            }
        }
    }

    pub async fn write(&self, key: &str, expect: Expect, write: &Write) -> Result<Written, StoreError> {
        let expected = match expect {
            Expect::Absent => Revision::default(),
            Expect::Revision(revision) => revision,
        };
        let txn = Txn {
            key,
            when: Condition::Modified(expected),
            write,
        };
        let falls = self.witness.falls();
        let done = self.txn(&txn).await;
        match (done, write) {
            (Ok(done), _) => {
                if done.succeeded {
                    let landmark = Landmark {
                        key: key.into(),
                        revision: done.header.revision,
                        is_put: matches!(write, Write::Put { .. }),
                    };
                    self.witness.passed(falls, landmark);
                }
                Ok(written(done))
            }
            (Err(failure), Write::Put { lease: Some(lease), .. }) if failure.refusal() == Refusal::LeaseNotFound => {
                Err(StoreError::LeaseNotFound(*lease))
            }
            (Err(failure), _) => Err(failure.store_error()),
        }
    }

    /// False: the revision has not come yet.
    pub async fn compact(&self, revision: Revision) -> Result<bool, StoreError> {
        let done = call(ApiError::worth_a_retry, || self.api.compact(revision)).await;
        match done {
            Ok(_) => Ok(true),
            Err(failure) => match failure.refusal() {
                Refusal::Compacted => Ok(true),
                Refusal::Future => Ok(false),
                _ => Err(failure.store_error()),
            },
        }
    }

    /// Puts a key if its version is the expected one. False: it is not, and this are its version and the revision.
    pub async fn put_version(&self, key: &str, version: u64, value: &str) -> Result<(bool, u64, Revision), StoreError> {
        let write = Write::Put {
            value: value.to_owned().into(),
            lease: None,
        };
        let txn = Txn {
            key,
            when: Condition::Version(version),
            write: &write,
        };
        let done = self.txn(&txn).await;
        let done = done.map_err(|failure| failure.store_error())?;
        let version = match done.succeeded {
            true => version + 1,
            false => done.current.map_or(0, |entry| entry.version),
        };
        Ok((done.succeeded, version, done.header.revision))
    }

    /// `ttl` in seconds.
    pub async fn grant(&self, ttl: i64) -> Result<LeaseId, StoreError> {
        let granted = call(ApiError::never_sent, || self.api.grant(ttl)).await;
        granted.map_err(|failure| failure.store_error())
    }

    /// How long a lease lasts from now on; zero: it is gone.
    pub async fn time_left(&self, id: LeaseId) -> Result<Duration, StoreError> {
        let left = call(ApiError::worth_a_retry, || self.api.time_to_live(id)).await;
        let left = left.map_err(|failure| failure.store_error())?;
        Ok(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
    }

    /// Puts a key whatever it holds.
    pub async fn put(&self, key: &str, value: &[u8], lease: Option<LeaseId>) -> Result<(), StoreError> {
        let done = call(ApiError::worth_a_retry, || self.api.put(key, value, lease)).await;
        done.map(drop).map_err(|failure| failure.store_error())
    }

    /// Bytes of the database of the member that answers.
    pub async fn size(&self) -> Result<u64, StoreError> {
        let status = call(ApiError::worth_a_retry, || self.api.status()).await;
        status
            .map(|status| status.bytes)
            .map_err(|failure| failure.store_error())
    }

    /// A linearizable read, and no alarm that stops writes.
    pub async fn health(&self) -> Result<(), StoreError> {
        let range = Range {
            key: "health",
            keys_only: true,
            ..Range::default()
        };
        let check = async {
            self.api.range(&range).await?;
            self.api.alarms().await
        };
        match tokio::time::timeout(HEALTH, check).await {
            Err(_) => Err(Failure::Timeout(HEALTH).store_error()),
            Ok(Err(error)) => Err(error.store_error()),
            Ok(Ok(alarms)) => match alarms.first() {
                None => Ok(()),
                Some(alarm) => Err(StoreError::Unavailable(format!(
                    "etcd: alarm {} of member {:x}",
                    alarm.kind, alarm.member_id
                ))),
            },
        }
    }
}

pub(crate) enum ListFailure {
    Compacted,
    Future,
    Other(StoreError),
}

/// The first key after all those with a prefix.
pub(super) fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // etcd's sign for no end
    vec![0]
}

fn written(done: TxnDone) -> Written {
    let revision = done.header.revision;
    match done.succeeded {
        true => Written::Done { revision },
        false => Written::Conflict {
            current: done.current,
            revision,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::end_of;

    #[test]
    fn ranges_end_after_their_prefix() {
        assert_eq!(end_of("/a/"), b"/a0");
        assert_eq!(end_of(""), [0]);
    }
}
