//! Lists and maps.

use std::collections::BTreeSet;

use super::{Outcome, Reader, Segment};
use crate::budget;
use crate::decode::StrictKind;
use crate::json::scan::{AFTER_ELEMENT, AFTER_PAIR, Failure};
use crate::reflect::{List, Map};

impl<'a> Reader<'a> {
    pub(super) fn list(&mut self, list: &mut dyn List) -> Outcome {
        match self.scan.peek() {
            Some(b'[') => {}
            Some(b'n') => {
                self.scan.literal("null")?;
                list.clear();
                return Ok(());
            }
            _ => {
                let element = list.element_type();
                return self.no_list(|| super::fault::list_type(element));
            }
        }
        let (before, cost) = (list.len(), budget::item(list.element_type()));
        let len = self.elements_of(|reader, index| {
            reader.spend(cost)?;
            let slot = if index < before {
                list.get_mut(index)
            } else {
                Some(list.push())
            };
            match slot {
                Some(slot) => reader.value(slot),
                None => reader.scan.skip_value().map(drop),
            }
        })?;
        // Of a list that was there before, Go overwrites the elements in place and cuts off the rest.
        while list.len() > len {
            list.remove(list.len() - 1);
        }
        Ok(())
    }

    /// Reads the elements of the array whose bracket is at hand and returns how many there are.
    pub(super) fn elements_of(
        &mut self,
        mut element: impl FnMut(&mut Reader<'a>, usize) -> Outcome,
    ) -> Result<usize, Failure> {
        self.scan.pos += 1;
        if self.scan.peek() == Some(b']') {
            self.scan.pos += 1;
            return Ok(0);
        }
        let mut index = 0;
        loop {
            self.path.push(Segment::Index(index));
            element(self, index)?;
            self.path.pop();
            index += 1;
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b']') => {
                    self.scan.pos += 1;
                    return Ok(index);
                }
                _ => return Err(self.scan.fail(AFTER_ELEMENT)),
            }
        }
    }

    pub(super) fn map(&mut self, map: &mut dyn Map) -> Outcome {
        match self.scan.peek() {
            Some(b'{') => self.scan.pos += 1,
            Some(b'n') => {
                self.scan.literal("null")?;
                map.clear();
                return Ok(());
            }
            _ => return self.no_map(map.element_type()),
        }
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
            return Ok(());
        }
        // A repeated field adds to the map, and its keys are no duplicates of those that were there.
        let mut seen = (!map.is_empty()).then(BTreeSet::new);
        let cost = budget::entry(map.element_type());
        loop {
            self.spend(cost)?;
            let key = self.scan.key()?;
            let name = key.decode();
            if map.get(&name).is_some() {
                let repeated = seen
                    .as_ref()
                    .is_none_or(|seen: &BTreeSet<String>| seen.contains(name.as_ref()));
                if repeated {
                    self.problem(StrictKind::DuplicateField, key);
                }
                map.remove(&name);
            }
            if let Some(seen) = &mut seen {
                seen.insert(name.clone().into_owned());
            }
            self.path.push(Segment::Key(key));
            self.value(map.entry(&name))?;
            self.path.pop();
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b'}') => {
                    self.scan.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.scan.fail(AFTER_PAIR)),
            }
        }
    }
}
