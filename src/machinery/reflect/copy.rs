//! Copying and clearing fields through reflection.

use crate::reflect::equality::{identical, is_written};
use crate::reflect::{self, List, Map, OptionalSlot, Reflect, Slot, Value};

/// Makes field `index` of `to` what it is in `from`, a message of the same type. Often it is that already.
pub fn copy_field(to: &mut dyn Reflect, from: &dyn Reflect, index: usize) {
    if identical(to.get(index), from.get(index)) {
        return;
    }
    if let Some(slot) = to.get_mut(index) {
        assign(slot, from.get(index));
    }
}

/// Copies every field of `from` that `to` has under the same JSON name; the two may be messages of different types.
pub fn copy_named(to: &mut dyn Reflect, from: &dyn Reflect) {
    let dynamic = to.desc().is_dynamic();
    for (index, field) in from.desc().fields.iter().enumerate() {
        if let Some(place) = to.desc().position(field.json.as_bytes())
            && !matches!((to.get(place), from.get(index)), (Value::Absent, Value::Absent))
            && let Some(slot) = to.get_mut(place)
        {
            // What JSON does not show of a struct is absent where only that is held which was said.
            let value = from.get(index);
            let shown = !dynamic || is_written(field, value);
            assign(slot, if shown { value } else { Value::Absent });
        }
    }
    copy_rest(to, from);
}

/// Makes what `to` holds beside its fields what `from` holds so.
pub fn copy_rest(to: &mut dyn Reflect, from: &dyn Reflect) {
    match (to.rest().is_some(), from.rest()) {
        (_, Some(rest)) => to.rest_mut().into_iter().for_each(|to| assign_map(to, rest)),
        (true, None) => to.rest_mut().into_iter().for_each(Map::clear),
        (false, None) => {}
    }
}

/// Puts a copy of `value` into `slot`. A value of another type than the slot's clears the slot; of a message of another
/// type the fields of the same names are copied.
pub fn assign(slot: Slot<'_>, value: Value<'_>) {
    match (slot, value) {
        (Slot::Optional(OptionalSlot::Dynamic(slot)), value) => slot.assign(value),
        (Slot::Optional(mut slot), Value::Absent | Value::Null) => slot.clear(),
        (Slot::Optional(mut slot), value) => {
            slot.clear();
            assign(slot.fill(), value);
        }
        (Slot::Bool(slot), Value::Bool(v)) => *slot = v,
        (Slot::Int32(slot), Value::Int32(v)) => *slot = v,
        (Slot::Int64(slot), Value::Int64(v)) => *slot = v,
        // Dynamic messages know one width.
        (Slot::Int64(slot), Value::Int32(v)) => *slot = v.into(),
        (Slot::Int32(slot), Value::Int64(v)) => *slot = v.try_into().unwrap_or_default(),
        (Slot::Double(slot), Value::Double(v)) => *slot = v,
        (Slot::Str(slot), Value::Str(v)) => v.clone_into(slot),
        (Slot::Bytes(slot), Value::Bytes(v)) => *slot = v.clone(),
        (Slot::Message(slot), Value::Message(v)) => copy_message(slot, v),
        (Slot::Leaf(slot), Value::Leaf(v)) => slot.assign(v),
        (Slot::List(slot), Value::List(v)) => assign_list(slot, v),
        (Slot::Map(slot), Value::Map(v)) => assign_map(slot, v),
        (slot, _) => clear(slot),
    }
}

/// Makes a message what another is; of one of another type the fields of the same names.
pub fn copy_message(to: &mut dyn Reflect, from: &dyn Reflect) {
    if !std::ptr::eq(to.desc(), from.desc()) {
        return copy_named(to, from);
    }
    if let (Some(to), Some(from)) = (to.shared_mut(), from.shared())
        && to.share(from)
    {
        return;
    }
    if to.sparse().is_some() {
        let indexes = reflect::indexes_of_both(to, from);
        indexes.into_iter().for_each(|index| copy_field(to, from, index));
    } else {
        (0..to.desc().fields.len()).for_each(|index| copy_field(to, from, index));
    }
    copy_rest(to, from);
}

fn assign_list(to: &mut dyn List, from: &dyn List) {
    to.clear();
    for index in 0..from.len() {
        assign(to.push(), from.get(index));
    }
}

fn assign_map(to: &mut dyn Map, from: &dyn Map) {
    to.clear();
    from.for_each(&mut |key, value| assign(to.entry(key), value));
}

/// Makes a slot zero or absent.
pub fn clear(slot: Slot<'_>) {
    match slot {
        Slot::Bool(v) => *v = false,
        Slot::Int32(v) => *v = 0,
        Slot::Int64(v) => *v = 0,
        Slot::Double(v) => *v = 0.0,
        Slot::Str(v) => v.clear(),
        Slot::Bytes(v) => v.clear(),
        Slot::Leaf(v) => v.clear(),
        Slot::List(v) => v.clear(),
        Slot::Map(v) => v.clear(),
        Slot::Optional(mut v) => v.clear(),
        Slot::Message(v) => clear_message(v),
    }
}

/// Makes every field of a message zero or absent.
pub fn clear_message(message: &mut dyn Reflect) {
    let said: Option<Vec<usize>> = message.sparse().map(|_| reflect::indexes(message).collect());
    let count = if said.is_some() { 0 } else { message.desc().fields.len() };
    for index in (0..count).chain(said.into_iter().flatten()) {
        message.get_mut(index).into_iter().for_each(clear);
    }
    if message.rest().is_some() {
        message.rest_mut().into_iter().for_each(Map::clear);
    }
}
