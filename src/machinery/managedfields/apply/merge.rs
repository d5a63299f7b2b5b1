//! Puts the fields of an applied object into another one.

use std::collections::{BTreeMap, BTreeSet};

use super::view::{Shape, is_hollow, item_element, same_key};
use crate::fieldset::{Entry, FieldSet, PathElement};
use crate::reflect::copy;
use crate::reflect::{FieldDesc, List, Map, OptionalSlot, Reflect, Slot, Value};

/// Up to so many pairs of items are compared one by one.
const FEW: usize = 4096;

/// Makes `target` have every field of `fields` as `applied`, an object of the same type, has it. Items of lists keep
/// their order but for those that the applied object orders otherwise.
pub fn merge(target: &mut dyn Reflect, applied: &dyn Reflect, fields: &FieldSet) {
    for entry in fields.entries() {
        if let Some(name) = entry.element.name() {
            merge_field(target, applied, name, entry);
        }
    }
}

/// Returns whether the message, or one that it inlines, has the field.
fn merge_field(target: &mut dyn Reflect, applied: &dyn Reflect, name: &str, entry: &Entry) -> bool {
    let desc = applied.desc();
    if let Some((index, field)) = desc.field(name) {
        if let Some(slot) = target.get_mut(index) {
            merge_slot(Shape::of(field), slot, applied.get(index), entry);
        }
        return true;
    }
    for (index, _) in desc.inlined().filter(|(_, inlined)| inlined.declared(name).is_some()) {
        if let (Some(slot), Value::Message(applied)) = (target.get_mut(index), applied.get(index))
            && let Slot::Message(target) = slot.filled()
        {
            return merge_field(target, applied, name, entry);
        }
    }
    if let (Some(target), Some(value)) = (target.rest_mut(), applied.rest().and_then(|rest| rest.get(name))) {
        merge_slot(Shape::Any, target.entry(name), value, entry);
    }
    false
}

