//! Random sequences of what a writer is told and what happens to it, compared with a model after each step: writes,
//! refused writes, ticks, compactions, leases, commits that fail, checkpoints, closes and kills. What was opened again
//! holds everything, at each revision, and its proofs are right.
//!
//! `KEELSON_SEQUENCES=1000000` tries so many, beginning at the seed `KEELSON_SEED`. A seed that fails is printed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{mpsc, oneshot};

use super::super::database::{CommitFault, Database};
use super::super::writer::{Command, Writer};
use super::super::{offline, repair};
use crate::maintenance::{Due, Schedule};
use crate::{
    Clock, Entry, Event, Expect, HistoryLimits, LeaseId, ListOptions, Position, Revision, StoreError, Write, Written,
};

const SEQUENCES: u64 = 2_000;
const STEPS: u32 = 14;
const KEYS: u32 = 9;

#[derive(Default)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

/// What a key holds.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Held {
    value: Bytes,
    created: u64,
    modified: u64,
    version: u64,
    lease: Option<LeaseId>,
}

impl From<&Entry> for Held {
    fn from(entry: &Entry) -> Held {
        Held {
            value: entry.value.clone(),
            created: entry.create_revision.0,
            modified: entry.mod_revision.0,
            version: entry.version,
            lease: entry.lease,
        }
    }
}

type State = BTreeMap<String, Held>;

/// What must be so.
#[derive(Default)]
struct Model {
    state: State,
    revision: u64,
    /// The states of the past.
    past: BTreeMap<u64, State>,
    /// History before this revision was to be forgotten, and that was confirmed.
    compacted: u64,
}

/// A write, and what its answer must be.
struct Asked {
    answer: oneshot::Receiver<Result<Written, StoreError>>,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    Done(u64),
    Conflict(Option<Held>),
    NoLease,
}

impl Model {
    fn new() -> Model {
        let mut model = Model {
            revision: 1,
            ..Model::default()
        };
        model.past.insert(1, State::new());
        model
    }

    fn put(&mut self, key: &str, value: Bytes, lease: Option<LeaseId>) {
        self.revision += 1;
        let before = self.state.get(key);
        let held = Held {
            value,
            created: before.map_or(self.revision, |held| held.created),
            modified: self.revision,
            version: before.map_or(1, |held| held.version + 1),
            lease,
        };
        self.state.insert(key.to_owned(), held);
        self.past.insert(self.revision, self.state.clone());
    }

    fn delete(&mut self, key: &str) {
        self.revision += 1;
        self.state.remove(key);
        self.past.insert(self.revision, self.state.clone());
    }

    /// What a write must come to after those before it, which it is added to.
    fn write(&mut self, key: &str, expect: Expect, write: &Write, lease_known: bool) -> Expected {
        let held = self.state.get(key);
        let holds = match expect {
            Expect::Absent => held.is_none(),
            Expect::Revision(wanted) => held.map_or(0, |held| held.modified) == wanted.0,
        };
        match write {
            _ if !holds => return Expected::Conflict(held.cloned()),
            Write::Put { .. } if !lease_known => return Expected::NoLease,
            Write::Put { value, lease } => self.put(key, value.clone(), *lease),
            Write::Delete if held.is_some() => self.delete(key),
            Write::Delete => {}
        }
        Expected::Done(self.revision)
    }
}

struct Sequence {
    rng: SmallRng,
    dir: PathBuf,
    clock: Arc<Hands>,
    limits: HistoryLimits,
    /// Keys that may wait for the table of current keys.
    waiting: usize,
    writer: Option<Writer>,
    schedule: Schedule,
    model: Model,
    leases: Vec<LeaseId>,
    /// A tick that was due earlier.
    late: Option<Due>,
    context: String,
}

fn open(dir: &Path, clock: &Arc<Hands>, waiting: usize) -> Result<Writer, StoreError> {
    let (_, commands) = mpsc::channel(1);
    let mut writer = Writer::open(dir, clock.clone(), commands)?;
    writer.index.limit(waiting);
    Ok(writer)
}

