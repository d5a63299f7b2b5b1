//! Linearizability of each key: is there an order of its operations, each at some moment between its begin and its end,
//! in which a single copy of the object would have answered as the servers did? A search after Wing and Gong with
//! Lowe's memory of states that led nowhere.

use std::collections::{BTreeMap, HashSet};

use crate::record::{Action, History, Id, Key, Operation, Outcome};
use crate::{Timeline, UNDECIDED, Violation};

/// The search gives up after so many steps per operation, which no history of the driver comes near.
const STEPS_PER_OPERATION: usize = 20_000;

pub(crate) fn check(history: &History, timeline: &Timeline, violations: &mut Vec<Violation>) {
    let mut by_key: BTreeMap<Key, Vec<&Operation>> = BTreeMap::new();
    let ends = ends(history, timeline);
    for operation in history.operations.iter().chain(&ends) {
        if matters(operation, history, timeline) {
            by_key.entry(operation.key).or_default().push(operation);
        }
    }
    let mut held: BTreeMap<Key, Option<Id>> = BTreeMap::new();
    for (_, key, id) in &history.before {
        held.insert(*key, *id);
    }
    for (key, operations) in by_key {
        let before = history.before.iter().map(|(revision, _, _)| *revision).max();
        let changes = history.complete.then(|| timeline.contents(key, before.unwrap_or(0)));
        let begin = State {
            held: held.get(&key).copied().flatten(),
            changed: 0,
        };
        let is_known = changes.is_some();
        match Search::new(operations, timeline, changes).run(begin) {
            Ok(()) => {}
            // Where nobody heard of all changes, each write without an answer may have come at any time.
            Err(Failure::TooLong) if !is_known => {
                violations.push(Violation::new(UNDECIDED, format!("key {key}: {}", Failure::TooLong)));
            }
            Err(why) => violations.push(Violation::new("linearizable", format!("key {key}: {why}"))),
        }
    }
}

/// Objects that end by themselves: a deletion that nobody asked for, when their time is over.
fn ends(history: &History, timeline: &Timeline) -> Vec<Operation> {
    let Some(lifetime) = history.lifetime else {
        return Vec::new();
    };
    let made = history
        .operations
        .iter()
        .filter_map(|operation| match operation.action {
            Action::Create(id) if timeline.revision_of(id).is_some() => Some((operation, operation.begin + lifetime)),
            _ => None,
        });
    made.map(|(operation, begin)| Operation {
        action: Action::Delete { expected: None },
        outcome: Outcome::Unknown,
        begin,
        end: begin,
        ..operation.clone()
    })
    .collect()
}

/// Whether an operation can have had an effect, or tells something.
fn matters(operation: &Operation, history: &History, timeline: &Timeline) -> bool {
    match (operation.outcome, operation.action) {
        (Outcome::Refused, _) | (Outcome::Unknown, Action::Read) => false,
        (Outcome::Unknown, Action::Create(id) | Action::Update { id, .. } | Action::Apply(id)) => {
            !history.complete || timeline.revision_of(id).is_some()
        }
        _ => true,
    }
}

/// What the key holds after an operation; the outer `None`: it can't have been answered like this then.
fn step(held: Option<Id>, operation: &Operation, timeline: &Timeline) -> Option<Option<Id>> {
    let at = |expected: Option<u64>| match (held, expected) {
        (Some(id), Some(expected)) => timeline.revision_of(id) == Some(expected),
        (Some(_), None) => true,
        (None, _) => false,
    };
    match (operation.outcome, operation.action) {
        (Outcome::Done(_) | Outcome::Unknown, Action::Create(id)) => held.is_none().then_some(Some(id)),
        (Outcome::Done(_) | Outcome::Unknown, Action::Update { id, expected }) => at(expected).then_some(Some(id)),
        (Outcome::Done(_) | Outcome::Unknown, Action::Apply(id)) => Some(Some(id)),
        (Outcome::Done(_) | Outcome::Unknown, Action::Delete { expected }) => at(expected).then_some(None),
        (Outcome::Done(found), Action::Read) => (found.map(|version| version.id) == held).then_some(held),
        (Outcome::Absent, _) => held.is_none().then_some(held),
        (Outcome::Exists, _) => held.is_some().then_some(held),
        (Outcome::Conflict, Action::Update { expected, .. } | Action::Delete { expected }) => {
            (held.is_some() && !at(expected)).then_some(held)
        }
        _ => Some(held),
    }
}

/// Why no order was found.
#[derive(Debug)]
enum Failure {
    /// There is none.
    None(String),
    /// It was searched for too long.
    TooLong,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::None(why) => f.write_str(why),
            Failure::TooLong => f.write_str("the search took too long; use a shorter run"),
        }
    }
}

/// What the key holds, and after how many changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    held: Option<Id>,
    changed: usize,
}

/// A begin or an end in the list of what is still to be put in order.
#[derive(Clone, Copy)]
struct Entry {
    operation: usize,
    is_end: bool,
    previous: usize,
    next: usize,
}

struct Search<'a> {
    operations: Vec<&'a Operation>,
    timeline: &'a Timeline,
    /// What the key held after each of its changes, if all are known: then each write has its place among them.
    changes: Option<Vec<Option<Id>>>,
    /// Deletions without a condition and without an answer, in the order of time. They are all alike but for their
    /// begin: it is enough to try the first that is left.
    alike: Vec<usize>,
    /// A doubly linked list in the order of time; 0 is its head, which is no entry.
    entries: Vec<Entry>,
    /// Ends that are in the list.
    ends: usize,
    /// By operation: the places of its begin and its end (0: it has none, since its outcome is unknown).
    places: Vec<(usize, usize)>,
}

