//! The set of fields that an object has.

use super::view::{Presence, Shape, item_element};
use crate::fieldset::{Entry, FieldSet, Name, PathElement};
use crate::reflect::{Flags, Reflect, Value};

/// The fields of a message, as an applied object with this content would own them: leaves, items of lists, keys of
/// maps, and messages without content.
pub fn fields_of(message: &dyn Reflect) -> FieldSet {
    let mut entries = Vec::new();
    add_message(message, &mut entries);
    FieldSet::from_unsorted(entries)
}

fn add_message(message: &dyn Reflect, entries: &mut Vec<Entry>) {
    for (index, field) in message.desc().fields.iter().enumerate() {
        let value = message.get(index);
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
        let shape = Shape::of(field);
        let list = matches!(shape, Shape::List(_));
        let member =
            matches!(shape, Shape::Leaf) || matches!(presence, Presence::Null) || (!list && presence.is_hollow());
        entries.push(Entry {
            element: PathElement::field(field.json),
            member,
            children: below(shape, presence),
        });
    }
}

fn below(shape: Shape, presence: Presence<'_>) -> FieldSet {
    let mut entries = Vec::new();
    match (shape, presence) {
        (Shape::Message, Presence::Value(Value::Message(m))) => add_message(m, &mut entries),
        (Shape::Map(field), Presence::Value(Value::Map(m))) => m.for_each(&mut |key, value| {
            entries.push(Entry {
                element: PathElement::Field(Name::from(key)),
                member: true,
                children: below(Shape::of_entry(field), Presence::of_element(value)),
            });
        }),
        (Shape::List(field), Presence::Value(Value::List(l))) => {
            let mut set = FieldSet::EMPTY;
            for item in (0..l.len()).map(|i| l.get(i)) {
                let element = item_element(field, item);
                // Of several items of one key only the key itself is owned.
                if set.get(&element).is_some() {
                    set = set.recursive_difference(&FieldSet::of(std::slice::from_ref(&element)));
                    set.add(element, true, FieldSet::EMPTY);
                } else {
                    let children = below(Shape::of_item(field), Presence::of_element(item));
                    set.add(element, true, children);
                }
            }
            return set;
        }
        _ => {}
    }
    FieldSet::from_unsorted(entries)
}
