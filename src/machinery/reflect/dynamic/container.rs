//! Lists and maps of dynamic messages.

use std::collections::BTreeMap;

use super::{DynamicSlot, DynamicValue};
use crate::reflect::{FieldDesc, List, Map, Ref, Slot, Value};

/// A list of values of any type, most of them of the declared one.
#[derive(Clone)]
pub struct DynamicList {
    element: Ref<FieldDesc>,
    items: Vec<DynamicValue>,
}

impl DynamicList {
    pub(super) fn new(element: Ref<FieldDesc>) -> DynamicList {
        DynamicList {
            element,
            items: Vec::new(),
        }
    }
}

impl List for DynamicList {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn get(&self, index: usize) -> Value<'_> {
        <[DynamicValue]>::get(&self.items, index).map_or(Value::Absent, DynamicValue::value)
    }

    fn get_mut(&mut self, index: usize) -> Option<Slot<'_>> {
        let item = <[DynamicValue]>::get_mut(&mut self.items, index)?;
        Some(DynamicSlot::new(&self.element.ty, item).into())
    }

    /// Null until something is put there.
    fn push(&mut self) -> Slot<'_> {
        let item = self.items.push_mut(DynamicValue::Null);
        DynamicSlot::new(&self.element.ty, item).into()
    }

    fn clear(&mut self) {
        self.items.clear();
    }

    fn remove(&mut self, index: usize) {
        if index < self.items.len() {
            self.items.remove(index);
        }
    }

    fn reorder(&mut self, order: &[usize]) {
        let mut old: Vec<Option<DynamicValue>> = std::mem::take(&mut self.items).into_iter().map(Some).collect();
        let ordered = order.iter().filter_map(|&i| old.get_mut(i).and_then(Option::take));
        self.items.extend(ordered);
        self.items.extend(old.into_iter().flatten());
    }

    fn element(&self) -> &FieldDesc {
        &self.element
    }
}

/// A map of values of any type, most of them of the declared one.
#[derive(Clone)]
pub struct DynamicMap {
    element: Ref<FieldDesc>,
    entries: BTreeMap<String, DynamicValue>,
}

impl DynamicMap {
    pub(super) fn new(element: Ref<FieldDesc>) -> DynamicMap {
        DynamicMap {
            element,
            entries: BTreeMap::new(),
        }
    }
}

impl Map for DynamicMap {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.entries.get(key).map(DynamicValue::value)
    }

    /// Null until something is put there.
    fn entry(&mut self, key: &str) -> Slot<'_> {
        let value = self.entries.entry(key.to_owned()).or_insert(DynamicValue::Null);
        DynamicSlot::new(&self.element.ty, value).into()
    }

    fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    fn clear(&mut self) {
        self.entries.clear();
    }

    fn for_each<'a>(&'a self, f: &mut dyn FnMut(&'a str, Value<'a>)) {
        for (key, value) in &self.entries {
            f(key, value.value());
        }
    }

    fn element(&self) -> &FieldDesc {
        &self.element
    }
}
