//! The field set of a new object, written at once.
//!
//! Everything differs from an object without content, so the set of what differs is as large as the object, and its
//! text is all that is wanted of it.

use super::view::{Presence, Shape, is_hollow, item_element, lacks_key, same};
use crate::fieldset::{FieldSet, PathElement, write_element, write_name};
use crate::reflect::{FieldDesc, Flags, List, Map, Reflect, Said, Value};

/// FieldsV1 of what `new` has and the `empty` message has not, without what is at or below the paths of `ignored` and
/// without the paths of `untracked`. `None`: it takes a real comparison. Of an object with items that lack the key by
/// which they are known nobody owns anything.
pub(crate) fn created(
    empty: &dyn Reflect,
    new: &dyn Reflect,
    ignored: &FieldSet,
    untracked: &FieldSet,
) -> Option<Vec<u8>> {
    let mut writer = Created {
        out: Vec::with_capacity(4096),
        scratch: Vec::new(),
        values: Vec::with_capacity(VALUES),
        lacks_key: false,
    };
    writer.out.push(b'{');
    writer.messages(Some(empty), new, Without { ignored, untracked })?;
    if writer.lacks_key {
        return Some(b"{}".to_vec());
    }
    writer.out.push(b'}');
    Some(writer.out)
}

/// What is left out of a level.
#[derive(Clone, Copy)]
struct Without<'a> {
    ignored: &'a FieldSet,
    untracked: &'a FieldSet,
}

const NOTHING: Without<'static> = Without {
    ignored: &FieldSet::EMPTY,
    untracked: &FieldSet::EMPTY,
};

impl<'a> Without<'a> {
    fn is_nothing(&self) -> bool {
        self.ignored.is_empty() && self.untracked.is_empty()
    }

    /// What is left out below a field; whether the field itself is. `None`: all of it is.
    fn below(self, name: &str) -> Option<(Without<'a>, bool)> {
        if self.is_nothing() {
            return Some((NOTHING, false));
        }
        let ignored = self.ignored.field(name);
        let untracked = self.untracked.field(name);
        if ignored.is_some_and(|entry| entry.member) {
            return None;
        }
        let below = Without {
            ignored: ignored.map_or(NOTHING.ignored, |entry| &entry.children),
            untracked: untracked.map_or(NOTHING.untracked, |entry| &entry.children),
        };
        Some((below, untracked.is_some_and(|entry| entry.member)))
    }
}

/// Room for the values of a message and of those within it.
const VALUES: usize = 256;

struct Created<'a> {
    out: Vec<u8>,
    /// For JSON within JSON.
    scratch: Vec<u8>,
    /// Those of the messages around the one at hand.
    values: Vec<Said<'a>>,
    /// Whether some item of a list lacks a key.
    lacks_key: bool,
}

/// A field with its value before and now.
type Member<'a> = (&'a FieldDesc, Option<Value<'a>>, Value<'a>);

/// The members of a message and of those that it inlines.
fn gather<'a>(old: Option<&'a dyn Reflect>, new: &'a dyn Reflect, members: &mut Vec<Member<'a>>) -> Option<()> {
    if new.rest().is_some() {
        return None;
    }
    let mut said = Vec::new();
    new.said(&mut said);
    for (index, value) in said {
        let index = usize::from(index);
        let Some(field) = new.desc().fields.get(index) else {
            continue;
        };
        let before = old.map(|old| old.get(index));
        if !field.flags.has(Flags::INLINE) {
            if !is_bare(field, value) {
                members.push((field, before, value));
            }
            continue;
        }
        let before = match before {
            Some(Value::Message(before)) => Some(before),
            _ => None,
        };
        match value {
            Value::Message(value) => gather(before, value, members)?,
            _ if before.is_some() => return None,
            _ => {}
        }
    }
    Some(())
}

