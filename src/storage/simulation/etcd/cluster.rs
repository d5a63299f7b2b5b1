//! The simulated cluster: one history, members that come up to it in their own time, leases, compaction, elections, and
//! the day on which it is put back to a snapshot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::stream::Stream;
use crate::etcd::api::{Header, Refusal};
use crate::simulation::random::Dice;
use crate::simulation::truth::{Op, Truth};
use crate::{Expect, LeaseId, Revision, Write};

/// The version of members that answer a question for progress before events that came first (etcd #15220).
pub const HASTY: &str = "3.5.12";
pub const ORDERLY: &str = "3.6.5";
/// etcd looks so often for leases that have ended.
const LEASE_TICK: Duration = Duration::from_millis(500);

pub struct Member {
    pub id: u64,
    pub version: &'static str,
    /// It shows everything up to this revision.
    pub applied: Revision,
    /// It takes in nothing before.
    lags_until: Instant,
}

struct Lease {
    expires: Instant,
    ttl: Duration,
}

/// That of a new cluster.
const FIRST_TERM: u64 = 4;

pub struct State {
    pub members: Vec<Member>,
    /// Revisions before this one are forgotten.
    pub compacted: Revision,
    pub term: u64,
    /// At which revisions it came to which terms.
    elections: Vec<(Revision, u64)>,
    /// Nobody is reached before.
    pub down_until: Instant,
    /// Rises when all members begin anew.
    pub life: u64,
    leases: BTreeMap<LeaseId, Lease>,
    last_lease: i64,
    pub streams: BTreeMap<u64, Stream>,
    pub last_stream: u64,
}

impl State {
    fn elected(&mut self, at: Revision) {
        self.term += 1;
        self.elections.push((at, self.term));
    }
}

/// See the module's description.
pub struct Cluster {
    pub truth: Arc<Truth>,
    pub dice: Dice,
    state: Mutex<State>,
    /// Says that something has happened.
    changed: watch::Sender<u64>,
}

