//! A deletion that was answered ends: the object goes, or shows that it is on its way, as long as its grace runs or a
//! finalizer holds it. A mark stays, a grace only shortens, nothing goes by itself and nothing comes back.

use std::collections::BTreeMap;

use crate::Violation;
use crate::record::{Key, Moment};

/// How long an object may live on after its deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grace {
    /// Not at all.
    Now,
    /// As long as the object says.
    Own,
}

/// What a client asked of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Create,
    Delete(Grace),
    /// An update that has nothing to do with its end.
    Touch,
    /// An update that takes its finalizers away.
    Release,
    Read,
}

/// An object as it was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Seconds of grace, if it is marked as deleted.
    pub terminating: Option<u64>,
    /// It has finalizers.
    pub held: bool,
}

/// What the answer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// It is there; of a deletion: it was.
    Shown(State),
    Absent,
    /// It was refused, and is not done.
    Refused,
    /// No answer, or one that leaves open whether it was done.
    Unknown,
}

/// What a client asked of one object and was told. No object is made twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub client: usize,
    pub key: Key,
    pub act: Act,
    pub begin: Moment,
    pub end: Moment,
    pub life: Life,
}

/// Everything that is wrong with the ends of objects; empty: nothing.
pub fn check(steps: &[Step]) -> Vec<Violation> {
    let mut by_key: BTreeMap<Key, Vec<&Step>> = BTreeMap::new();
    for step in steps {
        by_key.entry(step.key).or_default().push(step);
    }
    let mut violations = Vec::new();
    for mut steps in by_key.into_values() {
        steps.sort_by_key(|step| step.begin);
        // What follows from a first violation says nothing new.
        if let Some((rule, text)) = steps.iter().find_map(|step| wrong(step, &steps)) {
            violations.push(Violation::new(rule, text));
        }
    }
    violations
}

const ENDS: &str = "a deletion that was answered ends";

/// Whether a step fits to those that had ended before it began.
fn wrong(step: &Step, all: &[&Step]) -> Option<(&'static str, String)> {
    let before = || all.iter().filter(|one| one.end < step.begin);
    let because = |rule, why: &Step| Some((rule, format!("{step:?} after {why:?}")));
    match (step.life, step.act) {
        (Life::Absent, _) => {
            let deleted = |one: &&Step| matches!(one.act, Act::Delete(_)) && one.begin < step.end && *one != step;
            let was_there = before().find(|one| matches!(one.life, Life::Shown(_)))?;
            let lost = !all.iter().any(deleted);
            lost.then_some(was_there)
                .and_then(|there| because("nothing goes by itself", there))
        }
        // These answers show the object as it was, and it may have gone with them.
        (Life::Shown(_), Act::Delete(_) | Act::Release) => before()
            .find(|one| one.life == Life::Absent)
            .and_then(|gone| because("what is gone stays gone", gone)),
        (Life::Shown(state), _) => before().find_map(|one| because(broken(one, state)?, one)),
        (Life::Refused | Life::Unknown, _) => None,
    }
}

/// What a state breaks that is shown after a step.
fn broken(earlier: &Step, state: State) -> Option<&'static str> {
    match (earlier.life, earlier.act) {
        (Life::Absent, _) => Some("what is gone stays gone"),
        (Life::Shown(_), Act::Delete(Grace::Now)) => (state.terminating.is_none() || !state.held).then_some(ENDS),
        (Life::Shown(_), Act::Delete(Grace::Own)) if state.terminating.is_none() => Some(ENDS),
        (Life::Shown(_), Act::Release) if state.held => Some("a finalizer that was taken away stays away"),
        (Life::Shown(shown), _) => match (shown.terminating, state.terminating) {
            (Some(_), None) => Some("a mark of deletion stays"),
            (Some(before), Some(now)) if now > before => Some("a grace only shortens"),
            _ => None,
        },
        _ => None,
    }
}
