//! What the tasks of a run share: the servers, the time, what they know, and what they have seen.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use keelson_history::{COLORS, Filter, History, Id, Key, Moment, Outcome, Version, Violation};
use serde_json::json;
use tokio::sync::watch;

use super::client::{Client, Target};
use super::object::{self, KEYS, NAMESPACE};
use super::{Shared, writers};

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Phase {
    /// Traffic and faults.
    Running,
    /// The faults are over; watches shall hear of the last writes.
    Settling,
    /// Whoever has not is deaf.
    Done,
}

pub struct World {
    pub targets: Vec<Arc<Target>>,
    begin: Instant,
    phase: watch::Sender<Phase>,
    ids: AtomicU32,
    /// The newest revision that any client was told of.
    newest: AtomicU64,
    /// The first watcher, which watches everything, has heard of everything up to this revision.
    pub recorded: AtomicU64,
    /// By key, the newest revision that any client was told of.
    latest: Mutex<HashMap<Key, u64>>,
    /// The last writes of the run.
    finals: Mutex<Vec<(Key, Version)>>,
    pub history: Mutex<History>,
    pub violations: Mutex<Vec<Violation>>,
}

impl World {
    pub fn new(targets: Vec<Arc<Target>>) -> Shared {
        Arc::new(World {
            targets,
            begin: Instant::now(),
            phase: watch::Sender::new(Phase::Running),
            ids: AtomicU32::new(1),
            newest: AtomicU64::new(1),
            recorded: AtomicU64::new(0),
            latest: Mutex::default(),
            finals: Mutex::default(),
            history: Mutex::new(History {
                complete: true,
                ..History::default()
            }),
            violations: Mutex::default(),
        })
    }

    pub fn now(&self) -> Moment {
        self.begin.elapsed().as_micros() as Moment
    }

    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Returns when the phase is this one or a later one.
    pub async fn until(&self, phase: Phase) {
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    pub fn new_id(&self) -> Id {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    pub fn saw_revision(&self, revision: u64) {
        self.newest.fetch_max(revision, Ordering::Relaxed);
    }

    pub fn saw(&self, key: Key, version: Version) {
        self.saw_revision(version.revision);
        let mut latest = self.latest.lock().unwrap();
        let held = latest.entry(key).or_default();
        *held = version.revision.max(*held);
    }

    /// The newest revision of a key that anybody saw.
    pub fn latest(&self, key: Key) -> u64 {
        self.latest.lock().unwrap().get(&key).copied().unwrap_or(1)
    }

    pub fn violation(&self, rule: &'static str, text: String) {
        self.violations.lock().unwrap().push(Violation { rule, text });
    }

    /// Waits for the servers and makes the namespace.
    pub async fn prepare(&self) {
        for target in &self.targets {
            let mut client = Client::new(target.clone(), false);
            let since = Instant::now();
            let body = json!({"metadata": {"name": NAMESPACE}}).to_string();
            loop {
                let path = "/api/v1/namespaces";
                match client.call(Method::POST, path, "application/json", body.clone()).await {
                    Ok((201 | 409, _)) => break,
                    other => assert!(since.elapsed() < PATIENCE, "no namespace: {other:?}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Returns when the first watcher has begun.
    pub async fn recording(&self) {
        let since = Instant::now();
        while self.recorded.load(Ordering::Relaxed) == 0 {
            assert!(since.elapsed() < PATIENCE, "no watch can be opened");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Writes every key in every color, so that each watch has a last event to hear of.
    pub async fn finish(&self) {
        for key in 0..KEYS {
            for _ in 0..COLORS {
                let last = self.write_for_sure(key).await;
                self.finals.lock().unwrap().push((key, last));
            }
        }
    }

    async fn write_for_sure(&self, key: Key) -> Version {
        let since = Instant::now();
        let mut clients: Vec<_> = self
            .targets
            .iter()
            .map(|target| Client::new(target.clone(), false))
            .collect();
        let server = key as usize % clients.len();
        loop {
            for create in [false, true] {
                let outcome = writers::put(self, &mut clients[server], server, key, create).await;
                if let Outcome::Done(Some(version)) = outcome {
                    return version;
                }
                assert!(since.elapsed() < PATIENCE, "no write succeeds: {outcome:?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The revision of the last event that a watch must hear of; `None`: the last writes are not done.
    pub fn last_for(&self, filter: &Filter) -> Option<u64> {
        let finals = self.finals.lock().unwrap();
        if finals.len() < (KEYS * COLORS) as usize {
            return None;
        }
        let selected = finals.iter().filter(|(key, version)| filter.selects(*key, version.id));
        selected.map(|(_, version)| version.revision).max()
    }

    pub fn read(&self, object: &serde_json::Value) -> Option<(Key, Version)> {
        match object::read(object) {
            Ok((key, version)) => {
                self.saw(key, version);
                Some((key, version))
            }
            Err(text) => {
                self.violation("objects are whole", text.chars().take(2000).collect());
                None
            }
        }
    }

    pub fn take(&self) -> (History, Vec<Violation>) {
        (
            std::mem::take(&mut self.history.lock().unwrap()),
            std::mem::take(&mut self.violations.lock().unwrap()),
        )
    }
}
