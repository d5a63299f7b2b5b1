//! Leader election: of several servers that share a store, one holds a lease and renews it; the others watch it and
//! take it when it has not been renewed for as long as it says. The rules and numbers are those of Kubernetes' clients.
//!
//! Clocks of different machines are not compared: who waits counts from the moment in which it first saw the lease as
//! it is. A leader that could not renew for [`Timing::renew_deadline`] ends its work then, which is earlier than
//! anybody else may take the lease ([`Timing::lease_duration`] after the last renewal was sent).

use std::sync::Arc;
use std::time::Duration;

use keelson_machinery::env::Entropy;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::generic::Answer;

/// The part of [`Timing::retry_period`] that chance may add to it while others lead.
const JITTER: f64 = 1.2;

/// How long a lease counts and how often it is renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How long those who wait respect a lease that is not renewed.
    pub lease_duration: Duration,
    /// How long a leader goes on without having renewed; shorter than `lease_duration`.
    pub renew_deadline: Duration,
    /// Between attempts to take it or to renew it.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// 15 s, 10 s, 2 s.
    fn default() -> Timing {
        Timing {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// What a lease says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Record {
    /// Who leads; "": nobody, the last leader has given it back.
    pub holder: String,
    /// How long it counts.
    pub duration: Duration,
    /// When its holder took it.
    pub acquired: Time,
    /// When its holder renewed it last.
    pub renewed: Time,
    /// How often it went from one holder to another.
    pub transitions: i32,
}

/// A lease as it was read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// What it says.
    pub record: Record,
    /// Names this very state of it, for [`Lock::write`].
    pub version: String,
}

/// Where a lease is kept.
pub trait Lock {
    /// What is there; `None`: nobody has led yet.
    fn read(&self) -> Answer<'_, Option<Held>>;

    /// Writes over this very state, or makes the lease where there was none; an error where another was faster.
    fn write(&self, record: Record, over: Option<Held>) -> Answer<'_, Held>;

    /// The wall clock, for what the lease tells.
    fn now(&self) -> Time;
}

/// Runs for a lease.
pub struct Elector<L> {
    lock: L,
    /// Names this server among the others.
    identity: String,
    timing: Timing,
    entropy: Arc<dyn Entropy>,
    /// The lease as it was last seen, and when it was first seen so.
    observed: Option<(Held, Instant)>,
}

impl<L: Lock> Elector<L> {
    /// A candidate. No two servers have the same identity.
    pub fn new(lock: L, identity: String, timing: Timing, entropy: Arc<dyn Entropy>) -> Elector<L> {
        Elector {
            lock,
            identity,
            timing,
            entropy,
            observed: None,
        }
    }

    /// Takes part until it is dropped, and says in `leads` whether it leads.
    pub async fn run(&mut self, leads: &watch::Sender<bool>) {
        loop {
            let renewed = self.acquire().await;
            tracing::info!(identity = self.identity, "This server leads");
            leads.send_replace(true);
            self.keep(renewed).await;
            tracing::warn!(
                identity = self.identity,
                "This server leads no longer: it could not renew its lease"
            );
            leads.send_replace(false);
        }
    }

    /// Gives the lease back, so that another server need not wait. To be called when what the leader does has ended.
    pub async fn release(&mut self) {
        let Some((held, _)) = self.observed.clone().filter(|(held, _)| self.is_own(held)) else {
            return;
        };
        let now = self.lock.now();
        let record = Record {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: now,
            renewed: now,
            transitions: held.record.transitions,
        };
        let deadline = Instant::now() + self.timing.retry_period;
        match timeout_at(deadline, self.lock.write(record, Some(held))).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "giving the lease back"),
            Err(_) => tracing::warn!("giving the lease back takes too long"),
        }
        self.observed = None;
    }

    /// Returns when the lease is this server's: when the attempt that succeeded began.
    async fn acquire(&mut self) -> Instant {
        loop {
            let begun = Instant::now();
            let patience = begun + self.timing.renew_deadline;
            match timeout_at(patience, self.attempt()).await {
                Ok(Ok(true)) => return begun,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "taking the lease"),
                Err(_) => tracing::debug!("taking the lease takes too long"),
            }
            sleep(self.timing.retry_period.mul_f64(1.0 + JITTER * self.chance())).await;
        }
    }

    /// Returns when the lease was not renewed in time, or is another's.
    async fn keep(&mut self, mut renewed: Instant) {
        loop {
            let deadline = renewed + self.timing.renew_deadline;
            if timeout_at(deadline, sleep(self.timing.retry_period)).await.is_err() {
                return;
            }
            let begun = Instant::now();
            match timeout_at(deadline, self.attempt()).await {
                Ok(Ok(true)) => renewed = begun,
                // Another leads.
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(%error, "renewing the lease"),
                Err(_) => return,
            }
        }
    }

    /// Takes or renews the lease; false: another has it.
    async fn attempt(&mut self) -> Result<bool, StatusError> {
        // A leader knows what is there.
        if let Some((held, _)) = self.observed.clone().filter(|(held, _)| self.is_own(held))
            && self.write(Some(held)).await.is_ok()
        {
            return Ok(true);
        }
        let Some(held) = self.lock.read().await? else {
            return self.write(None).await.map(|()| true);
        };
        let now = Instant::now();
        let since = match &self.observed {
            Some((known, since)) if known.record == held.record => *since,
            _ => now,
        };
        let counts = since + held.record.duration > now;
        let is_others = !held.record.holder.is_empty() && !self.is_own(&held) && counts;
        self.observed = Some((held.clone(), since));
        if is_others {
            return Ok(false);
        }
        self.write(Some(held)).await.map(|()| true)
    }

    async fn write(&mut self, over: Option<Held>) -> Result<(), StatusError> {
        let now = self.lock.now();
        let before = over.as_ref().map(|held| held.record.clone());
        let (acquired, transitions) = match before {
            Some(before) if before.holder == self.identity => (before.acquired, before.transitions),
            Some(before) => (now, before.transitions.saturating_add(1)),
            None => (now, 0),
        };
        let record = Record {
            holder: self.identity.clone(),
            duration: self.timing.lease_duration,
            acquired,
            renewed: now,
            transitions,
        };
        let held = self.lock.write(record, over).await?;
        self.observed = Some((held, Instant::now()));
        Ok(())
    }

    fn is_own(&self, held: &Held) -> bool {
        held.record.holder == self.identity
    }

    /// From 0 to 1.
    fn chance(&self) -> f64 {
        let mut random = [0; 4];
        self.entropy.fill(&mut random);
        f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX)
    }
}
