//! Runs of a store that one server has for itself: the one in memory.
//!
//! What was written is learned from the store's own events, each of which has to be what somebody asked for (values tell
//! them apart) or the end of a lease.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::actors::readers::check_all;
use super::actors::watchers::{Place, Watcher};
use super::dice::Dice;
use super::executor::{self, Spawner};
use super::truth::{self, Truth};
use super::world::{Violation, World};
use super::{Outcome, PROMISES};
use crate::lease_pool::LeasePool;
use crate::memory::MemoryStore;
use crate::{
    Entry, Event, Expect, HistoryLimits, LeaseId, ListOptions, Position, Revision, Store, StoreError, SystemClock,
    Write, Written,
};

const PREFIXES: &[&str] = &["/a/", "/b/"];
/// Leases and history are looked at so often.
const TICK: Duration = Duration::from_millis(500);
/// All is in order again this long after the last write.
const RECOVERY: Duration = Duration::from_secs(12);

/// What somebody asked for and has not been seen to happen.
#[derive(Clone, Debug)]
struct Asked {
    key: String,
    expect: Expect,
    write: Write,
}

impl Asked {
    fn explains(&self, event: &Event) -> bool {
        let previous = match event {
            Event::Put { previous, .. } | Event::Delete { previous, .. } => previous.as_ref(),
        };
        let expected = match self.expect {
            Expect::Absent => Revision(0),
            Expect::Revision(revision) => revision,
        };
        let written = match (&self.write, event) {
            (Write::Put { value, lease }, Event::Put { entry, .. }) => entry.value == *value && entry.lease == *lease,
            (Write::Delete, Event::Delete { .. }) => true,
            _ => false,
        };
        written && truth::key(event) == self.key && previous.map_or(Revision(0), |entry| entry.mod_revision) == expected
    }
}

#[derive(Default)]
struct Ledger {
    asked: BTreeMap<u64, Asked>,
    last: u64,
    leases: BTreeMap<LeaseId, Instant>,
}

struct Run {
    world: Arc<World>,
    truth: Arc<Truth>,
    store: Arc<dyn Store>,
    ledger: Mutex<Ledger>,
    /// Writes at once, now and then: more than a watch's queue holds.
    burst: usize,
}

/// Runs what a seed makes of it.
pub fn run(seed: u64, talks: bool) -> Outcome {
    let dice = Dice::new(seed);
    let done = executor::run(dice.clone(), move |spawner| play(dice, spawner, talks));
    Outcome {
        violation: done.output,
        trace: done.trace,
        steps: done.steps,
        plan: "a store in memory".to_owned(),
    }
}

async fn play(dice: Dice, spawner: Spawner, talks: bool) -> Option<Violation> {
    let world = World::new(dice.clone(), spawner, talks);
    let limits = HistoryLimits {
        age: dice
            .chance(500)
            .then(|| Duration::from_secs(dice.between(2, 10) as u64)),
        bytes: *dice.pick(&[usize::MAX, 400_000, 20_000]),
    };
    let (store, mut upkeep) = MemoryStore::without_upkeep(limits, Arc::new(SystemClock::new()));
    let run = Arc::new(Run {
        world: world.clone(),
        truth: Arc::new(Truth::new()),
        store: Arc::new(store),
        ledger: Mutex::default(),
        burst: if dice.chance(40) { *dice.pick(&[400, 1200]) } else { 0 },
    });
    let ticking = run.clone();
    world.spawner.spawn(async move {
        loop {
            sleep(TICK).await;
            ticking.learn();
            upkeep();
            ticking.learn();
        }
    });
    tokio::select! {
        biased;
        () = world.failed() => {}
        () = run.all() => {}
    }
    world.violation()
}

impl Run {
    async fn all(self: &Arc<Self>) {
        let dice = &self.world.dice;
        for number in 0..dice.between(1, 3) {
            self.world.spawner.spawn(self.clone().write_and_read(number));
        }
        let watchers = dice.between(2, 5);
        let places: Vec<_> = (0..watchers).map(|_| self.watcher()).collect();
        sleep(Duration::from_secs(dice.between(3, 15) as u64)).await;
        self.world.rest();
        self.recover(&places).await;
    }

