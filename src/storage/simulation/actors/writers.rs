//! Writers: clients of the servers, and clients of etcd beside them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use crate::simulation::etcd::cluster::Cluster;
use crate::simulation::plan::Plan;
use crate::simulation::servers::Server;
use crate::simulation::truth::{Now, Op};
use crate::simulation::world::World;
use crate::{Expect, LeaseId, Revision, Store, Write, Written};

/// A client that writes through a server.
pub struct Writer {
    pub world: Arc<World>,
    pub cluster: Arc<Cluster>,
    pub servers: Arc<Vec<Server>>,
    pub plan: Plan,
    pub number: usize,
}

impl Writer {
    pub async fn run(self) {
        let mut count = 0;
        while self.world.is_busy() {
            let server = self.world.dice.pick(&self.servers);
            let prefix = self.plan.prefix(&self.world.dice);
            let name = self.plan.name(&self.world.dice);
            count += 1;
            self.write(server, prefix, &name, format!("{}-{count}", self.number))
                .await;
            self.world.pause().await;
        }
    }

    async fn write(&self, server: &Server, prefix: &str, name: &str, text: String) {
        let store = server.store();
        let (key, value) = (self.plan.shape.key(prefix, name), (self.plan.shape.value)(name, &text));
        let key = &*key;
        let recalled = match self.world.dice.chance(700) {
            true => store.recall(prefix, key),
            false => store.get(key).await.ok().and_then(|got| got.entry),
        };
        let expect = recalled.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
        let write = match self.world.dice.below(10) {
            0 | 1 => Write::Delete,
            2 => self.leased(&*store, value).await,
            _ => put(value, None),
        };
        let before = self.cluster.truth.now();
        let written = store.write(key, expect, write.clone()).await;
        let after = self.cluster.truth.now();
        self.world
            .say(|| format!("write {key} {expect:?} {write:?}: {written:?}"));
        if before.timeline != after.timeline {
            return;
        }
        let Ok(written) = written else { return };
        if let Err(what) = self.check(before, after, key, &write, &written) {
            self.world
                .fail("a write is answered as it happened", format!("{key}: {what}"));
        }
        if let Written::Done { revision } = written {
            let timeline = after.timeline;
            server.note(&store, key, Now { timeline, revision });
        }
    }

    async fn leased(&self, store: &dyn Store, value: Bytes) -> Write {
        let ttl = Duration::from_secs(self.world.dice.between(3, 20) as u64);
        match store.grant(ttl).await {
            Ok(lease) => put(value, Some(lease)),
            Err(_) => put(value, None),
        }
    }

    fn check(&self, before: Now, after: Now, key: &str, write: &Write, written: &Written) -> Result<(), String> {
        let truth = &self.cluster.truth;
        let at = match written {
            Written::Done { revision } | Written::Conflict { revision, .. } => *revision,
        };
        if at < before.revision || at > after.revision {
            return Err(format!("{written:?} between {before:?} and {after:?}"));
        }
        let keys = truth.keys(after.timeline, at).unwrap_or_default();
        let held = keys.get(key);
        let right = match (written, write) {
            (Written::Conflict { current, .. }, _) => current.as_ref() == held,
            (Written::Done { .. }, Write::Delete) => held.is_none(),
            (Written::Done { revision }, Write::Put { value, .. }) => {
                held.is_some_and(|held| held.mod_revision == *revision && held.value == *value)
            }
        };
        match right {
            true => Ok(()),
            false => Err(format!("{written:?}, but it held {held:?}")),
        }
    }
}

fn put(value: Bytes, lease: Option<LeaseId>) -> Write {
    Write::Put { value, lease }
}

/// A client of etcd that is no store: its transactions write several keys.
pub struct Neighbour {
    pub world: Arc<World>,
    pub cluster: Arc<Cluster>,
    pub plan: Plan,
}

impl Neighbour {
    pub async fn run(self) {
        let mut count = 0;
        while self.world.is_busy() {
            sleep(Duration::from_millis(20) + self.world.dice.millis(1500)).await;
            count += 1;
            match self.world.dice.below(12) {
                0 if self.plan.many > 0 => self.many_end_together().await,
                1 => self.compact(),
                _ => self.transaction(count),
            }
        }
    }

    fn transaction(&self, count: usize) {
        let (dice, shape) = (&self.world.dice, &self.plan.shape);
        let prefix = self.plan.prefix(dice);
        let mut ops: Vec<Op> = Vec::new();
        for _ in 0..dice.between(1, 5) {
            let mut op = shape.put(prefix, &self.plan.name(dice), &format!("n-{count}"), None);
            if ops.iter().all(|other| other.key != op.key) {
                op.put = op.put.filter(|_| dice.chance(700));
                ops.push(op);
            }
        }
        self.commit(&ops);
    }

    /// Keys that are made one after the other or at once, and end with their lease, all in one revision.
    async fn many_end_together(&self) {
        let prefix = self.plan.prefix(&self.world.dice);
        let ttl = Duration::from_secs(self.world.dice.between(1, 6) as u64);
        let lease = self.cluster.grant(ttl);
        let op = |number: usize| {
            let name = format!("many-{number:04}");
            self.plan.shape.put(prefix, &name, "m", Some(lease))
        };
        let ops: Vec<Op> = (0..self.plan.many).map(op).collect();
        for some in ops.chunks(self.world.dice.between(100, 1200)) {
            self.commit(some);
            sleep(self.world.dice.millis(10)).await;
        }
    }

    fn compact(&self) {
        let revision = self.cluster.revision();
        let back = self.world.dice.below(30) as u64;
        let _ = self.cluster.compact(Revision(revision.0.saturating_sub(back)));
    }

    fn commit(&self, ops: &[Op]) {
        let revision = self.cluster.commit(ops);
        self.world
            .say(|| format!("transaction of {} keys: {revision}", ops.len()));
    }
}
