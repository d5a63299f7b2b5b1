//! Runs of a store that one server has for itself: in memory, forgotten now and then, or in a folder, whose writer may
//! be killed and whose commits may fail.
//!
//! What was written is learned from the store's own events, each of which has to be what somebody asked for (values
//! tell them apart) or the end of a lease.

mod engine;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::actors::readers::check_all;
use super::actors::watchers::{Place, Watcher};
use super::executor::{self, Spawner};
use super::random::Dice;
use super::truth::{self, Now, Truth};
use super::world::{Violation, World};
use super::{Outcome, PROMISES};
use crate::lease_pool::LeasePool;
use crate::{
    Entry, Event, Expect, HistoryLimits, LeaseId, ListOptions, Position, Revision, Store, StoreError, Write, Written,
};

const PREFIXES: &[&str] = &["/a/", "/b/"];
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
    /// `None`: not yet.
    store: Mutex<Option<Arc<dyn Store>>>,
    ledger: Mutex<Ledger>,
    /// Writes at once, now and then: more than a watch's queue holds.
    burst: usize,
    /// Requests may fail.
    fails: bool,
}

/// Runs what a seed makes of it, with a store in memory.
pub fn in_memory(seed: u64, talks: bool) -> Outcome {
    run(seed, talks, false)
}

/// Runs what a seed makes of it, with the store of a folder.
pub fn in_folder(seed: u64, talks: bool) -> Outcome {
    run(seed, talks, true)
}

fn run(seed: u64, talks: bool, folder: bool) -> Outcome {
    let dice = Dice::new(seed);
    let done = executor::run(dice.clone(), move |spawner| play(dice, spawner, talks, folder));
    Outcome {
        violation: done.output,
        trace: done.trace,
        steps: done.steps,
        plan: if folder {
            "a store in a folder"
        } else {
            "a store in memory"
        }
        .to_owned(),
    }
}