impl Cluster {
    pub fn new(dice: Dice, members: usize, version: &'static str) -> Arc<Cluster> {
        let now = Instant::now();
        let members = (1..=members as u64).map(|id| Member {
            id,
            version,
            applied: Revision(1),
            lags_until: now,
        });
        let state = State {
            members: members.collect(),
            compacted: Revision(0),
            term: FIRST_TERM,
            elections: Vec::new(),
            down_until: now,
            life: 1,
            leases: BTreeMap::new(),
            last_lease: 7000,
            streams: BTreeMap::new(),
            last_stream: 0,
        };
        Arc::new(Cluster {
            truth: Arc::new(Truth::of_nothing()),
            dice,
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn tell(&self) {
        self.changed.send_modify(|change| *change += 1);
    }

    pub fn revision(&self) -> Revision {
        self.truth.now().revision
    }

    /// The head of an answer of a member at a revision.
    pub(crate) fn header(&self, member: usize, revision: Revision) -> Header {
        let state = self.state();
        Header {
            revision,
            raft_term: state.term,
            cluster_id: 0xc1,
            member_id: state.members[member].id,
        }
    }

    /// A transaction of another client than the stores.
    pub fn commit(&self, ops: &[Op]) -> Revision {
        let revision = self.truth.commit(ops);
        self.tell();
        revision
    }

    /// The transaction of a store.
    pub(crate) fn txn(&self, key: &str, holds: impl Fn(Option<&crate::Entry>) -> bool, write: &Write) -> Txned {
        let current = self.truth.get(key);
        if !holds(current.as_ref()) {
            return Ok((false, current, self.revision()));
        }
        let put = match write {
            Write::Put { value, lease } => {
                if lease.is_some_and(|lease| !self.state().leases.contains_key(&lease)) {
                    return Err(Refusal::LeaseNotFound);
                }
                Some((value.clone(), *lease))
            }
            Write::Delete => None,
        };
        let key = Arc::from(key);
        Ok((true, None, self.commit(&[Op { key, put }])))
    }

    pub(crate) fn compact(&self, revision: Revision) -> Result<(), Refusal> {
        let current = self.revision();
        let mut state = self.state();
        if revision > current {
            return Err(Refusal::Future);
        }
        if revision <= state.compacted {
            return Err(Refusal::Compacted);
        }
        state.compacted = revision;
        drop(state);
        self.tell();
        Ok(())
    }

    pub fn grant(&self, ttl: Duration) -> LeaseId {
        let mut state = self.state();
        state.last_lease += 1;
        let id = LeaseId(state.last_lease);
        let expires = Instant::now() + ttl;
        state.leases.insert(id, Lease { expires, ttl });
        id
    }

    pub fn time_to_live(&self, id: LeaseId) -> i64 {
        let state = self.state();
        let left = state.leases.get(&id).map(|lease| lease.expires - Instant::now());
        left.map_or(-1, |left| left.as_secs() as i64)
    }

    /// Ends leases: all keys of one in one revision.
    pub async fn end_leases(self: Arc<Self>) {
        loop {
            sleep(LEASE_TICK).await;
            let now = Instant::now();
            let ended: Vec<LeaseId> = {
                let mut state = self.state();
                let ended = state.leases.iter().filter(|(_, lease)| lease.expires <= now);
                let ended: Vec<LeaseId> = ended.map(|(id, _)| *id).collect();
                state.leases.retain(|_, lease| lease.expires > now);
                ended
            };
            for id in ended {
                self.revoke(id);
            }
        }
    }

    fn revoke(&self, id: LeaseId) {
        let now = self.truth.now();
        let keys = self.truth.keys(now.timeline, now.revision).unwrap_or_default();
        let of_lease = keys.iter().filter(|(_, entry)| entry.lease == Some(id));
        let ops: Vec<Op> = of_lease
            .map(|(key, _)| Op {
                key: key.clone(),
                put: None,
            })
            .collect();
        self.commit(&ops);
    }

    /// Lets a member take in what was committed, after a while.
    pub async fn apply(self: Arc<Self>, member: usize) {
        let mut changes = self.changes();
        loop {
            sleep(self.dice.millis(8)).await;
            let lags_until = self.state().members[member].lags_until;
            sleep_until(lags_until).await;
            self.catch_up(member);
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn catch_up(&self, member: usize) {
        let committed = self.revision();
        let mut state = self.state();
        let behind = state.members[member].applied < committed;
        state.members[member].applied = committed;
        drop(state);
        if behind {
            self.tell();
        }
    }

    /// Waits until a member shows a revision.
    pub async fn applied(&self, member: usize, revision: Revision) {
        let mut changes = self.changes();
        while self.state().members[member].applied < revision {
            let _ = changes.changed().await;
        }
    }

    pub fn lag(&self, member: usize, time: Duration) {
        self.state().members[member].lags_until = Instant::now() + time;
    }

    /// Another leader.
    pub fn elect(&self) {
        let now = self.revision();
        self.state().elected(now);
    }

    /// All members go away, and come back after a while. Leases last longer then, as etcd's do.
    pub fn restart(&self, away: Duration) {
        let revision = self.revision();
        let mut state = self.state();
        let now = Instant::now();
        state.life += 1;
        state.elected(revision);
        state.down_until = now + away;
        for lease in state.leases.values_mut() {
            lease.expires = now + away + lease.ttl;
        }
        drop(state);
        self.tell();
    }

    /// Puts the cluster back to a snapshot of a revision that is not after the current one. While nobody is reached,
    /// `meanwhile` writes: what others do before the stores come back.
    pub fn restore(&self, revision: Revision, away: Duration, term: u64) {
        self.restart(away);
        self.truth.fork(revision);
        let mut state = self.state();
        state.term = term;
        state.elections.retain(|(at, _)| *at <= revision);
        state.elections.push((revision, term));
        state.compacted = state.compacted.min(revision);
        for member in &mut state.members {
            member.applied = revision;
            member.lags_until = Instant::now();
        }
        drop(state);
        self.tell();
    }

    /// The number of its last election.
    #[cfg(test)]
    pub fn term(&self) -> u64 {
        self.state().term
    }

    /// The term in which it was when its revision was this one.
    pub fn term_at(&self, revision: Revision) -> u64 {
        let state = self.state();
        let before = state.elections.iter().rev().find(|(at, _)| *at <= revision);
        before.map_or(FIRST_TERM, |(_, term)| *term)
    }

    /// Revisions that a snapshot may have.
    pub fn restorable(&self) -> (Revision, Revision) {
        (self.state().compacted.max(Revision(1)), self.revision())
    }
}

/// Whether the condition held, what the key holds if it did not, and the revision.
type Txned = Result<(bool, Option<crate::Entry>, Revision), Refusal>;

/// What a write of a store expects, as etcd compares it.
pub fn holds(expect: Expect, held: Option<&crate::Entry>) -> bool {
    let modified = held.map_or(Revision(0), |entry| entry.mod_revision);
    match expect {
        Expect::Absent => modified == Revision(0),
        Expect::Revision(revision) => modified == revision,
    }
}
