//! Single requests to etcd, with a time limit and retries.

use std::future::Future;
use std::time::Duration;

use etcd_client::{
    AlarmAction, AlarmType, Client, Compare, CompareOp, Error, GetOptions, GetResponse, PutOptions, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};

use super::connect::Connections;
use super::convert::{Refusal, entry, never_sent, refusal, revision, unavailable, worth_a_retry};
use crate::{Entry, EtcdConfig, Expect, LeaseId, ListOptions, Listed, Revision, StoreError, Write, Written};

/// A request is given up after this time, retries included …
const REQUEST: Duration = Duration::from_secs(5);
/// … and a page of a list, which may be large, after this one.
const PAGE_REQUEST: Duration = Duration::from_secs(10);
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
async fn call<T, F: Future<Output = Result<T, Error>>>(
    retry: impl Fn(&Error) -> bool,
    attempt: impl FnMut() -> F,
) -> Result<T, Failure> {
    call_within(REQUEST, retry, attempt).await
}

async fn call_within<T, F: Future<Output = Result<T, Error>>>(
    limit: Duration,
    retry: impl Fn(&Error) -> bool,
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
    Etcd(Error),
    /// After so long.
    Timeout(Duration),
}

impl Failure {
    fn refusal(&self) -> Refusal {
        match self {
            Failure::Etcd(error) => refusal(error),
            Failure::Timeout(_) => Refusal::Other,
        }
    }

    pub fn store_error(&self) -> StoreError {
        match self {
            Failure::Etcd(error) => unavailable(error),
            Failure::Timeout(limit) => StoreError::Unavailable(format!("etcd: no answer within {} s", limit.as_secs())),
        }
    }
}

/// The clients of one store.
#[derive(Clone)]
pub(crate) struct Calls {
    pub client: Client,
    connections: Connections,
}

impl Calls {
    pub fn new(client: Client, config: &EtcdConfig) -> Self {
        let connections = Connections::new(&client, config);
        Calls { client, connections }
    }

    async fn range(&self, limit: Duration, key: &str, options: GetOptions) -> Result<GetResponse, Failure> {
        let kv = self.connections.kv().await;
        call_within(limit, worth_a_retry, || {
            let (mut kv, options) = (kv.clone(), options.clone());
            async move { kv.get(key, Some(options)).await }
        })
        .await
    }

    pub async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StoreError> {
        let got = self
            .range(REQUEST, key, GetOptions::new())
            .await
            .map_err(|failure| failure.store_error())?;
        Ok((got.kvs().first().map(entry).transpose()?, revision(got.header())))
    }

    pub async fn current_revision(&self) -> Result<Revision, StoreError> {
        let got = self.range(REQUEST, "/", GetOptions::new().with_keys_only()).await;
        got.map(|got| revision(got.header()))
            .map_err(|failure| failure.store_error())
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
        let end = end_of(prefix);
        loop {
            let left = if options.limit == 0 {
                PAGE
            } else {
                options.limit - listed.entries.len()
            };
            let page = GetOptions::new()
                .with_range(end.clone())
                .with_limit(left.min(PAGE) as i64);
            let page = page.with_revision(listed.revision.0 as i64);
            let got = self.range(PAGE_REQUEST, &start, page).await;
            let got = got.map_err(|failure| match failure.refusal() {
                Refusal::Compacted => ListFailure::Compacted,
                Refusal::Future => ListFailure::Future,
                _ => ListFailure::Other(failure.store_error()),
            })?;
            if listed.revision.0 == 0 {
                listed.revision = revision(got.header());
            }
            if listed.entries.is_empty() {
                listed.count = got.count() as usize;
            }
            for kv in got.kvs() {
                listed.entries.push(entry(kv).map_err(ListFailure::Other)?);
            }
            listed.more = got.more();
            let full = options.limit != 0 && listed.entries.len() >= options.limit;
            match listed.entries.last() {
                Some(last) if listed.more && !full => start = format!("{}\0", last.key),
                _ => return Ok(listed),
            }
        }
    }

    pub async fn write(&self, key: &str, expect: Expect, write: &Write) -> Result<Written, StoreError> {
        let expected = match expect {
            Expect::Absent => 0,
            Expect::Revision(revision) => revision.0 as i64,
        };
        let kv = self.connections.kv().await;
        let done = call(never_sent, || {
            let mut kv = kv.clone();
            let txn = Txn::new()
                .when([Compare::mod_revision(key, CompareOp::Equal, expected)])
                .and_then([operation(key, write)])
                .or_else([TxnOp::get(key, None)]);
            async move { kv.txn(txn).await }
        })
        .await;
        match (done, write) {
            (Ok(done), _) => written(&done),
            (Err(failure), Write::Put { lease: Some(lease), .. }) if failure.refusal() == Refusal::LeaseNotFound => {
                Err(StoreError::LeaseNotFound(*lease))
            }
            (Err(failure), _) => Err(failure.store_error()),
        }
    }