impl Sequence {
    fn new(seed: u64, parent: &Path) -> Sequence {
        let mut rng = SmallRng::seed_from_u64(seed);
        let dir = parent.join(seed.to_string());
        let clock = Arc::new(Hands::default());
        let limits = HistoryLimits {
            age: rng
                .random_bool(0.5)
                .then(|| Duration::from_secs(rng.random_range(1..20))),
            bytes: if rng.random_bool(0.5) { 3_000 } else { usize::MAX },
        };
        let waiting = rng.random_range(1..8);
        let writer = open(&dir, &clock, waiting).unwrap();
        let schedule = Schedule::new(writer.shared.mvcc.clone(), clock.clone(), limits);
        Sequence {
            rng,
            dir,
            clock,
            limits,
            waiting,
            writer: Some(writer),
            schedule,
            model: Model::new(),
            leases: Vec::new(),
            late: None,
            context: format!("seed {seed}"),
        }
    }

    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("open between steps")
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            0..10 => self.round(None),
            10..12 => self.round(Some(CommitFault::Undone)),
            12..14 => self.round(Some(CommitFault::Durable)),
            14 => {
                self.clock.0.fetch_add(self.rng.random_range(1..30), Ordering::Relaxed);
            }
            15 => {
                let writer = self.writer();
                writer.shared.progress.checkpoint(&writer.database).unwrap();
            }
            16 => self.reopen(true),
            _ => self.reopen(false),
        }
    }

    /// What the writer does with some commands at once.
    fn round(&mut self, fault: Option<CommitFault>) {
        let before = self.model.revision;
        let mut model = Model {
            state: self.model.state.clone(),
            ..Model::default()
        };
        model.revision = before;
        let (mut commands, mut asked, mut granted, mut compacted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.rng.random_range(0..6) {
            match self.rng.random_range(0..12) {
                0 => {
                    let (answer, answered) = oneshot::channel();
                    let ttl = Duration::from_secs(self.rng.random_range(1..20));
                    commands.push(Command::Grant { ttl, answer });
                    granted.push(answered);
                }
                1 => {
                    let (answer, answered) = oneshot::channel();
                    let revision = Revision(self.rng.random_range(0..=before + 2));
                    commands.push(Command::Compact { revision, answer });
                    compacted.push((revision, answered));
                }
                2 | 3 => commands.push(Command::Tick(self.due())),
                _ => {
                    let (command, write) = self.a_write(&mut model);
                    commands.push(command);
                    asked.push(write);
                }
            }
        }
        self.writer().database.fault = fault;
        assert!(self.writer().handle(commands).is_none());
        let struck = fault.is_some() && self.writer().database.fault.take().is_none();
        let failed = struck && self.writer().shared.fault().is_some();
        if failed {
            // takes in what reached the disk nevertheless
            self.writer().handle(Vec::new());
        }
        if fault == Some(CommitFault::Undone) && failed {
            assert_eq!(
                self.writer().shared.mvcc.current_revision().ok(),
                Some(Revision(before)),
                "{}",
                self.context
            );
        } else {
            self.model.state = model.state;
            self.model.revision = model.revision;
            self.model.past.append(&mut model.past);
            self.expire();
        }
        for asked in asked {
            self.compare_answer(asked, failed);
        }
        for mut granted in granted {
            let id = granted.try_recv().expect("answered");
            assert_eq!(id.is_err(), failed, "{}", self.context);
            self.leases.extend(id);
        }
        for (revision, mut answer) in compacted {
            match answer.try_recv().expect("answered") {
                Ok(()) => self.model.compacted = self.model.compacted.max(revision.0),
                Err(StoreError::Future { .. }) => assert!(revision.0 > before, "{}", self.context),
                Err(error) => assert!(failed, "{}: {error}", self.context),
            }
        }
        self.compare();
    }

    /// What is due now, or was earlier and comes late.
    fn due(&mut self) -> Due {
        let due = self.schedule.due();
        match self.rng.random_bool(0.2) {
            true => self.late.replace(due).unwrap_or_default(),
            false => due,
        }
    }

    fn a_write(&mut self, model: &mut Model) -> (Command, Asked) {
        let key = format!("/k/{}", self.rng.random_range(0..KEYS));
        let held = model.state.get(&key).map_or(0, |held| held.modified);
        let expect = match self.rng.random_range(0..5) {
            0 => Expect::Absent,
            1 => Expect::Revision(Revision(self.rng.random_range(0..=model.revision + 1))),
            _ => Expect::Revision(Revision(held)),
        };
        let write = match self.rng.random_range(0..4) {
            0 => Write::Delete,
            _ => {
                let size = self.rng.random_range(1..400);
                let lease = (self.rng.random_bool(0.3) && !self.leases.is_empty())
                    .then(|| self.leases[self.rng.random_range(0..self.leases.len())]);
                Write::Put {
                    value: vec![self.rng.random_range(b'a'..=b'z'); size].into(),
                    lease,
                }
            }
        };
        let known = match &write {
            Write::Put { lease: Some(lease), .. } => self.writer().shared.mvcc.leases().contains(*lease),
            _ => true,
        };
        let expected = model.write(&key, expect, &write, known);
        let (answer, answered) = oneshot::channel();
        let command = Command::Write {
            key,
            expect,
            write,
            answer,
        };
        let asked = Asked {
            answer: answered,
            expected,
        };
        (command, asked)
    }

    fn compare_answer(&self, mut asked: Asked, failed: bool) {
        let answer = asked.answer.try_recv().expect("answered");
        let right = match (&answer, &asked.expected) {
            (Ok(Written::Done { revision }), Expected::Done(expected)) => revision.0 == *expected,
            (Ok(Written::Conflict { current, .. }), Expected::Conflict(expected)) => {
                current.as_ref().map(Held::from) == *expected
            }
            (Err(StoreError::LeaseNotFound(_)), Expected::NoLease) => true,
            _ => false,
        };
        // A round that failed answers nothing but that.
        let right = right || failed && matches!(answer, Err(StoreError::Unavailable(_)));
        assert!(right, "{}: {answer:?}, not {:?}", self.context, asked.expected);
    }

    /// Beyond the writes, only keys under a lease whose time was over may have gone.
    fn expire(&mut self) {
        let mvcc = self.writer().shared.mvcc.clone();
        let now = mvcc.position().unwrap();
        let known = Position {
            revision: Revision(self.model.revision),
            ..now
        };
        let Some(events) = mvcc.events("", known, now.revision, usize::MAX) else {
            panic!("{}: {known:?} to {now:?} is forgotten", self.context)
        };
        for event in events {
            let Event::Delete { key, revision, .. } = event else {
                panic!("{}: nobody wrote {event:?}", self.context)
            };
            let lease = self.model.state.get(&*key).and_then(|held| held.lease);
            assert!(lease.is_some(), "{}: {key} has gone by itself", self.context);
            self.model.delete(&key);
            assert_eq!(revision.0, self.model.revision, "{}", self.context);
        }
    }

    fn compare(&mut self) {
        let view = self.writer().shared.mvcc.view().unwrap();
        assert_eq!(view.revision(), self.model.revision, "{}", self.context);
        let held = view.list("/", &ListOptions::default()).unwrap().entries;
        assert_eq!(state_of(&held), self.model.state, "{}", self.context);
    }

    fn reopen(&mut self, gracefully: bool) {
        let writer = self.writer.take().expect("open between steps");
        match gracefully {
            true => writer.close(),
            // The files stay as they are.
            false => drop(writer),
        }
        let checked = offline::check(&self.dir).unwrap_or_else(|error| panic!("{}: {error}", self.context));
        assert_eq!(checked.revision.0, self.model.revision, "{}", self.context);
        if self.rng.random_bool(0.2) {
            self.spoil_a_proof();
        }
        let opened = open(&self.dir, &self.clock, self.waiting);
        let writer = opened.unwrap_or_else(|error| panic!("{}: {error}", self.context));
        let view = writer.shared.mvcc.view().unwrap();
        self.schedule = Schedule::new(writer.shared.mvcc.clone(), self.clock.clone(), self.limits);
        self.writer = Some(writer);
        self.compare();
        assert!(view.oldest() >= self.model.compacted, "{}", self.context);
        for (revision, state) in self.model.past.range(view.oldest().max(1)..) {
            let options = ListOptions {
                revision: Some(Revision(*revision)),
                ..ListOptions::default()
            };
            let held = view.list("/", &options).unwrap().entries;
            assert_eq!(state_of(&held), *state, "{} at revision {revision}", self.context);
        }
    }

    /// What only proves that nothing is missing may itself be wrong: then it is noticed, and nothing is lost.
    fn spoil_a_proof(&mut self) {
        let file = Database::connect(&self.dir.join("store.db")).unwrap();
        let spoil = match self.rng.random_range(0..4) {
            0 => "DELETE FROM current",
            1 => "DELETE FROM current WHERE key < '/k/4'",
            2 => "UPDATE current SET revision = revision - 1",
            _ => "INSERT INTO current SELECT '/never', max(revision) FROM history",
        };
        let Ok(changed) = file.execute(spoil) else {
            return; // there is no row, and so no revision
        };
        drop(file);
        let checked = offline::check(&self.dir);
        assert_eq!(checked.is_err(), changed > 0, "{}: {spoil}: {checked:?}", self.context);
        if self.rng.random_bool(0.5) {
            let repaired = repair(&self.dir, false).unwrap_or_else(|error| panic!("{}: {error}", self.context));
            assert_eq!(repaired.mended.is_empty(), changed == 0, "{}: {spoil}", self.context);
            assert_eq!(repaired.report.revision.0, self.model.revision, "{}", self.context);
            offline::check(&self.dir).unwrap_or_else(|error| panic!("{}: {error}", self.context));
        }
    }
}

fn state_of(entries: &[Entry]) -> State {
    entries
        .iter()
        .map(|entry| (entry.key.to_string(), Held::from(entry)))
        .collect()
}

/// A folder in memory, if the system has one.
fn parent() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

fn run(seeds: impl Iterator<Item = u64>) {
    let parent = parent();
    for seed in seeds {
        let context = format!("KEELSON_SEED={seed} KEELSON_SEQUENCES=1 repeats it");
        let attempt = std::panic::AssertUnwindSafe(|| {
            let mut sequence = Sequence::new(seed, parent.path());
            for _ in 0..STEPS {
                sequence.step();
            }
            sequence.reopen(true);
            std::fs::remove_dir_all(&sequence.dir).unwrap();
        });
        if let Err(panic) = std::panic::catch_unwind(attempt) {
            eprintln!("{context}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn sequences_leave_what_the_model_has() {
    let (first, count) = (number("KEELSON_SEED", 0), number("KEELSON_SEQUENCES", SEQUENCES));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || run((first + thread..first + count).step_by(threads as usize)));
        }
    });
    println!("{count} sequences from seed {first}");
}