async fn play(dice: Dice, spawner: Spawner, talks: bool, folder: bool) -> Option<Violation> {
    let world = World::new(dice.clone(), spawner, talks);
    let limits = HistoryLimits {
        age: dice
            .chance(500)
            .then(|| Duration::from_secs(dice.between(2, 10) as u64)),
        bytes: *dice.pick(&[usize::MAX, 400_000, 20_000]),
    };
    let burst = dice.chance(40) && !folder;
    let run = Arc::new(Run {
        world: world.clone(),
        truth: Arc::new(Truth::of_nothing()),
        store: Mutex::default(),
        ledger: Mutex::default(),
        burst: if burst { *dice.pick(&[400, 1200]) } else { 0 },
        fails: folder,
    });
    match folder {
        true => world.spawner.spawn(engine::in_folder(run.clone(), limits)),
        false => world.spawner.spawn(engine::in_memory(run.clone(), limits)),
    }
    while run.store().is_none() && world.violation().is_none() {
        sleep(Duration::from_millis(1)).await;
    }
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

    fn store(&self) -> Option<Arc<dyn Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that there is, once there is any.
    fn current(&self) -> Arc<dyn Store> {
        self.store().unwrap()
    }

    fn begin(&self, store: Arc<dyn Store>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }

    /// Nothing of what was written is there any more.
    fn forget(&self) {
        self.truth.fork(Revision(1));
        *self.ledger() = Ledger::default();
    }

    fn watcher(self: &Arc<Self>) -> (String, Arc<Mutex<Option<Place>>>) {
        let dice = &self.world.dice;
        let prefix = dice.pick(&["/a/", "/b/", "/", "/a/1"]).to_string();
        let (learning, served) = (self.clone(), self.clone());
        let watcher = Watcher {
            world: self.world.clone(),
            truth: self.truth.clone(),
            prefix: prefix.clone(),
            direct: dice.chance(300),
            ignorant: false,
            learn: Arc::new(move || learning.learn()),
            slowness: *dice.pick(&[0, 0, 50, 2000]),
            place: Arc::default(),
        };
        let place = watcher.place.clone();
        self.world.spawner.spawn(watcher.run(move || served.current()));
        (prefix, place)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what has happened since the last call.
    fn learn(&self) {
        let known = self.truth.now().revision;
        let store = self.current();
        let held = store.held_position("").filter(|held| held.revision > known);
        let Some(now) = held else {
            return;
        };
        let from = Position { revision: known, ..now };
        let now = now.revision;
        let Some(events) = store.events("", from, now, usize::MAX) else {
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
                2 => drop(self.current().request_progress().await),
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
        let asked = self.a_write(value).await;
        let number = {
            let mut ledger = self.ledger();
            ledger.last += 1;
            let number = ledger.last;
            ledger.asked.insert(number, asked.clone());
            number
        };
        let store = self.current();
        let written = store.write(&asked.key, asked.expect, asked.write.clone()).await;
        self.world.say(|| format!("{asked:?}: {written:?}"));
        self.learn();
        // After a failure it may still happen, or have happened.
        if written.is_ok() {
            self.ledger().asked.remove(&number);
        }
        if let Err(what) = self.check(&asked, &written) {
            let what = format!("{asked:?}: {written:?}: {what}");
            self.world.fail("a write is answered as it happened", what);
        }
    }

    async fn a_write(&self, value: String) -> Asked {
        let dice = &self.world.dice;
        let key = format!("{}{}", dice.pick(PREFIXES), dice.below(14));
        let expect = match self.truth.get(&key) {
            Some(entry) if dice.chance(900) => Expect::Revision(entry.mod_revision),
            None if dice.chance(100) => Expect::Revision(Revision(2)),
            _ => Expect::Absent,
        };
        let lease = match dice.chance(150) {
            true => self.grant().await,
            false => None,
        };
        let value = value.into();
        let write = match dice.chance(200) {
            true => Write::Delete,
            false => Write::Put { value, lease },
        };
        Asked { key, expect, write }
    }

    fn check(&self, asked: &Asked, written: &Result<Written, StoreError>) -> Result<(), String> {
        let timeline = self.truth.now().timeline;
        let nothing_to_do = matches!(asked.write, Write::Delete) && asked.expect == Expect::Absent;
        match written {
            Ok(Written::Done { revision }) if !nothing_to_do => {
                let before = Revision(revision.0.saturating_sub(1));
                let events = self.truth.events(timeline, &asked.key, before, *revision);
                match events.iter().any(|event| asked.explains(event)) {
                    true => Ok(()),
                    false => Err("it did not happen then".to_owned()),
                }
            }
            Ok(Written::Conflict { current, revision }) => {
                let keys = self.truth.keys(timeline, *revision).unwrap_or_default();
                match keys.get(&*asked.key) == current.as_ref() {
                    true => Ok(()),
                    false => Err(format!("it held {:?}", keys.get(&*asked.key))),
                }
            }
            Ok(Written::Done { .. }) | Err(StoreError::LeaseNotFound(_)) => Ok(()),
            Err(_) if self.fails => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn grant(&self) -> Option<LeaseId> {
        let ttl = Duration::from_secs(self.world.dice.between(1, 12) as u64);
        let lease = self.current().grant(ttl).await.ok()?;
        let expires = Instant::now() + LeasePool::lifetime(ttl);
        self.ledger().leases.entry(lease).or_insert(expires);
        Some(lease)
    }

    async fn compact(&self) {
        self.learn();
        let back = self.world.dice.below(60) as u64;
        let revision = Revision(self.truth.now().revision.0.saturating_sub(back));
        if let Err(error) = self.current().compact(revision).await
            && !self.fails
        {
            self.world.fail("history can be forgotten", error.to_string());
        }
    }

    /// A list of now or of the past, events, and what has not come yet.
    async fn read(&self) {
        self.learn();
        let (now, store) = (self.truth.now(), self.current());
        let prefix = *self.world.dice.pick(PREFIXES);
        let back = self.world.dice.below(40) as u64;
        let past = Revision(now.revision.0.saturating_sub(back).max(1));
        let options = ListOptions {
            revision: self.world.dice.chance(500).then_some(past),
            ..ListOptions::default()
        };
        match store.list(prefix, options.clone()).await {
            Ok(listed) if options.revision.is_none() => {
                check_all(&self.world, &self.truth, now, prefix, listed.revision, &listed.entries);
            }
            Ok(listed) => self.check_past(prefix, past, &listed.entries),
            Err(StoreError::Compacted { oldest }) if past < oldest => {}
            Err(StoreError::Closed) if self.fails => {}
            Err(error) => self
                .world
                .fail("what is kept can be listed", format!("{past}: {error}")),
        }
        self.check_events(&*store, prefix, past, now);
        let ahead = Revision(now.revision.0 + 1 + back);
        if store.watch(prefix, ahead).await.is_ok() {
            let what = format!("{ahead}, now {now:?}");
            self.world.fail("a revision that has not come is refused", what);
        }
    }

    fn check_events(&self, store: &dyn Store, prefix: &str, past: Revision, now: Now) {
        let Some(held) = store.held_position(prefix) else {
            return;
        };
        let from = Position { revision: past, ..held };
        if let Some(events) = store.events(prefix, from, now.revision, 10_000)
            && events != self.truth.events(now.timeline, prefix, past, now.revision)
        {
            let what = format!("{prefix} from {past} to {now:?}");
            self.world.fail("events from memory are those that were", what);
        }
        if let Some(to) = store.unchanged_since(prefix, from)
            && !self.truth.events(now.timeline, prefix, past, to.revision).is_empty()
        {
            let what = format!("{prefix} from {past} to {}", to.revision);
            self.world.fail("what has changed is not taken for unchanged", what);
        }
    }

    fn check_past(&self, prefix: &str, past: Revision, entries: &[Entry]) {
        let timeline = self.truth.now().timeline;
        let keys = self.truth.keys(timeline, past).unwrap_or_default();
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
                let now = self.truth.now().timeline;
                let left = place.map(|place| (place.timeline, self.truth.count_after(now, prefix, place.told)));
                (left != Some((now, 0))).then(|| format!("watch of {prefix} at {place:?}"))
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
