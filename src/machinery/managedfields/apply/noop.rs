//! No-op applies: an apply that repeats what its manager said before and the object has, as most do.

use super::view::{Presence, Shape, item_element, same, same_key};
use super::{Apply, Document};
use crate::fieldset::{Entry, FieldSet};
use crate::managedfields::{FIELDS_V1, Operation, untracked};
use crate::meta::v1::ManagedFieldsEntry;
use crate::reflect::{FieldDesc, List, Reflect, Value, member};

impl Apply<'_> {
    /// Whether [`Apply::run`] would change neither the object nor `entries`, those of the live object. Says no where it
    /// would take a closer look.
    pub fn is_noop(&self, entries: &[ManagedFieldsEntry]) -> bool {
        let Document {
            restated,
            hollow,
            unfit,
            ..
        } = self.document;
        if !restated.is_empty() || !hollow.is_empty() || unfit.is_some() {
            return false;
        }
        let is_own = |entry: &&ManagedFieldsEntry| {
            entry.operation == Operation::Apply.as_str()
                && entry.manager == self.writer.manager
                && entry.subresource == self.writer.subresource
        };
        let mut own = entries.iter().filter(is_own);
        let (Some(own), None) = (own.next(), own.next()) else {
            return false;
        };
        own.api_version == self.writer.api_version
            && entries.iter().all(|entry| self.stays(entry))
            && holds(self.live, self.applied, &self.document.fields)
            && self.is_text_of_fields(own)
    }

    /// Whether the entry is one that is read and written as it is.
    fn stays(&self, entry: &ManagedFieldsEntry) -> bool {
        let text = entry.fields_v1.as_ref().map_or(&b""[..], |text| text.as_bytes());
        text.len() > b"{}".len() && entry.fields_type == FIELDS_V1 && self.versions.knows(&entry.api_version)
    }

    fn is_text_of_fields(&self, entry: &ManagedFieldsEntry) -> bool {
        let text = entry.fields_v1.as_ref().map_or(&b""[..], |text| text.as_bytes());
        let mut written = Vec::with_capacity(text.len());
        self.document
            .fields
            .write_without(self.ignored, untracked(), &mut written);
        written == text
    }
}

/// Whether the object has the fields as the applied one has them.
fn holds(live: &dyn Reflect, applied: &dyn Reflect, fields: &FieldSet) -> bool {
    fields.entries().iter().all(|entry| {
        let name = entry.element.name().unwrap_or_default();
        let (Some((field, live)), Some((_, applied))) = (member(live, name), member(applied, name)) else {
            return false;
        };
        let (live, applied) = (Presence::of(field, live), Presence::of(field, applied));
        holds_value(Shape::of(field), live, applied, entry)
    })
}

fn holds_value(shape: Shape<'_>, live: Presence<'_>, applied: Presence<'_>, entry: &Entry) -> bool {
    let (live, applied) = match (live, applied) {
        (Presence::Value(live), Presence::Value(applied)) => (live, applied),
        (Presence::Absent, Presence::Absent) | (Presence::Null, Presence::Null) => return true,
        _ => return false,
    };
    match (shape.with(applied), live, applied) {
        (Shape::Message, Value::Message(live), Value::Message(applied)) if !entry.children.is_empty() => {
            holds(live, applied, &entry.children)
        }
        (Shape::List(field), Value::List(live), Value::List(applied)) => {
            holds_items(field, live, applied, &entry.children)
        }
        (Shape::Map(field), Value::Map(live), Value::Map(applied)) => entry.children.entries().iter().all(|entry| {
            let name = entry.element.name().unwrap_or_default();
            let (Some(live), Some(applied)) = (live.get(name), applied.get(name)) else {
                return false;
            };
            let (live, applied) = (Presence::of_element(live), Presence::of_element(applied));
            holds_value(Shape::of_entry(field), live, applied, entry)
        }),
        _ => same(live, applied),
    }
}

/// The items must be there in the same order, with whatever between them.
fn holds_items(field: &FieldDesc, live: &dyn List, applied: &dyn List, fields: &FieldSet) -> bool {
    let mut places = 0..live.len();
    (0..applied.len()).all(|index| {
        let item = applied.get(index);
        let element = item_element(field, item);
        let place = places.find(|at| {
            let there = live.get(*at);
            same_key(field, there, item) || item_element(field, there) == element
        });
        let (Some(place), Some(entry)) = (place, fields.get(&element)) else {
            return false;
        };
        let (there, item) = (Presence::of_element(live.get(place)), Presence::of_element(item));
        holds_value(Shape::of_item(field), there, item, entry)
    })
}
