//! Lists and maps.

use std::collections::BTreeSet;

use super::{Outcome, Reader, Segment};
use crate::decode::StrictKind;
use crate::json_text::scan::{AFTER_ELEMENT, AFTER_PAIR, Failure, Text};
use crate::reflect::budget;
use crate::reflect::{FieldDesc, List, Map};

impl<'a> Reader<'a> {
    pub(super) fn list(&mut self, field: &'a FieldDesc, list: &mut dyn List) -> Outcome {
        match self.scan.peek() {
            Some(b'[') => {}
            Some(b'n') => {
                self.scan.literal("null")?;
                list.clear();
                return Ok(());
            }
            _ => return self.no_list(|| super::fault::list_type(&field.ty)),
        }
        let (before, cost) = (list.len(), budget::item(field));
        let len = self.elements_of(|reader, index| {
            reader.spend(cost)?;
            let slot = if index < before {
                list.get_mut(index)
            } else {
                Some(list.push())
            };
            match slot {
                Some(slot) => reader.value(&field.ty, slot),
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

    pub(super) fn map(&mut self, field: &'a FieldDesc, map: &mut dyn Map) -> Outcome {
        match self.scan.peek() {
            Some(b'{') => self.scan.pos += 1,
            Some(b'n') => {
                self.scan.literal("null")?;
                map.clear();
                return Ok(());
            }
            _ => return self.no_map(&field.ty),
        }
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
            return Ok(());
        }
        // A repeated field adds to the map, and its keys are no duplicates of those that were there.
        let mut seen = (!map.is_empty()).then(BTreeSet::new);
        loop {
            let key = self.scan.key()?;
            self.entry(key, field, map, seen.as_mut())?;
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
    /// The value of a key of a map that is at hand. `seen` has the keys that the document has said; `None`: those of
    /// the map.
    pub(super) fn entry(
        &mut self,
        key: Text<'a>,
        field: &'a FieldDesc,
        map: &mut dyn Map,
        seen: Option<&mut BTreeSet<String>>,
    ) -> Outcome {
        self.spend(budget::entry(field))?;
        let name = key.decode();
        if map.get(&name).is_some() {
            if seen.as_ref().is_none_or(|seen| seen.contains(name.as_ref())) {
                self.problem(StrictKind::DuplicateField, key);
            }
            map.remove(&name);
        }
        if let Some(seen) = seen {
            seen.insert(name.clone().into_owned());
        }
        if self.drops_null(field) {
            return self.scan.literal("null");
        }
        self.path.push(Segment::Key(key));
        self.value(&field.ty, map.entry(&name))?;
        self.path.pop();
        Ok(())
    }
}