/// Whether JSON shows nothing of the field, and would show nothing of any message that is empty there.
fn is_bare(field: &FieldDesc, value: Value<'_>) -> bool {
    let is_empty = match value {
        Value::Absent => return !field.flags.has(Flags::ALWAYS),
        Value::Bool(value) => !value,
        Value::Int32(number) => number == 0,
        Value::Int64(number) => number == 0,
        Value::Str(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    };
    is_empty && !field.flags.has(Flags::OPTIONAL) && !field.flags.has(Flags::ALWAYS)
}

impl<'a> Created<'a> {
    fn messages(&mut self, old: Option<&'a dyn Reflect>, new: &'a dyn Reflect, without: Without<'_>) -> Option<()> {
        let desc = new.desc();
        if new.sparse().is_some() || new.rest().is_some() || !desc.inlined.is_empty() {
            let mut members = Vec::new();
            gather(old, new, &mut members)?;
            members.sort_unstable_by(|(a, ..), (b, ..)| a.json.cmp(&b.json));
            return members.into_iter().try_for_each(|member| self.member(member, without));
        }
        let begin = self.values.len();
        new.said(&mut self.values);
        let name = |index: &u16| desc.fields.get(usize::from(*index)).map(|field| &field.json);
        if let Some(said) = self.values.get_mut(begin..) {
            said.sort_unstable_by(|(a, _), (b, _)| name(a).cmp(&name(b)));
        }
        for place in begin..self.values.len() {
            let Some((index, value)) = self.values.get(place).copied() else {
                continue;
            };
            let index = usize::from(index);
            if let Some(field) = desc.fields.get(index)
                && !is_bare(field, value)
            {
                self.member((field, old.map(|old| old.get(index)), value), without)?;
            }
        }
        self.values.truncate(begin);
        Some(())
    }

    fn member(&mut self, (field, before, value): Member<'a>, without: Without<'_>) -> Option<()> {
        let Some((without, untracked)) = without.below(&field.json) else {
            return Some(());
        };
        let at = self.begin();
        match field.flags.has(Flags::ESCAPED) {
            true => write_name(&field.json, &mut self.out),
            false => {
                self.out.extend_from_slice(b"\"f:");
                self.out.extend_from_slice(field.json.as_bytes());
                self.out.push(b'"');
            }
        }
        let change = Change {
            old: before.map_or(Presence::Absent, |before| Presence::of(field, before)),
            new: Presence::of(field, value),
            listed: !untracked,
        };
        self.value(Shape::of(field), change, at, without)
    }

    /// The place where an entry begins; behind a comma if there is one before it.
    fn begin(&mut self) -> usize {
        let at = self.out.len();
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        at
    }

    /// What follows the element of an entry that begins at `at`; without anything to say the entry goes again.
    fn value(&mut self, shape: Shape<'_>, change: Change<'a>, at: usize, without: Without<'_>) -> Option<()> {
        use Presence::{Absent, Null, Value as Is};
        let shape = shape.with_both(change.old, change.new);
        let (member, content) = match (shape, change.old, change.new) {
            (_, Absent, Absent) | (_, Null, Null) => (false, None),
            (Shape::Leaf, Is(a), Is(b)) => (!same(a, b), None),
            (Shape::Message, Is(Value::Message(a)), Is(Value::Message(b))) => {
                (false, Some((Some(a), Value::Message(b))))
            }
            (Shape::Leaf, Absent, _) | (Shape::Leaf, Null, Is(_)) => (true, None),
            (_, Absent, Null) => (true, None),
            (_, Absent, Is(value)) => (true, (!hollow(value)).then_some((None, value))),
            (_, Null, Is(value)) if hollow(value) => (true, None),
            (_, Null, Is(value)) => (false, Some((None, value))),
            _ => return None,
        };
        let member = member && change.listed;
        self.out.extend_from_slice(b":{");
        let inner = self.out.len();
        if let Some((old, value)) = content {
            if member {
                self.out.extend_from_slice(b"\".\":{}");
            }
            let start = self.out.len();
            self.content(shape, old, value, without)?;
            if self.out.len() == start {
                self.out.truncate(inner);
            }
        }
        if !member && self.out.len() == inner {
            self.out.truncate(at);
        } else {
            self.out.push(b'}');
        }
        Some(())
    }

    fn content(
        &mut self,
        shape: Shape<'_>,
        old: Option<&'a dyn Reflect>,
        value: Value<'a>,
        without: Without<'_>,
    ) -> Option<()> {
        match (shape, value) {
            (Shape::Message, Value::Message(new)) => self.messages(old, new, without),
            // What is left out are fields of messages.
            _ if !without.is_nothing() => None,
            (Shape::List(field), Value::List(list)) => self.list(field, list),
            (Shape::Map(field), Value::Map(map)) => self.map(field, map),
            _ => None,
        }
    }

    fn list(&mut self, field: &FieldDesc, list: &'a dyn List) -> Option<()> {
        let mut items: Vec<(PathElement, Value<'a>)> = (0..list.len())
            .map(|index| list.get(index))
            .inspect(|item| self.lacks_key |= lacks_key(field, *item))
            .map(|item| (item_element(field, item), item))
            .collect();
        if !items.is_sorted_by(|a, b| a.0 < b.0) {
            items.sort_by(|a, b| a.0.cmp(&b.0));
        }
        for same in items.chunk_by(|a, b| a.0 == b.0) {
            let [(element, item), more @ ..] = same else { continue };
            let at = self.begin();
            write_element(element, &mut self.scratch, &mut self.out);
            if more.is_empty() {
                self.value(Shape::of_item(field), Change::to(*item), at, NOTHING)?;
            } else {
                // Items of one key count as one thing.
                self.out.extend_from_slice(b":{}");
            }
        }
        Some(())
    }

    fn map(&mut self, field: &FieldDesc, map: &'a dyn Map) -> Option<()> {
        let shape = Shape::of_entry(field);
        let mut outcome = Some(());
        map.for_each(&mut |key, value| {
            let at = self.begin();
            write_name(key, &mut self.out);
            outcome = outcome.and_then(|()| self.value(shape, Change::to(value), at, NOTHING));
        });
        outcome
    }
}

/// What an entry is about.
struct Change<'a> {
    old: Presence<'a>,
    new: Presence<'a>,
    /// Whether the path itself may be in the set.
    listed: bool,
}

impl<'a> Change<'a> {
    /// Of an element that was not there.
    fn to(value: Value<'a>) -> Change<'a> {
        Change {
            old: Presence::Absent,
            new: Presence::of_element(value),
            listed: true,
        }
    }
}

fn hollow(value: Value<'_>) -> bool {
    match value {
        Value::Message(message) => is_hollow(message),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}