    fn watcher(self: &Arc<Self>) -> (String, Arc<Mutex<Option<Place>>>) {
        let dice = &self.world.dice;
        let prefix = dice.pick(&["/a/", "/b/", "/", "/a/1"]).to_string();
        let (learning, store) = (self.clone(), self.store.clone());
        let watcher = Watcher {
            world: self.world.clone(),
            truth: self.truth.clone(),
            prefix: prefix.clone(),
            direct: dice.chance(300),
            learn: Arc::new(move || learning.learn()),
            slowness: *dice.pick(&[0, 0, 50, 2000]),
            place: Arc::default(),
        };
        let place = watcher.place.clone();
        self.world.spawner.spawn(watcher.run(move || store.clone()));
        (prefix, place)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what has happened since the last call.
    fn learn(&self) {
        let known = self.truth.now().revision;
        let held = self.store.held_position("").filter(|held| held.revision > known);
        let Some(now) = held else {
            return;
        };
        let from = Position { revision: known, ..now };
        let now = now.revision;
        let Some(events) = self.store.events("", from, now, usize::MAX) else {
            return self
                .world
                .fail("memory has its newest events", format!("{known} to {now}"));
        };
        for event in &events {
            if !self.explain(event) || !self.truth.learn(event) {
                let what = format!("{} at {}", truth::key(event), event.revision());
                return self.world.fail("what happens was asked for", what);
            }
        }
    }

    fn explain(&self, event: &Event) -> bool {
        let mut ledger = self.ledger();
        let asked = ledger.asked.iter().find(|(_, asked)| asked.explains(event));
        if let Some(number) = asked.map(|(number, _)| *number) {
            ledger.asked.remove(&number);
            return true;
        }
        let Event::Delete { previous, .. } = event else {
            return false;
        };
        let lease = previous.as_ref().and_then(|entry| entry.lease);
        let expires = lease.and_then(|lease| ledger.leases.get(&lease));
        expires.is_some_and(|expires| *expires <= Instant::now())
    }

    async fn write_and_read(self: Arc<Self>, number: usize) {
        let mut count = 0;
        while self.world.is_busy() {
            count += 1;
            match self.world.dice.below(12) {
                0 => self.read().await,
                1 => self.compact().await,
                2 => drop(self.store.request_progress().await),
                3 if self.burst > 0 => {
                    for _ in 0..self.burst {
                        count += 1;
                        self.write(format!("{number}-{count}")).await;
                    }
                }
                _ => self.write(format!("{number}-{count}")).await,
            }
            self.world.pause().await;
        }
    }

    async fn write(&self, value: String) {
        let dice = &self.world.dice;
        let key = format!("{}{}", dice.pick(PREFIXES), dice.below(14));
        let held = self.store.recall("", &key).or(self.truth.get(&key));
        let expect = match held {
            Some(entry) if dice.chance(900) => Expect::Revision(entry.mod_revision),
            None if dice.chance(100) => Expect::Revision(Revision(2)),
            _ => Expect::Absent,
        };
        let lease = match dice.chance(150) {
            true => self.grant().await,
            false => None,
        };
        let write = match dice.chance(200) {
            true => Write::Delete,
            false => Write::Put {
                value: value.into(),
                lease,
            },
        };
        let asked = Asked {
            key: key.clone(),
            expect,
            write: write.clone(),
        };
        let number = {
            let mut ledger = self.ledger();
            ledger.last += 1;
            let number = ledger.last;
            ledger.asked.insert(number, asked.clone());
            number
        };
        let written = self.store.write(&key, expect, write).await;
        self.learn();
        let open = self.ledger().asked.remove(&number).is_some();
        if let Err(what) = self.check(&asked, &written, open) {
            self.world
                .fail("a write is answered as it happened", format!("{asked:?}: {what}"));
        }
    }

    /// `open`: nothing was seen to happen.
    fn check(&self, asked: &Asked, written: &Result<Written, StoreError>, open: bool) -> Result<(), String> {
        let nothing_to_do = matches!(asked.write, Write::Delete) && asked.expect == Expect::Absent;
        let right = match written {
            Ok(Written::Done { .. }) => open == nothing_to_do,
            Ok(Written::Conflict { current, revision }) => {
                let keys = self.truth.keys(0, *revision).unwrap_or_default();
                open && keys.get(&*asked.key) == current.as_ref()
            }
            Err(StoreError::LeaseNotFound(_)) => open,
            Err(_) => false,
        };
        match right {
            true => Ok(()),
            false => Err(format!("{written:?}, nothing happened: {open}")),
        }
    }

    async fn grant(&self) -> Option<LeaseId> {
        let ttl = Duration::from_secs(self.world.dice.between(1, 12) as u64);
        let lease = self.store.grant(ttl).await.ok()?;
        let expires = Instant::now() + LeasePool::lifetime(ttl);
        self.ledger().leases.entry(lease).or_insert(expires);
        Some(lease)
    }

    async fn compact(&self) {
        self.learn();
        let back = self.world.dice.below(60) as u64;
        let revision = Revision(self.truth.now().revision.0.saturating_sub(back));
        if let Err(error) = self.store.compact(revision).await {
            self.world.fail("history can be forgotten", error.to_string());
        }
    }

    /// A list of now or of the past, and events.
    async fn read(&self) {
        self.learn();
        let now = self.truth.now();
        let prefix = *self.world.dice.pick(PREFIXES);
        let back = self.world.dice.below(40) as u64;
        let past = Revision(now.revision.0.saturating_sub(back).max(1));
        let options = ListOptions {
            revision: self.world.dice.chance(500).then_some(past),
            ..ListOptions::default()
        };
        match self.store.list(prefix, options.clone()).await {
            Ok(listed) if options.revision.is_none() => {
                check_all(&self.world, &self.truth, now, prefix, listed.revision, &listed.entries);
            }
            Ok(listed) => self.check_past(prefix, past, &listed.entries),
            Err(StoreError::Compacted { oldest }) if past < oldest => {}
            Err(error) => self
                .world
                .fail("what is kept can be listed", format!("{past}: {error}")),
        }
        let held = self.store.held_position(prefix).unwrap_or_default();
        let from = Position { revision: past, ..held };
        if let Some(events) = self.store.events(prefix, from, now.revision, 10_000)
            && events != self.truth.events(0, prefix, past, now.revision)
        {
            let what = format!("{prefix} from {past} to {now:?}");
            self.world.fail("events from memory are those that were", what);
        }
    }

    fn check_past(&self, prefix: &str, past: Revision, entries: &[Entry]) {
        let keys = self.truth.keys(0, past).unwrap_or_default();
        if truth::below(&keys, prefix) != entries {
            let what = format!("{prefix} at {past}: {} keys", entries.len());
            self.world.fail("a list shows one revision whole", what);
        }
    }

    async fn recover(&self, places: &[(String, Arc<Mutex<Option<Place>>>)]) {
        let mut waited = Duration::ZERO;
        loop {
            sleep(Duration::from_secs(1)).await;
            waited += Duration::from_secs(1);
            self.learn();
            let behind = places.iter().filter_map(|(prefix, place)| {
                let place = *place.lock().unwrap_or_else(PoisonError::into_inner);
                let left = place.map(|place| self.truth.count_after(0, prefix, place.told));
                (left != Some(0)).then(|| format!("watch of {prefix} at {place:?}"))
            });
            let behind: Vec<String> = behind.collect();
            if behind.is_empty() {
                return;
            }
            if waited > RECOVERY {
                return self.world.fail(PROMISES.recovery, behind.join("; "));
            }
        }
    }
}
