//! The simulated network: how long requests take, and which of them, or of their answers, are lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, holds};
use super::stream::Watching;
use crate::etcd::api::{
    Alarm, Answers, Api, ApiError, Condition, FailureKind, Header, Range, Ranged, Refusal, Status, Txn, TxnDone,
    WatchRequest,
};
use crate::simulation::random::Dice;
use crate::simulation::truth::{Keys, Op};
use crate::{Entry, Expect, LeaseId, Revision, Version};

/// A stream that has gone mute is to be replaced within this time …
pub const MUTE: Duration = Duration::from_secs(15);
/// … which is measured with this much patience.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What goes wrong, so many times in a thousand.
#[derive(Clone, Copy, Default, Debug)]
pub struct Weather {
    /// Nobody is reached.
    pub refused: usize,
    /// The connection is lost before etcd has the request …
    pub lost_before: usize,
    /// … or before its answer is there.
    pub lost_after: usize,
    /// No answer ever comes.
    pub hangs: usize,
    /// A stream answers no more after this answer.
    pub mutes: usize,
    /// Milliseconds that a message takes at most.
    pub delay: usize,
}

/// Clones are one network.
#[derive(Clone)]
pub struct Network {
    pub dice: Dice,
    weather: Arc<Mutex<Weather>>,
    /// Members tell progress so often, unasked.
    notices: Option<Duration>,
    /// How long the mute stream lasted that lasted longest.
    longest_mute: Arc<Mutex<Duration>>,
}

impl Network {
    pub fn new(dice: Dice, notices: Option<Duration>) -> Network {
        Network {
            dice,
            weather: Arc::default(),
            notices,
            longest_mute: Arc::default(),
        }
    }

    pub fn set(&self, weather: Weather) {
        *self.lock() = weather;
    }

    pub fn notices(&self) -> Option<Duration> {
        self.notices
    }

    pub fn delay(&self) -> Duration {
        let most = self.lock().delay;
        self.dice.millis(most)
    }

    pub fn mutes(&self) -> bool {
        let mutes = self.lock().mutes;
        self.dice.chance(mutes)
    }

    pub fn mute_ended(&self, after: Duration) {
        let mut longest = self.longest_mute.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = after.max(*longest);
    }

    /// How long a stream was mute before it was replaced, if that was too long; those that still are count.
    pub fn mute_too_long(&self, cluster: &Cluster) -> Option<Duration> {
        let state = cluster.state();
        let mute = state.streams.values().filter_map(|stream| stream.mute_since);
        let now = mute.map(|since| since.elapsed()).max().unwrap_or_default();
        drop(state);
        self.mute_ended(now);
        let longest = *self.longest_mute.lock().unwrap_or_else(PoisonError::into_inner);
        Some(longest).filter(|longest| *longest > MUTE + PATIENCE)
    }

    fn lock(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn there(&self, cluster: &Cluster) -> Result<(), ApiError> {
        let weather = *self.lock();
        sleep(self.delay()).await;
        let down = cluster.state().down_until > Instant::now();
        if down || self.dice.chance(weather.refused) {
            return Err(ApiError::new(FailureKind::NeverSent, "connection refused"));
        }
        if self.dice.chance(weather.lost_before) {
            return Err(lost());
        }
        Ok(())
    }

    async fn back(&self) -> Result<(), ApiError> {
        let weather = *self.lock();
        if self.dice.chance(weather.hangs) {
            pending::<()>().await;
        }
        sleep(self.delay()).await;
        if self.dice.chance(weather.lost_after) {
            return Err(lost());
        }
        Ok(())
    }
}

fn lost() -> ApiError {
    ApiError::new(FailureKind::Unavailable, "connection reset by peer")
}

/// etcd as one store reaches it.
pub struct Reached {
    pub cluster: Arc<Cluster>,
    pub network: Network,
}

impl Reached {
    /// Sends a request to a member that is up to date then, and brings its answer back. A member that falls away
    /// meanwhile gives none.
    async fn request<T>(&self, carry_out: impl FnOnce(usize) -> Result<(T, Revision), Refusal>) -> Result<T, ApiError> {
        let cluster = &self.cluster;
        self.network.there(cluster).await?;
        let (life, members) = {
            let state = cluster.state();
            (state.life, state.members.len())
        };
        let member = self.network.dice.below(members);
        let carried_out = carry_out(member);
        if let Ok((_, revision)) = &carried_out {
            let restarted = async {
                let mut changes = cluster.changes();
                while cluster.state().life == life {
                    let _ = changes.changed().await;
                }
            };
            tokio::select! {
                biased;
                () = restarted => return Err(lost()),
                () = cluster.applied(member, *revision) => {}
            }
        }
        self.network.back().await?;
        match carried_out {
            Ok((answer, _)) => Ok(answer),
            Err(refusal) => Err(refused(refusal)),
        }
    }

    fn read(&self, member: usize, range: &Range<'_>) -> Result<(Ranged, Revision), Refusal> {
        let now = self.cluster.truth.now();
        let at = match range.revision {
            Revision(0) => now.revision,
            past if past > now.revision => return Err(Refusal::Future),
            past if past < self.cluster.state().compacted => return Err(Refusal::Compacted),
            past => past,
        };
        let keys = self.cluster.truth.keys(now.timeline, at).unwrap_or_default();
        let mut ranged = select(&keys, range);
        ranged.header = self.cluster.header(member, now.revision);
        Ok((ranged, now.revision))
    }