impl<'a> Search<'a> {
    fn new(operations: Vec<&'a Operation>, timeline: &'a Timeline, changes: Option<Vec<Option<Id>>>) -> Self {
        let mut moments = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            moments.push((operation.begin, false, index));
            if operation.outcome != Outcome::Unknown {
                moments.push((operation.end, true, index));
            }
        }
        moments.sort_unstable();
        let alike = |index: &usize| {
            let Operation { action, outcome, .. } = operations[*index];
            *action == Action::Delete { expected: None } && *outcome == Outcome::Unknown
        };
        let begins = moments.iter().filter(|(_, is_end, _)| !is_end);
        let alike = begins.map(|(_, _, index)| *index).filter(alike).collect();
        let head = Entry {
            operation: usize::MAX,
            is_end: false,
            previous: 0,
            next: 0,
        };
        let mut search = Search {
            places: vec![(0, 0); operations.len()],
            operations,
            timeline,
            changes,
            alike,
            entries: vec![head; moments.len() + 1],
            ends: 0,
        };
        let count = search.entries.len();
        for (index, (_, is_end, operation)) in moments.into_iter().enumerate() {
            let place = index + 1;
            search.entries[place] = Entry {
                operation,
                is_end,
                previous: place - 1,
                next: (place + 1) % count,
            };
            let places = &mut search.places[operation];
            *(if is_end { &mut places.1 } else { &mut places.0 }) = place;
            search.ends += usize::from(is_end);
        }
        search.entries[0].next = 1 % count;
        search
    }

    /// The state after an operation; `None`: it can't have been answered like this then, or another is to be tried.
    fn step(&self, state: State, index: usize, done: &[u64]) -> Option<State> {
        let operation = self.operations[index];
        let is_left = |one: &&usize| done[**one / 64] & 1 << (**one % 64) == 0;
        if self.alike.contains(&index) && self.alike.iter().find(is_left) != Some(&index) {
            return None;
        }
        let held = step(state.held, operation, self.timeline)?;
        let writes =
            operation.action != Action::Read && matches!(operation.outcome, Outcome::Done(_) | Outcome::Unknown);
        if !writes {
            return Some(state);
        }
        let changed = state.changed + 1;
        let known = self.changes.as_ref();
        known
            .is_none_or(|changes| changes.get(state.changed) == Some(&held))
            .then_some(State { held, changed })
    }

    fn run(mut self, mut state: State) -> Result<(), Failure> {
        let mut done = vec![0u64; self.operations.len().div_ceil(64)];
        let mut tried: HashSet<(Vec<u64>, State)> = HashSet::new();
        let mut order: Vec<(usize, State)> = Vec::new();
        let mut place = self.entries[0].next;
        let (mut longest, mut stuck) = (0, None);
        let mut budget = STEPS_PER_OPERATION * self.operations.len();
        while self.ends > 0 {
            budget = budget.checked_sub(1).ok_or(Failure::TooLong)?;
            let entry = self.entries[place];
            if !entry.is_end && place != 0 {
                let after = self.step(state, entry.operation, &done);
                let mark = |done: &mut Vec<u64>| done[entry.operation / 64] ^= 1 << (entry.operation % 64);
                if let Some(after) = after {
                    mark(&mut done);
                    if tried.insert((done.clone(), after)) {
                        order.push((entry.operation, state));
                        state = after;
                        self.take_out(entry.operation);
                        place = self.entries[0].next;
                        continue;
                    }
                    mark(&mut done);
                }
                place = entry.next;
                continue;
            }
            if stuck.is_none() || order.len() > longest {
                longest = order.len();
                stuck = Some((entry.operation, state.held));
            }
            let Some((last, before)) = order.pop() else {
                return Err(Failure::None(self.describe(longest, stuck)));
            };
            state = before;
            done[last / 64] ^= 1 << (last % 64);
            self.put_back(last);
            place = self.entries[self.places[last].0].next;
        }
        Ok(())
    }

    fn take_out(&mut self, operation: usize) {
        let (begin, end) = self.places[operation];
        for place in [begin, end].into_iter().filter(|place| *place != 0) {
            let Entry { previous, next, .. } = self.entries[place];
            self.entries[previous].next = next;
            self.entries[next].previous = previous;
        }
        self.ends -= usize::from(end != 0);
    }

    fn put_back(&mut self, operation: usize) {
        let (begin, end) = self.places[operation];
        for place in [end, begin].into_iter().filter(|place| *place != 0) {
            let Entry { previous, next, .. } = self.entries[place];
            self.entries[previous].next = place;
            self.entries[next].previous = place;
        }
        self.ends += usize::from(end != 0);
    }

    fn describe(&self, longest: usize, stuck: Option<(usize, Option<Id>)>) -> String {
        let count = self.operations.len();
        match stuck.and_then(|(operation, held)| Some((self.operations.get(operation)?, held))) {
            Some((operation, held)) => {
                let held = held.map_or("nothing".to_owned(), |id| id.to_string());
                format!(
                    "no order of its {count} operations; after {longest}, with {held} held, {operation:?} does not fit"
                )
            }
            None => format!("no order of its {count} operations"),
        }
    }
}
