//! Empty lists of an applied object whose items have owners. Nobody owns such a list, yet an object of which everything
//! is kept as it was said shows it where there is nothing else.

use super::view::{Shape, same_key};
use crate::reflect::copy;
use crate::reflect::{self, List, OptionalSlot, Reflect, Slot, Value};

/// Puts the empty lists of `applied` into `target`, an object of the same type, where it has nothing.
pub(super) fn take_over(target: &mut dyn Reflect, applied: &dyn Reflect) {
    let desc = applied.desc();
    if !desc.is_dynamic() {
        return;
    }
    for (index, field, value) in reflect::fields(applied) {
        let shape = Shape::of(field);
        if has_one(shape, value)
            && let Some(slot) = target.get_mut(index)
        {
            put(shape, slot, value);
        }
    }
}

/// Whether a value is such a list, or has one in it.
fn has_one(shape: Shape<'_>, value: Value<'_>) -> bool {
    match (shape, value) {
        (Shape::List(_), Value::List(list)) if list.is_empty() => true,
        (Shape::List(field), Value::List(list)) => {
            (0..list.len()).any(|place| has_one(Shape::of_item(field), list.get(place)))
        }
        (Shape::Message, Value::Message(message)) => {
            let mut fields = reflect::fields(message);
            message.desc().is_dynamic() && fields.any(|(_, field, value)| has_one(Shape::of(field), value))
        }
        (Shape::Map(field), Value::Map(map)) => {
            let (shape, mut found) = (Shape::of_entry(field), false);
            map.for_each(&mut |_, value| found = found || has_one(shape, value));
            found
        }
        _ => false,
    }
}

/// Puts in those of a value that has one.
fn put(shape: Shape<'_>, slot: Slot<'_>, value: Value<'_>) {
    match (shape, value) {
        (Shape::List(_), Value::List(list)) if list.is_empty() => put_list(slot, value),
        (Shape::List(field), Value::List(list)) => {
            if let Slot::List(target) = slot.filled() {
                put_into_items(field, target, list);
            }
        }
        (Shape::Message, Value::Message(message)) => {
            if let Slot::Message(target) = slot.filled() {
                take_over(target, message);
            }
        }
        (Shape::Map(field), Value::Map(map)) => {
            let slot = match slot {
                Slot::Optional(OptionalSlot::Dynamic(slot)) => slot.fill_map(),
                slot => slot.filled(),
            };
            let Slot::Map(target) = slot else { return };
            let shape = Shape::of_entry(field);
            map.for_each(&mut |key, value| {
                if has_one(shape, value) {
                    put(shape, target.entry(key), value);
                }
            });
        }
        _ => {}
    }
}

fn put_list(slot: Slot<'_>, empty: Value<'_>) {
    let Slot::Optional(optional) = slot else { return };
    if !optional.is_some() {
        copy::assign(Slot::Optional(optional), empty);
    }
}

fn put_into_items(field: &crate::reflect::FieldDesc, target: &mut dyn List, applied: &dyn List) {
    let shape = Shape::of_item(field);
    for place in 0..applied.len() {
        let item = applied.get(place);
        if !has_one(shape, item) {
            continue;
        }
        let known = (0..target.len()).find(|known| same_key(field, target.get(*known), item));
        if let Some(slot) = known.and_then(|known| target.get_mut(known)) {
            put(shape, slot, item);
        }
    }
}
