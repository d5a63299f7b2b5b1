//! Checks of message types: code that is run wherever a message of its type stands.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::Place;
use crate::field::ErrorList;
use crate::reflect::{Field, MessageDesc, Reflect, Type};

type Erased = Arc<dyn Fn(&dyn Reflect, Option<&dyn Reflect>, &Place<'_>, &mut ErrorList) + Send + Sync>;

/// The code that checks messages, by their types.
#[derive(Default)]
pub struct TypeChecks {
    of: HashMap<u64, Vec<Erased>>,
    /// Of messages that were asked for: whether one with a check stands at or below them.
    reached: RwLock<HashMap<u64, bool>>,
}

impl Clone for TypeChecks {
    fn clone(&self) -> TypeChecks {
        TypeChecks {
            of: self.of.clone(),
            reached: RwLock::default(),
        }
    }
}

impl TypeChecks {
    /// Runs `check` on each message of type `T`, behind the declared rules of its fields. It gets the message, the one
    /// that stood in its place before (in lists of type map the one with the same keys), and where it is.
    pub fn add<T: Reflect + Field>(&mut self, check: fn(&T, Option<&T>, &Place<'_>, &mut ErrorList)) {
        let Type::Message(desc) = T::TYPE else { return };
        let erased: Erased = Arc::new(move |new, old, place, errors| {
            let Some(new) = new.as_any().downcast_ref::<T>() else {
                return;
            };
            check(new, old.and_then(|old| old.as_any().downcast_ref()), place, errors);
        });
        self.of.entry(desc.id.get()).or_default().push(erased);
        *self.reached.get_mut().unwrap_or_else(PoisonError::into_inner) = HashMap::new();
    }

    /// Adds all checks that `other` has.
    pub fn merge(&mut self, other: TypeChecks) {
        for (id, checks) in other.of {
            self.of.entry(id).or_default().extend(checks);
        }
        *self.reached.get_mut().unwrap_or_else(PoisonError::into_inner) = HashMap::new();
    }

    pub(super) fn run(&self, new: &dyn Reflect, old: Option<&dyn Reflect>, place: &Place<'_>, errors: &mut ErrorList) {
        if self.of.is_empty() {
            return;
        }
        for check in self.of.get(&new.desc().id.get()).into_iter().flatten() {
            check(new, old, place, errors);
        }
    }

    /// Whether there is a check for messages of this table or of those below it.
    pub(super) fn reach(&self, desc: &MessageDesc) -> bool {
        if self.of.is_empty() {
            return false;
        }
        let id = desc.id.get();
        let known = self
            .reached
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .copied();
        known.unwrap_or_else(|| {
            let reached = self.finds(desc, &mut HashSet::new());
            // Tables of a run come and go with the schemas of clients: only those of the program are kept.
            if !desc.is_dynamic() {
                let mut all = self.reached.write().unwrap_or_else(PoisonError::into_inner);
                all.insert(id, reached);
            }
            reached
        })
    }

    fn finds(&self, desc: &MessageDesc, seen: &mut HashSet<u64>) -> bool {
        let id = desc.id.get();
        self.of.contains_key(&id)
            || (seen.insert(id)
                && desc
                    .fields
                    .iter()
                    .filter_map(|f| f.message())
                    .any(|m| self.finds(m, seen)))
    }
}
