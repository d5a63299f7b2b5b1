//! The plug-in and the strategy of the simulated orders: they wait, and note what they let pass and take.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use keelson_machinery::object::Object;
use keelson_storage::simulation::random::Dice;
use tokio::time::sleep;

use super::{ATTEMPT, GROUP, MARKS, NUMBER, PLURALS};
use crate::admission::{Attributes, Handles, Operation, Plugin, Scope};
use crate::generic::{Answer, Context, Reserving, Strategy};
use crate::outcome::{Outcome as Told, later};
use crate::reservation::Reservation;

/// What the writers' world knows beside the store.
pub struct Shop {
    pub dice: Dice,
    pub attempts: AtomicU64,
    /// Attempts that were let pass, with the marks that they would store.
    pub passed: Mutex<BTreeMap<u64, String>>,
    pub numbers: Mutex<BTreeMap<u64, State>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Held,
    Taken,
    Unsure,
}

impl Shop {
    pub async fn pause(&self) {
        if self.dice.chance(600) {
            sleep(self.dice.millis(6)).await;
        }
    }
}

pub fn annotation(object: &dyn Object, name: &str) -> String {
    let annotations = &object.meta().annotations;
    annotations.get(name).map(ToString::to_string).unwrap_or_default()
}

/// Numbers each attempt before, and lets most of them pass behind.
pub struct Inspection(pub Arc<Shop>);

impl Plugin for Inspection {
    fn name(&self) -> &'static str {
        "Inspection"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::BOTH.when(writes && PLURALS.iter().any(|plural| scope.is(GROUP, plural)))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Told<'a, ()> {
        later(async move {
            self.0.pause().await;
            let attempt = self.0.attempts.fetch_add(1, Ordering::Relaxed);
            if let Some(metadata) = attributes.metadata_mut() {
                metadata.annotations.insert(ATTEMPT.to_owned(), attempt.to_string());
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Told<'a, ()> {
        later(async move {
            self.0.pause().await;
            if self.0.dice.chance(30) {
                return Err(attributes.forbidden("not today"));
            }
            let annotations = attributes.metadata().map(|metadata| &metadata.annotations);
            let text = |name: &str| annotations.and_then(|all| all.get(name)).map(ToString::to_string);
            let attempt = text(ATTEMPT).unwrap_or_default().parse().unwrap();
            let marks = text(MARKS).unwrap_or_default();
            self.0.passed.lock().unwrap().insert(attempt, marks);
            Ok(())
        })
    }
}

/// Gives each new order a number of its own, which has to be waited for.
pub struct Numbering(pub Arc<Shop>);

impl Strategy for Numbering {
    type Object = dyn Object;

    fn reserve<'a>(&'a self, _context: &'a Context, write: Reserving<'a>) -> Option<Answer<'a, Box<dyn Reservation>>> {
        if write.old.is_some() {
            return None;
        }
        Some(Box::pin(async move {
            self.0.pause().await;
            let mut numbers = self.0.numbers.lock().unwrap();
            let free = (1..).find(|number| !numbers.contains_key(number)).unwrap();
            numbers.insert(free, State::Held);
            let annotations = &mut write.new.meta_mut().annotations;
            annotations.insert(NUMBER.to_owned(), free.to_string());
            Ok(Box::new(Guard(self.0.clone(), free)) as Box<dyn Reservation>)
        }))
    }
}

struct Guard(Arc<Shop>, u64);

impl Guard {
    fn becomes(&self, state: State) {
        self.0.numbers.lock().unwrap().insert(self.1, state);
    }
}

impl Reservation for Guard {
    fn commit(self: Box<Self>) {
        self.becomes(State::Taken);
    }
    fn uncertain(self: Box<Self>) {
        self.becomes(State::Unsure);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut numbers = self.0.numbers.lock().unwrap();
        if numbers.get(&self.1) == Some(&State::Held) {
            numbers.remove(&self.1);
        }
    }
}
