//! Takes fields out of a message that their writer no longer applies and that belong to no one else.

use super::view::{Shape, is_hollow_without, item_element};
use crate::fieldset::{Entry, FieldSet, PathElement};
use crate::reflect::{FieldDesc, List, Map, MessageDesc, Reflect, Slot, Type, Unknown as Others, Value};

/// The fields of `last` that none of `owned` has. A named field counts as owned (or as applied before) where something
/// below it is.
pub(super) fn unowned(desc: &MessageDesc, last: &FieldSet, owned: &[&FieldSet]) -> FieldSet {
    below(Level::Message(desc), last, owned)
}

/// A set in which every named field that has something below it is a member too.
pub(super) fn with_parents(desc: &MessageDesc, set: &FieldSet) -> FieldSet {
    ensure(Level::Message(desc), set)
}

/// What of `removed` went because `gone` was taken out, or with it. A message, map or list that has lost all that it
/// had and was not taken out itself counts as there: it is null then in kube-apiserver, and its other owners keep it.
pub(super) fn taken_out(desc: &MessageDesc, removed: &FieldSet, gone: &FieldSet) -> FieldSet {
    without_hollowed(Level::Message(desc), removed, gone)
}

fn without_hollowed(level: Level<'_>, removed: &FieldSet, gone: &FieldSet) -> FieldSet {
    let entries = removed.entries().iter().map(|entry| match gone.get(&entry.element) {
        Some(found) if !found.member => {
            let (next, named) = level.step(&entry.element);
            Entry {
                element: entry.element.clone(),
                member: entry.member && (!named || matches!(next, Level::Unknown)),
                children: without_hollowed(next, &entry.children, &found.children),
            }
        }
        _ => entry.clone(),
    });
    FieldSet::from_unsorted(entries.collect())
}