    /// False: the revision has not come yet.
    pub async fn compact(&self, revision: Revision) -> Result<bool, StoreError> {
        let kv = self.connections.kv().await;
        let done = call(worth_a_retry, || {
            let mut kv = kv.clone();
            async move { kv.compact(revision.0 as i64, None).await }
        })
        .await;
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
    pub async fn put_version(&self, key: &str, version: i64, value: &str) -> Result<(bool, i64, Revision), StoreError> {
        let kv = self.connections.kv().await;
        let done = call(never_sent, || {
            let mut kv = kv.clone();
            let txn = Txn::new()
                .when([Compare::version(key, CompareOp::Equal, version)])
                .and_then([TxnOp::put(key, value, None)])
                .or_else([TxnOp::get(key, None)]);
            async move { kv.txn(txn).await }
        })
        .await
        .map_err(|failure| failure.store_error())?;
        let version = match done.op_responses().first() {
            Some(TxnOpResponse::Get(got)) => got.kvs().first().map_or(0, |kv| kv.version()),
            _ => version + 1,
        };
        Ok((done.succeeded(), version, revision(done.header())))
    }

    /// `ttl` in seconds.
    pub async fn grant(&self, ttl: i64) -> Result<LeaseId, StoreError> {
        let done = call(never_sent, || {
            let mut leases = self.client.lease_client();
            async move { leases.grant(ttl, None).await }
        })
        .await;
        done.map(|granted| LeaseId(granted.id()))
            .map_err(|failure| failure.store_error())
    }

    /// How long a lease lasts from now on; zero: it is gone.
    pub async fn time_left(&self, id: LeaseId) -> Result<Duration, StoreError> {
        let answer = call(worth_a_retry, || {
            let mut leases = self.client.lease_client();
            async move { leases.time_to_live(id.0, None).await }
        })
        .await;
        let left = answer.map_err(|failure| failure.store_error())?.ttl();
        Ok(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
    }

    /// Puts a key whatever it holds.
    pub async fn put(&self, key: &str, value: &[u8], lease: Option<LeaseId>) -> Result<(), StoreError> {
        let options = PutOptions::new().with_lease(lease.map_or(0, |lease| lease.0));
        let kv = self.connections.kv().await;
        let done = call(worth_a_retry, || {
            let (mut kv, options) = (kv.clone(), options.clone());
            async move { kv.put(key, value, Some(options)).await }
        })
        .await;
        done.map(drop).map_err(|failure| failure.store_error())
    }

    /// Bytes of the database of the member that answers.
    pub async fn size(&self) -> Result<u64, StoreError> {
        let status = call(worth_a_retry, || {
            let mut maintenance = self.client.maintenance_client();
            async move { maintenance.status().await }
        })
        .await;
        let size = status.map_err(|failure| failure.store_error())?.db_size();
        Ok(u64::try_from(size).unwrap_or(0))
    }

    /// A linearizable read, and no alarm that stops writes.
    pub async fn health(&self) -> Result<(), StoreError> {
        let (mut kv, mut maintenance) = (self.connections.kv().await, self.client.maintenance_client());
        let check = async {
            kv.get("health", Some(GetOptions::new().with_keys_only())).await?;
            maintenance.alarm(AlarmAction::Get, AlarmType::None, None).await
        };
        match tokio::time::timeout(HEALTH, check).await {
            Err(_) => Err(StoreError::Unavailable(format!(
                "etcd: no answer within {} s",
                HEALTH.as_secs()
            ))),
            Ok(Err(error)) => Err(unavailable(&error)),
            Ok(Ok(alarms)) => match alarms.alarms().first() {
                None => Ok(()),
                Some(alarm) => {
                    let (alarm, member) = (alarm.alarm(), alarm.member_id());
                    Err(StoreError::Unavailable(format!(
                        "etcd: alarm {alarm:?} of member {member:x}"
                    )))
                }
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
fn end_of(prefix: &str) -> Vec<u8> {
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

fn operation(key: &str, write: &Write) -> TxnOp {
    match write {
        Write::Put { value, lease } => {
            let options = PutOptions::new().with_lease(lease.map_or(0, |lease| lease.0));
            TxnOp::put(key, value.as_ref(), Some(options))
        }
        Write::Delete => TxnOp::delete(key, None),
    }
}

fn written(done: &TxnResponse) -> Result<Written, StoreError> {
    let revision = revision(done.header());
    if done.succeeded() {
        return Ok(Written::Done { revision });
    }
    let current = match done.op_responses().first() {
        Some(TxnOpResponse::Get(got)) => got.kvs().first().map(entry).transpose()?,
        _ => None,
    };
    Ok(Written::Conflict { current, revision })
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
