//! A level that is built element by element, in any order and however many there are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use super::{Entry, FieldSet, PathElement};

/// Up to so many elements are put where they belong at once: few levels have more, and a vector is quick for those.
const DIRECT: usize = 512;

/// The level so far. When there are many, elements that come out of order wait beside it.
#[derive(Default)]
pub(crate) struct Growing {
    set: FieldSet,
    late: BTreeMap<PathElement, FieldSet>,
}

impl Growing {
    /// As [`FieldSet::add_new`].
    pub(crate) fn add_new(&mut self, element: PathElement, children: FieldSet) -> Result<(), PathElement> {
        let in_order = self.set.entries.last().is_none_or(|last| last.element < element);
        if self.late.is_empty() && (in_order || self.set.entries.len() < DIRECT) {
            return self.set.add_new(element, children);
        }
        if !in_order && self.set.get(&element).is_some() {
            return Err(element);
        }
        match self.late.entry(element) {
            Slot::Occupied(slot) => Err(slot.key().clone()),
            Slot::Vacant(slot) => {
                slot.insert(children);
                Ok(())
            }
        }
    }

    pub(crate) fn into_set(self) -> FieldSet {
        let late = self.late.into_iter().map(|(element, children)| Entry {
            element,
            member: true,
            children,
        });
        self.set.union(FieldSet {
            entries: late.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fieldset::Name;

    #[test]
    fn any_order_makes_the_same_set() {
        const COUNT: usize = 4 * DIRECT;
        let element = |n: usize| PathElement::Field(Name::from(format!("f{n:05}")));
        let children = |n: usize| FieldSet::of(&[element(n % 3)]);
        let mut wanted = FieldSet::EMPTY;
        for n in 0..COUNT {
            wanted.add(element(n), true, children(n));
        }
        // 7 and the count have no divisor in common.
        let orders: [&dyn Fn(usize) -> usize; 3] = [&|n| n, &|n| COUNT - 1 - n, &|n| n * 7 % COUNT];
        for order in orders {
            let mut growing = Growing::default();
            for n in (0..COUNT).map(order) {
                growing.add_new(element(n), children(n)).unwrap();
                assert_eq!(growing.add_new(element(n), FieldSet::EMPTY), Err(element(n)));
            }
            assert_eq!(growing.into_set(), wanted);
        }
    }
}