/// What the entries of a level are.
#[derive(Clone, Copy)]
enum Level<'d> {
    Message(&'d MessageDesc),
    List(&'d FieldDesc),
    Map(&'d FieldDesc),
    /// Of an object of which nothing is declared.
    Any,
    /// Nothing is known of it: the paths are of another schema, or below something that is owned as a whole.
    Unknown,
}

impl<'d> Level<'d> {
    /// The level below an element, and whether the element is a named field.
    fn step(self, element: &PathElement) -> (Level<'d>, bool) {
        match (self, element) {
            (Level::Message(desc), PathElement::Field(name)) => match desc.declared(name) {
                Some(field) => (Level::of(Shape::of(field), &field.ty), true),
                None if desc.unknown == Others::Kept => (Level::Any, false),
                None => (Level::Unknown, false),
            },
            (Level::List(field), _) => match &field.ty {
                Type::List(item) => (Level::of(Shape::of_item(field), &item.ty), false),
                _ => (Level::Unknown, false),
            },
            (Level::Map(field), _) => match &field.ty {
                Type::Map(value) => (Level::of(Shape::of_entry(field), &value.ty), false),
                _ => (Level::Unknown, false),
            },
            (Level::Any, PathElement::Field(_)) => (Level::Any, false),
            _ => (Level::Unknown, false),
        }
    }

    fn of(shape: Shape<'d>, ty: &'d Type) -> Level<'d> {
        match (shape, ty) {
            (Shape::Any, _) => Level::Any,
            (Shape::Message, Type::Message(desc)) => Level::Message(desc),
            (Shape::List(field), _) => Level::List(field),
            (Shape::Map(field), _) => Level::Map(field),
            _ => Level::Unknown,
        }
    }
}

fn below(level: Level<'_>, last: &FieldSet, owned: &[&FieldSet]) -> FieldSet {
    let mut out = FieldSet::EMPTY;
    for entry in last.entries() {
        let mut others = owned.iter().filter_map(|set| set.get(&entry.element));
        // Nearly always one owner is left, and owns it still.
        match (others.next(), others.next()) {
            (None, _) => lose(level, entry, &[], &[], &mut out),
            (Some(only), None) => lose(level, entry, &[only], &[&only.children], &mut out),
            (Some(first), Some(second)) => {
                let all: Vec<&Entry> = [first, second].into_iter().chain(others).collect();
                let sets: Vec<&FieldSet> = all.iter().map(|e| &e.children).collect();
                lose(level, entry, &all, &sets, &mut out);
            }
        }
    }
    out
}

/// Adds what of an entry none of the others' entries (and `sets`, what is below those) has.
fn lose(level: Level<'_>, entry: &Entry, others: &[&Entry], sets: &[&FieldSet], out: &mut FieldSet) {
    if entry.children.is_empty() && others.iter().any(|e| e.member) {
        return;
    }
    let (next, named) = level.step(&entry.element);
    let counts = |e: &Entry| e.member || (named && !e.children.is_empty());
    if counts(entry) && !others.iter().any(|e| counts(e)) {
        return out.add(entry.element.clone(), true, FieldSet::EMPTY);
    }
    let children = below(next, &entry.children, sets);
    if !children.is_empty() {
        out.add(entry.element.clone(), false, children);
    }
}

fn ensure(level: Level<'_>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::EMPTY;
    for entry in set.entries() {
        let (next, named) = level.step(&entry.element);
        let member = entry.member || (named && !entry.children.is_empty());
        out.add(entry.element.clone(), member, ensure(next, &entry.children));
    }
    out
}

/// Takes the fields of a set out of a message, each with all that is below it. Messages, lists and maps that something
/// was to be taken out of and that have no content left go too.
pub fn remove(message: &mut dyn Reflect, fields: &FieldSet) {
    for entry in fields.entries() {
        if let Some(name) = entry.element.name() {
            remove_field(message, name, entry);
        }
    }
}

fn remove_field(message: &mut dyn Reflect, name: &str, entry: &Entry) {
    let desc = message.handle().clone();
    if let Some((index, field)) = desc.field(name) {
        if let Some(slot) = message.get_mut(index) {
            remove_from(Shape::of(field), slot, entry);
        }
        return;
    }
    for (index, _) in desc.inlined().filter(|(_, inlined)| inlined.declared(name).is_some()) {
        if let Some(slot) = message.get_mut(index)
            && let Some(Slot::Message(inlined)) = slot.present()
        {
            return remove_field(inlined, name, entry);
        }
    }
    if let Some(rest) = message.rest_mut() {
        remove_entry(FieldDesc::ANY, rest, name, entry);
    }
}

fn remove_from(shape: Shape<'_>, slot: Slot<'_>, entry: &Entry) {
    if entry.member {
        return crate::reflect::copy::clear(slot);
    }
    match slot {
        Slot::Optional(mut optional) => {
            if optional.is_some() && remove_below(shape, optional.reborrow().open(), &entry.children) {
                optional.clear();
            }
        }
        slot => drop(remove_below(shape, slot, &entry.children)),
    }
}

/// Returns whether nothing is left.
fn remove_below(shape: Shape<'_>, slot: Slot<'_>, fields: &FieldSet) -> bool {
    match (shape, slot) {
        (Shape::Message, Slot::Message(message)) => {
            remove(message, fields);
            // What was taken out is gone even where the server writes null for it.
            is_hollow_without(message, &|name| fields.field(name).is_some_and(|e| e.member))
        }
        (Shape::List(field), Slot::List(list)) => {
            remove_items(field, list, fields);
            list.is_empty()
        }
        (Shape::Map(field), Slot::Map(map)) => {
            remove_entries(field, map, fields);
            map.is_empty()
        }
        (Shape::Any, Slot::Map(map)) => {
            remove_entries(FieldDesc::ANY, map, fields);
            map.is_empty()
        }
        _ => false,
    }
}

fn remove_items(field: &FieldDesc, list: &mut dyn List, fields: &FieldSet) {
    let shape = Shape::of_item(field);
    for index in (0..list.len()).rev() {
        let element = item_element(field, list.get(index));
        match fields.get(&element) {
            Some(entry) if entry.member => list.remove(index),
            Some(entry) => {
                if let Some(slot) = list.get_mut(index) {
                    remove_from(shape, slot, entry);
                }
            }
            None => {}
        }
    }
}

fn remove_entries(field: &FieldDesc, map: &mut dyn Map, fields: &FieldSet) {
    for entry in fields.entries() {
        if let Some(name) = entry.element.name() {
            remove_entry(field, map, name, entry);
        }
    }
}

fn remove_entry(field: &FieldDesc, map: &mut dyn Map, name: &str, entry: &Entry) {
    if entry.member {
        map.remove(name);
    } else if map.get(name).is_some_and(|v| !matches!(v, Value::Absent | Value::Null)) {
        remove_from(Shape::of_entry(field), map.entry(name), entry);
    }
}
