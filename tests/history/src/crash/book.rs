//! The writers' book: what was asked for of every object, and what was answered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::load::content;

/// So many objects may be there before writers delete old ones.
const KEPT: usize = 60;

/// What the writers know of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fate {
    /// Its creation was sent.
    Asked,
    /// Its creation was answered.
    There,
    /// Its deletion was sent.
    Doomed,
    /// Its deletion was answered.
    Gone,
}

/// By number, which no two objects share.
#[derive(Default)]
pub struct Book {
    fates: BTreeMap<u64, Fate>,
    there: BTreeSet<u64>,
    next: u64,
    /// Writes that were answered.
    pub answered: u64,
    /// Writes that were refused, as they had to be.
    pub refused: u64,
}

impl Book {
    pub fn settle(&mut self, number: u64, fate: Fate) {
        self.fates.insert(number, fate);
        if fate == Fate::There {
            self.there.insert(number);
        }
        self.answered += 1;
    }

    /// The number of a new object, which shall be made.
    pub fn begin(&mut self) -> u64 {
        self.next += 1;
        self.fates.insert(self.next, Fate::Asked);
        self.next
    }

    /// What to do next: the number of an object to be made, or of one to be deleted.
    pub fn choose(&mut self) -> (u64, Fate) {
        let old = self.there.first().copied().filter(|_| self.there.len() > KEPT);
        let Some(old) = old else {
            return (self.begin(), Fate::Asked);
        };
        self.there.remove(&old);
        self.fates.insert(old, Fate::Doomed);
        (old, Fate::Doomed)
    }

    /// Compares with what is there, and settles what was open.
    pub fn compare(&mut self, round: u64, listed: &[Value]) {
        let mut found = BTreeSet::new();
        for item in listed {
            let name = item["metadata"]["name"].as_str().unwrap();
            let Some(number) = name.strip_prefix("crash-") else {
                continue;
            };
            let number = number.parse().unwrap();
            assert_eq!(
                item["data"]["content"],
                content(number).as_str(),
                "round {round}: {name} is half written"
            );
            assert!(self.fates.contains_key(&number), "round {round}: {name} is invented");
            found.insert(number);
        }
        self.fates.retain(|number, fate| {
            let there = found.contains(number);
            match fate {
                Fate::There => assert!(there, "round {round}: crash-{number} is lost"),
                Fate::Gone => assert!(!there, "round {round}: crash-{number} is back"),
                Fate::Asked | Fate::Doomed => *fate = Fate::There,
            }
            there
        });
        self.there = found;
    }
}
