//! The set of fields that an object has.

use super::view::{Presence, Shape, item_element};
use crate::fieldset::{Entry, FieldSet, Name, PathElement};
use crate::reflect::{self, Flags, Reflect, Value};

/// The fields of a message, as an applied object with this content would own them: leaves, items of lists, keys of
/// maps, and messages without content.
pub fn fields_of(message: &dyn Reflect) -> FieldSet {
    let mut entries = Vec::new();
    add_message(message, &mut entries);
    FieldSet::from_unsorted(entries)
}

/// Those of the paths below which the object has nothing.
pub fn hollow_in(object: &dyn Reflect, paths: &FieldSet) -> FieldSet {
    let there = fields_of(object);
    let mut hollow = FieldSet::EMPTY;
    paths.for_each(&mut |path| {
        if there.below(path).is_empty() {
            let path: Vec<PathElement> = path.iter().map(|element| (*element).clone()).collect();
            hollow.insert(&path);
        }
    });
    hollow
}

fn add_message(message: &dyn Reflect, entries: &mut Vec<Entry>) {
    for (_, field, value) in reflect::fields(message) {
        if field.flags.has(Flags::INLINE) {
            if let Value::Message(inlined) = value {
                add_message(inlined, entries);
            }
            continue;
        }
        let presence = Presence::of(field, value);
        if matches!(presence, Presence::Absent) {
            continue;
        }
        let shape = Shape::of(field).with_both(presence, Presence::Absent);
        let list = matches!(shape, Shape::List(_));
        let member =
            matches!(shape, Shape::Leaf) || matches!(presence, Presence::Null) || (!list && presence.is_hollow());
        entries.push(Entry {
            element: PathElement::Field(field.json.clone()),
            member,
            children: below(shape, presence),
        });
    }
    if let Some(rest) = message.rest() {
        rest.for_each(&mut |key, value| {
            let presence = Presence::of_element(value);
            let shape = Shape::Any.with_both(presence, Presence::Absent);
            entries.push(Entry {
                element: PathElement::Field(Name::from(key)),
                member: true,
                children: below(shape, presence),
            });
        });
    }
}

fn below(shape: Shape<'_>, presence: Presence<'_>) -> FieldSet {
    let mut entries = Vec::new();
    match (shape.with_both(presence, Presence::Absent), presence) {
        (Shape::Message, Presence::Value(Value::Message(m))) => add_message(m, &mut entries),
        (Shape::Map(field), Presence::Value(Value::Map(m))) => m.for_each(&mut |key, value| {
            entries.push(Entry {
                element: PathElement::Field(Name::from(key)),
                member: true,
                children: below(Shape::of_entry(field), Presence::of_element(value)),
            });
        }),
        (Shape::List(field), Presence::Value(Value::List(l))) => {
            let entry = |item| Entry {
                element: item_element(field, item),
                member: true,
                children: below(Shape::of_item(field), Presence::of_element(item)),
            };
            entries.extend((0..l.len()).map(|i| entry(l.get(i))));
            entries.sort_by(|a, b| a.element.cmp(&b.element));
            entries.dedup_by(|next, kept| {
                let same = next.element == kept.element;
                if same {
                    // Of several items of one key only the key itself is owned.
                    kept.children = FieldSet::EMPTY;
                }
                same
            });
        }
        _ => {}
    }
    FieldSet::from_unsorted(entries)
}
