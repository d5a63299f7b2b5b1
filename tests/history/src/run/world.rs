//! The shared state of a run's tasks: the servers, the time, what they know, and what they have seen.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use keelson_history::{Border, Filter, History, Id, Key, Moment, Step, Violation};
use serde_json::json;
use tokio::sync::{RwLock, watch};

use super::Shared;
use super::client::{Client, Target};
use super::lane::Lane;
use super::object::{Kind, NAMESPACE};
use super::server::Server;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Phase {
    /// Traffic and faults.
    Running,
    /// The faults are over; watches shall hear of the last writes.
    Settling,
    /// They have, or are deaf. Nobody reads any more; recorders still hear what comes.
    Quiet,
    /// All is over.
    Done,
}

pub struct World {
    pub targets: Vec<Arc<Target>>,
    pub lanes: Vec<Lane>,
    begin: Instant,
    phase: watch::Sender<Phase>,
    ids: AtomicU32,
    keys: AtomicU32,
    /// Who writes holds it for reading, one request at a time; who needs that nobody writes, for writing.
    pub gate: RwLock<()>,
    /// Who holds it is not disturbed by faults.
    pub calm: tokio::sync::Mutex<()>,
    /// The store is being put back, since this moment.
    down: watch::Sender<Option<Moment>>,
    /// A server does not start again: nothing more is to be seen.
    broken: AtomicBool,
    /// The last time that it was.
    border: Mutex<Option<Border>>,
    /// What clients did with pods.
    pub steps: Mutex<Vec<Step>>,
    pub violations: Mutex<Vec<Violation>>,
}

impl World {
    pub fn new(targets: Vec<Arc<Target>>, lanes: Vec<Lane>) -> Shared {
        Arc::new(World {
            targets,
            lanes,
            begin: Instant::now(),
            phase: watch::Sender::new(Phase::Running),
            ids: AtomicU32::new(1),
            keys: AtomicU32::new(0),
            gate: RwLock::default(),
            calm: tokio::sync::Mutex::default(),
            down: watch::Sender::new(None),
            broken: AtomicBool::new(false),
            border: Mutex::default(),
            steps: Mutex::default(),
            violations: Mutex::default(),
        })
    }

    /// The objects of a kind that the run has.
    pub fn lane(&self, kind: Kind) -> &Lane {
        self.lanes.iter().find(|lane| lane.kind == kind).unwrap()
    }

    pub fn now(&self) -> Moment {
        self.begin.elapsed().as_micros() as Moment
    }

    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Phases only go on.
    pub fn set(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let goes_on = phase > *now;
            *now = if goes_on { phase } else { *now };
            goes_on
        });
    }

    /// Returns when the phase is this one or a later one.
    pub async fn until(&self, phase: Phase) {
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }

    pub fn new_id(&self) -> Id {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of an object that nobody has made yet.
    pub fn new_key(&self) -> Key {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    pub fn violation(&self, rule: &'static str, text: String) {
        self.violations.lock().unwrap().push(Violation { rule, text });
    }

    /// The run is over, for this reason.
    pub fn breaks(&self, rule: &'static str, text: String) {
        self.violation(rule, text);
        self.broken.store(true, Ordering::Relaxed);
        self.set(Phase::Done);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// From now on nothing of what is there may last.
    pub fn goes_down(&self) -> Moment {
        let down = self.now();
        self.down.send_replace(Some(down));
        down
    }

    /// The store is put back.
    pub fn is_put_back(&self, border: Border) {
        for lane in &self.lanes {
            lane.forget(border);
        }
        *self.border.lock().unwrap() = Some(border);
        self.down.send_replace(None);
    }

    /// Now the later timeline begins to differ from what both have in common.
    pub fn is_written(&self) {
        let now = self.now();
        for lane in &self.lanes {
            if let Some(border) = lane.history.lock().unwrap().borders.last_mut() {
                border.written = now;
            }
        }
    }

    /// It was not, in the end.
    pub fn nothing_was_put_back(&self) {
        self.down.send_replace(None);
    }

    pub fn border(&self) -> Option<Border> {
        *self.border.lock().unwrap()
    }

    /// Whether a request that began then may have seen either of two timelines.
    pub fn is_between(&self, moment: Moment) -> bool {
        let passed = self
            .border()
            .is_some_and(|border| (border.down..border.up).contains(&moment));
        passed || self.down.borrow().is_some_and(|down| down <= moment)
    }

    /// Whether what began then may belong to an earlier timeline.
    pub fn was_put_back_since(&self, moment: Moment) -> bool {
        self.down.borrow().is_some() || self.border().is_some_and(|border| moment < border.up)
    }

    /// Returns when the store is not being put back: what is read before may be of either timeline.
    pub async fn steady(&self) {
        let _ = self.down.subscribe().wait_for(Option::is_none).await;
        if let Some(border) = self.border() {
            let left = border.up.saturating_sub(self.now());
            tokio::time::sleep(Duration::from_micros(left)).await;
        }
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

    /// Returns when every recorder has begun; the run is over if one can't.
    pub async fn recording(&self, servers: &[Server]) {
        let since = Instant::now();
        let is_silent = |lane: &&Lane| lane.recorded.load(Ordering::Relaxed) == 0;
        while let Some(lane) = self.lanes.iter().find(is_silent) {
            if self.is_broken() {
                return;
            }
            if since.elapsed() > PATIENCE {
                let logs: Vec<_> = servers.iter().map(Server::last_words).collect();
                let text = format!(
                    "nobody hears of every {:?}; the servers say:\n{}",
                    lane.kind,
                    logs.join("\n")
                );
                return self.breaks("a watch can be opened", text);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns when every recorder has heard of the last writes.
    pub async fn heard(&self) {
        let has_heard = |lane: &Lane| {
            let last = lane.last_for(&Filter::default());
            last.is_some_and(|last| lane.recorded.load(Ordering::Relaxed) >= last)
        };
        while !self.lanes.iter().all(has_heard) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What clients saw, of each kind.
    pub fn take(&self) -> (Vec<(Kind, History)>, Vec<Violation>) {
        let histories = self.lanes.iter();
        let histories = histories.map(|lane| (lane.kind, std::mem::take(&mut *lane.history.lock().unwrap())));
        (
            histories.collect(),
            std::mem::take(&mut self.violations.lock().unwrap()),
        )
    }
}