/// The slot of a map, made if there is none.
fn map_slot(slot: Slot<'_>) -> Slot<'_> {
    match slot {
        Slot::Optional(OptionalSlot::Dynamic(slot)) => slot.fill_map(),
        slot => slot.filled(),
    }
}

fn merge_slot(shape: Shape<'_>, slot: Slot<'_>, applied: Value<'_>, entry: &Entry) {
    match shape.with(applied) {
        // Where nothing is declared, what is empty or null takes no content away either.
        Shape::Map(_) if entry.children.is_empty() && matches!(shape, Shape::Any) => merge_any(slot, applied),
        Shape::Any | Shape::Leaf => copy::assign(slot, applied),
        Shape::Message if entry.children.is_empty() => merge_empty(slot, applied),
        Shape::Message => {
            if let (Slot::Message(target), Value::Message(applied)) = (slot.filled(), applied) {
                merge(target, applied, &entry.children);
            }
        }
        Shape::List(field) => match (slot, applied) {
            (slot, Value::List(applied)) if !entry.children.is_empty() => {
                if let Slot::List(target) = slot.filled() {
                    merge_list(field, target, applied, &entry.children);
                }
            }
            // What is null takes the place of nothing.
            (Slot::Optional(optional), Value::Null) if !optional.is_some() => {
                copy::assign(Slot::Optional(optional), applied);
            }
            _ => {}
        },
        Shape::Map(_) if matches!(applied, Value::Absent | Value::Null) => merge_any(slot, applied),
        Shape::Map(field) => {
            if let (Slot::Map(target), Value::Map(applied)) = (map_slot(slot), applied) {
                merge_map(field, target, applied, &entry.children);
            }
        }
    }
}

/// A message that the applied object has as null or `{}`: that is taken over where there is no content.
fn merge_empty(slot: Slot<'_>, applied: Value<'_>) {
    let Slot::Optional(mut optional) = slot else { return };
    let there = optional.is_some();
    let hollow = !there || matches!(optional.reborrow().open(), Slot::Message(message) if is_hollow(message));
    match applied {
        Value::Absent if hollow => optional.clear(),
        Value::Null if hollow => optional.set_null(),
        Value::Message(_) if hollow => drop(optional.fill()),
        _ => {}
    }
}

/// The same of an object of which nothing is declared.
fn merge_any(slot: Slot<'_>, applied: Value<'_>) {
    let Slot::Optional(mut optional) = slot else { return };
    let there = optional.is_some();
    let content = there && matches!(optional.reborrow().open(), Slot::Map(map) if !map.is_empty());
    if !content {
        copy::assign(Slot::Optional(optional), applied);
    }
}

fn merge_map(field: &FieldDesc, target: &mut dyn Map, applied: &dyn Map, fields: &FieldSet) {
    let shape = Shape::of_entry(field);
    for entry in fields.entries() {
        if let Some(name) = entry.element.name()
            && let Some(value) = applied.get(name)
        {
            merge_slot(shape, target.entry(name), value, entry);
        }
    }
}

/// Where an item of the merged list comes from.
struct Origin {
    /// Its place in the list as it was.
    old: Option<usize>,
    /// Its place in the applied list.
    new: Option<usize>,
}

fn merge_list(field: &FieldDesc, target: &mut dyn List, applied: &dyn List, fields: &FieldSet) {
    let shape = Shape::of_item(field);
    let origins = if is_prefix(field, target, applied) {
        None
    } else {
        Some(arrange(&elements(field, target), &elements(field, applied)))
    };
    let Some(origins) = origins else {
        for index in 0..applied.len() {
            merge_item(field, shape, target, index, applied.get(index), fields);
        }
        return;
    };
    let before = target.len();
    let mut order = Vec::with_capacity(origins.len());
    for origin in &origins {
        let at = match origin.old {
            Some(old) => old,
            None => {
                target.push();
                target.len() - 1
            }
        };
        order.push(at);
        let Some(new) = origin.new else { continue };
        let item = applied.get(new);
        if origin.old.is_some() {
            merge_item(field, shape, target, at, item, fields);
        } else if let Some(slot) = target.get_mut(at) {
            copy::assign(slot, item);
        }
    }
    let kept = order.len();
    let dropped: Vec<usize> = (0..before).filter(|i| !order.contains(i)).collect();
    order.extend(dropped);
    if !order.is_sorted() || order.len() > kept {
        target.reorder(&order);
        while target.len() > kept {
            target.remove(target.len() - 1);
        }
    }
}

fn merge_item(
    field: &FieldDesc,
    shape: Shape<'_>,
    target: &mut dyn List,
    index: usize,
    applied: Value<'_>,
    fields: &FieldSet,
) {
    let element = item_element(field, applied);
    if let (Some(slot), Some(entry)) = (target.get_mut(index), fields.get(&element)) {
        merge_slot(shape, slot, applied, entry);
    }
}

/// The usual case: the applied items are the first ones, in this order.
fn is_prefix(field: &FieldDesc, target: &dyn List, applied: &dyn List) -> bool {
    applied.len() <= target.len()
        && (0..applied.len()).all(|i| same_key(field, target.get(i), applied.get(i)))
        && (applied.len() == target.len() || has_no_more_of_them(field, target, applied))
}

/// Whether the items behind the applied ones are others.
fn has_no_more_of_them(field: &FieldDesc, target: &dyn List, applied: &dyn List) -> bool {
    let behind = applied.len()..target.len();
    if behind.len().saturating_mul(applied.len()) > FEW {
        let known: BTreeSet<PathElement> = elements(field, applied).into_iter().collect();
        return behind
            .into_iter()
            .all(|i| !known.contains(&item_element(field, target.get(i))));
    }
    behind
        .into_iter()
        .all(|i| (0..applied.len()).all(|j| !same_key(field, target.get(i), applied.get(j))))
}

fn elements(field: &FieldDesc, list: &dyn List) -> Vec<PathElement> {
    (0..list.len()).map(|i| item_element(field, list.get(i))).collect()
}

/// The order of the merged list. Items that only one side has stay where they stand beside their neighbours; of those
/// that both have, the applied order counts. Of old items that share a key nothing is kept where the key is applied.
fn arrange(old: &[PathElement], new: &[PathElement]) -> Vec<Origin> {
    // `None`: several have the key.
    let mut old_places: BTreeMap<&PathElement, Option<usize>> = BTreeMap::new();
    for (place, element) in old.iter().enumerate() {
        old_places
            .entry(element)
            .and_modify(|p| *p = None)
            .or_insert(Some(place));
    }
    let new_places: BTreeMap<&PathElement, usize> = new.iter().enumerate().map(|(i, e)| (e, i)).collect();
    let mut shared = new.iter().filter(|e| old_places.contains_key(e)).peekable();
    let mut out: Vec<Origin> = Vec::with_capacity(old.len().max(new.len()));
    let mut taken = vec![false; new.len()];
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if let Some(element) = old.get(i) {
            let Some(&place) = new_places.get(element) else {
                out.push(Origin {
                    old: Some(i),
                    new: None,
                });
                i += 1;
                continue;
            };
            if j < new.len() && place != j && shared.peek().is_some_and(|next| *next != element) {
                // It comes, or came, at its place among the applied ones.
                i += 1;
                continue;
            }
            if <[bool]>::get(&taken, place) == Some(&true) {
                i += 1;
            }
        }
        let Some(element) = new.get(j) else { continue };
        out.push(Origin {
            old: old_places.get(element).copied().flatten(),
            new: Some(j),
        });
        if let Some(now) = <[bool]>::get_mut(&mut taken, j) {
            *now = true;
        }
        if shared.peek().is_some_and(|next| *next == element) {
            shared.next();
        }
        if old.get(i) == Some(element) {
            i += 1;
        }
        j += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fieldset::Scalar;

    #[test]
    fn order_of_items() {
        let list = |text: &str| -> Vec<PathElement> {
            text.chars()
                .map(|c| PathElement::Value(Scalar::Str(c.to_string().into())))
                .collect()
        };
        for (old, new, merged) in [
            ("ab", "ab", "ab"),
            ("ab", "ba", "ba"),
            ("abc", "c", "abc"),
            ("abc", "ca", "bca"),
            ("abc", "x", "abcx"),
            ("abc", "xb", "axbc"),
            ("ab", "zb", "azb"),
            ("azb", "bna", "zbna"),
            ("", "ab", "ab"),
            ("aab", "ab", "ab"),
            ("ax", "az", "axz"),
            ("xay", "az", "xayz"),
            ("abcde", "edcba", "edcba"),
        ] {
            let (old, new) = (list(old), list(new));
            let text: String = arrange(&old, &new)
                .iter()
                .map(|o| match o.old.map(|i| &old[i]).or(o.new.map(|i| &new[i])) {
                    Some(PathElement::Value(Scalar::Str(s))) => s.to_string(),
                    _ => String::new(),
                })
                .collect();
            assert_eq!(text, merged, "{old:?} {new:?}");
        }
    }
}