    fn status_of(&self, member: usize) -> Status {
        let state = self.cluster.state();
        let found = &state.members[member];
        let (version, applied) = (found.version.to_owned(), found.applied);
        drop(state);
        Status {
            header: self.cluster.header(member, applied),
            version,
            bytes: 4096,
        }
    }
}

fn refused(refusal: Refusal) -> ApiError {
    let text = match refusal {
        Refusal::Compacted => "etcdserver: mvcc: required revision has been compacted",
        Refusal::Future => "etcdserver: mvcc: required revision is a future revision",
        Refusal::LeaseNotFound => "etcdserver: requested lease not found",
        Refusal::Other => "etcdserver: too many requests",
    };
    ApiError::new(FailureKind::Refused(refusal), text)
}

fn select(keys: &Keys, range: &Range<'_>) -> Ranged {
    let all: Vec<&Entry> = match range.end {
        None => keys.get(range.key).into_iter().collect(),
        Some(end) => {
            let from = keys.range(Arc::<str>::from(range.key)..).map(|(_, entry)| entry);
            from.take_while(|entry| end == [0] || entry.key.as_bytes() < end)
                .collect()
        }
    };
    let count = all.len();
    let limit = if range.limit == 0 { count } else { range.limit };
    let shown = all.into_iter().take(limit).map(|entry| match range.keys_only {
        true => bare(entry),
        false => entry.clone(),
    });
    Ranged {
        header: Header::default(),
        entries: shown.collect(),
        count,
        more: count > limit,
    }
}

fn bare(entry: &Entry) -> Entry {
    let held = Version::new(
        bytes::Bytes::new(),
        entry.create_revision,
        entry.mod_revision,
        entry.version,
    );
    Entry::new(entry.key.clone(), held.with_lease(entry.lease))
}

impl Api for Reached {
    fn range<'a>(&'a self, range: &'a Range<'a>) -> BoxFuture<'a, Result<Ranged, ApiError>> {
        self.request(|member| self.read(member, range)).boxed()
    }

    fn txn<'a>(&'a self, txn: &'a Txn<'a>) -> BoxFuture<'a, Result<TxnDone, ApiError>> {
        let condition = |held: Option<&Entry>| match txn.when {
            Condition::Modified(revision) => holds(Expect::Revision(revision), held),
            Condition::Version(version) => held.map_or(0, |entry| entry.version) == version,
        };
        self.request(move |member| {
            let (succeeded, current, revision) = self.cluster.txn(txn.key, condition, txn.write)?;
            let done = TxnDone {
                header: self.cluster.header(member, revision),
                succeeded,
                current,
            };
            Ok((done, revision))
        })
        .boxed()
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: &'a [u8],
        lease: Option<LeaseId>,
    ) -> BoxFuture<'a, Result<Header, ApiError>> {
        self.request(move |member| {
            let op = Op {
                key: Arc::from(key),
                put: Some((value.to_vec().into(), lease)),
            };
            let revision = self.cluster.commit(&[op]);
            Ok((self.cluster.header(member, revision), revision))
        })
        .boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), ApiError>> {
        self.request(move |_| self.cluster.compact(revision).map(|()| ((), Revision(0))))
            .boxed()
    }

    fn grant(&self, seconds: i64) -> BoxFuture<'_, Result<LeaseId, ApiError>> {
        let ttl = Duration::from_secs(seconds.unsigned_abs());
        self.request(move |_| Ok((self.cluster.grant(ttl), Revision(0))))
            .boxed()
    }

    fn time_to_live(&self, id: LeaseId) -> BoxFuture<'_, Result<i64, ApiError>> {
        self.request(move |_| Ok((self.cluster.time_to_live(id), Revision(0))))
            .boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<Status, ApiError>> {
        self.request(|member| Ok((self.status_of(member), Revision(0)))).boxed()
    }

    fn statuses(&self) -> BoxFuture<'_, Vec<(String, Result<Status, ApiError>)>> {
        async {
            let members = self.cluster.state().members.len();
            let mut statuses = Vec::new();
            for member in 0..members {
                let status = self.request(|_| Ok((self.status_of(member), Revision(0)))).await;
                statuses.push((format!("http://member-{member}:2379"), status));
            }
            statuses
        }
        .boxed()
    }

    fn alarms(&self) -> BoxFuture<'_, Result<Vec<Alarm>, ApiError>> {
        self.request(|_| Ok((Vec::new(), Revision(0)))).boxed()
    }

    fn watch<'a>(&'a self, watch: &'a WatchRequest<'a>) -> BoxFuture<'a, Result<Box<dyn Answers>, ApiError>> {
        async move {
            self.network.there(&self.cluster).await?;
            let members = self.cluster.state().members.len();
            let member = self.network.dice.below(members);
            let stream = Watching::open(&self.cluster, &self.network, member, watch);
            Ok(Box::new(stream) as Box<dyn Answers>)
        }
        .boxed()
    }
}
