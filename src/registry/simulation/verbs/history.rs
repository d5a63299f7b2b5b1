//! The history of the store, judged by what was asked for and let pass.

use std::collections::{BTreeMap, BTreeSet};

use keelson_storage::Revision;
use keelson_storage::simulation::world::World;

use super::shop::{Shop, State, annotation};
use super::writer::{Request, Word, decode};
use super::{ATTEMPT, MARKS, NUMBER, versions};
use crate::generic::Resource;
use crate::simulation::slow::Done;

/// Judges what was stored by what was asked for and let pass.
pub fn judge(world: &World, shop: &Shop, resource: &Resource, done: &[Done], requests: &[Request]) {
    let passed = shop.passed.lock().unwrap();
    let numbers = shop.numbers.lock().unwrap();
    let (mut attempts, mut owners) = (BTreeSet::new(), BTreeMap::<u64, String>::new());
    let mut marked: BTreeMap<String, Revision> = BTreeMap::new();
    let mut last: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for write in done {
        let Some(object) = decode(resource, write) else {
            last.remove(&*write.key);
            continue;
        };
        let (uid, marks) = (object.meta().uid.clone(), annotation(&*object, MARKS));
        let attempt: u64 = annotation(&*object, ATTEMPT).parse().unwrap();
        let at = format!("{}@{}", write.key, write.revision);
        if let Some(wrong) = versions::not_as_stored(write) {
            world.fail("objects are stored in the stored version", format!("{wrong}: {at}"));
        }
        if passed.get(&attempt) != Some(&marks) {
            world.fail("what is stored was let pass as it is", at.clone());
        }
        if !attempts.insert(attempt) {
            world.fail("admission sees each attempt", at.clone());
        }
        let number: u64 = annotation(&*object, NUMBER).parse().unwrap_or_default();
        if owners.insert(number, uid.clone()).is_some_and(|owner| owner != uid) {
            world.fail("no two objects have the same number", format!("{number}: {at}"));
        }
        if !matches!(numbers.get(&number), Some(State::Taken | State::Unsure)) {
            world.fail("what a stored object has taken stays taken", format!("{number}: {at}"));
        }
        let before = last.insert(&write.key, (uid.clone(), marks.clone()));
        let known = before.filter(|(owner, _)| *owner == uid).map(|(_, marks)| marks);
        match marks.strip_prefix(known.unwrap_or_default().as_str()).map(str::trim) {
            Some("") => {}
            Some(mark) if !mark.contains(' ') && marked.insert(mark.to_owned(), write.revision).is_none() => {}
            _ => world.fail(
                "each update is made of what was there, and stored once",
                format!("{marks}: {at}"),
            ),
        }
    }
    for (number, state) in numbers.iter() {
        let stored = owners.contains_key(number);
        if *state == State::Held || (*state == State::Taken && !stored) {
            world.fail(
                "what is not written gives back what it took",
                format!("{number}: {state:?}"),
            );
        }
    }
    for request in requests {
        let Some(mark) = &request.mark else { continue };
        let stored = marked.get(mark).copied();
        let right = match request.word {
            Word::Done(revision) => stored == Some(revision),
            Word::Refused => stored.is_none(),
            Word::Unknown => true,
        };
        if !right {
            let what = format!("{mark}: {:?}, stored at {stored:?}", request.word);
            world.fail(
                "an update that was answered is stored, one that was refused is not",
                what,
            );
        }
    }
}
