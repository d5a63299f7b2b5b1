//! Comparison of two objects of one type, as field sets.

use std::collections::BTreeMap;

use super::view::{Presence, Shape, item_element, same, same_key};
use crate::fieldset::{Entry, FieldSet, Name, PathElement};
use crate::reflect::equality::identical;
use crate::reflect::{self, FieldDesc, Flags, List, Map, Reflect, Unknown, Value};

/// The differences of a new object from an old one.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub added: FieldSet,
    pub removed: FieldSet,
    pub modified: FieldSet,
}

impl Comparison {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.modified.is_empty()
    }

    /// Without what is at or below the paths of `ignored`.
    pub fn without(self, ignored: &FieldSet) -> Comparison {
        if ignored.is_empty() || self.is_empty() {
            return self;
        }
        Comparison {
            added: self.added.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
        }
    }

    /// The differences as they matter to owners.
    pub fn into_changed(self) -> Changed {
        Changed {
            fields: self.added.union(self.modified),
            removed: self.removed,
        }
    }
}

/// The differences of a new object from an old one, as they matter to owners.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Fields that are there with a value which they did not have.
    pub fields: FieldSet,
    pub removed: FieldSet,
}

impl Changed {
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.removed.is_empty()
    }
}

/// Compares two messages of one type. `apiVersion` and `kind` play no part.
pub fn compare(old: &dyn Reflect, new: &dyn Reflect) -> Comparison {
    compare_without(old, new, &FieldSet::EMPTY)
}

/// As [`compare`], without what is at or below the paths of `ignored`; fields that are ignored whole are not looked at.
pub(crate) fn compare_without(old: &dyn Reflect, new: &dyn Reflect, ignored: &FieldSet) -> Comparison {
    let mut level = Level::default();
    level.messages(Some(old), Some(new), ignored);
    level.finish().without(ignored)
}

/// What differs at one path: whether the path itself does, and what does below it.
#[derive(Default)]
struct Diff {
    added: (bool, FieldSet),
    removed: (bool, FieldSet),
    modified: bool,
    below: FieldSet,
}

/// The entries of one level that differ.
#[derive(Default)]
struct Level {
    added: Vec<Entry>,
    removed: Vec<Entry>,
    modified: Vec<Entry>,
}

impl Level {
    fn finish(self) -> Comparison {
        Comparison {
            added: FieldSet::from_unsorted(self.added),
            removed: FieldSet::from_unsorted(self.removed),
            modified: FieldSet::from_unsorted(self.modified),
        }
    }

    /// The level as what is below a path.
    fn below(self) -> Diff {
        let all = self.finish();
        Diff {
            added: (false, all.added),
            removed: (false, all.removed),
            modified: false,
            below: all.modified,
        }
    }

    fn push(&mut self, element: impl Fn() -> PathElement, diff: Diff) {
        let add = |list: &mut Vec<Entry>, member: bool, children: FieldSet| {
            if member || !children.is_empty() {
                list.push(Entry {
                    element: element(),
                    member,
                    children,
                });
            }
        };
        add(&mut self.added, diff.added.0, diff.added.1);
        add(&mut self.removed, diff.removed.0, diff.removed.1);
        add(&mut self.modified, diff.modified, diff.below);
    }

    /// Fields of the names in `ignored` are passed over.
    fn messages<'a>(&mut self, old: Option<&'a dyn Reflect>, new: Option<&'a dyn Reflect>, ignored: &FieldSet) {
        let Some(desc) = old.or(new).map(Reflect::desc) else {
            return;
        };
        if [old, new]
            .into_iter()
            .flatten()
            .any(|message| message.sparse().is_some())
        {
            let mut indexes: Vec<usize> = [old, new].into_iter().flatten().flat_map(reflect::indexes).collect();
            indexes.sort_unstable();
            indexes.dedup();
            for index in indexes {
                let value = |message: Option<&'a dyn Reflect>| message.map(|message| message.get(index));
                if let Some(field) = desc.fields.get(index) {
                    self.field(field, value(old), value(new), ignored);
                }
            }
        } else {
            // What neither says does not differ; what one does not say is nothing there.
            let (mut olds, mut news) = (Said::of(old), Said::of(new));
            while let Some(index) = Said::first(&olds, &news) {
                let (a, b) = (olds.take(index), news.take(index));
                if let Some(field) = desc.fields.get(usize::from(index)) {
                    self.field(field, a, b, ignored);
                }
            }
        }
        let rest = |message: Option<&'a dyn Reflect>| message.and_then(Reflect::rest);
        if desc.unknown == Unknown::Kept {
            self.maps(FieldDesc::ANY, rest(old), rest(new));
        }
    }

    fn field<'a>(&mut self, field: &'a FieldDesc, old: Option<Value<'a>>, new: Option<Value<'a>>, ignored: &FieldSet) {
        let is_inlined = field.flags.has(Flags::INLINE);
        if !is_inlined && !ignored.is_empty() && ignored.field(&field.json).is_some_and(|entry| entry.member) {
            return;
        }
        if matches!((old, new), (Some(a), Some(b)) if identical(a, b)) {
            return;
        }
        if is_inlined {
            let message = |v: Option<Value<'_>>| matches!(v, Some(Value::Message(_)));
            if message(old) || message(new) {
                self.messages(as_message(old), as_message(new), ignored);
            }
            return;
        }
        let shown = |v| match v {
            Some(v) => Presence::of(field, v),
            None => Presence::Absent,
        };
        self.push(
            || PathElement::Field(field.json.clone()),
            diff(Shape::of(field), shown(old), shown(new)),
        );
    }

    fn maps(&mut self, field: &FieldDesc, old: Option<&dyn Map>, new: Option<&dyn Map>) {
        let shape = Shape::of_entry(field);
        let find = |map: Option<&'_ dyn Map>, key: &str| map.is_some_and(|m| m.get(key).is_some());
        let name = |key: &str| PathElement::Field(Name::from(key));
        if let Some(old) = old {
            old.for_each(&mut |key, a| {
                let b = new.and_then(|m| m.get(key));
                if b.is_some_and(|b| identical(a, b)) {
                    return;
                }
                let b = b.map_or(Presence::Absent, Presence::of_element);
                self.push(|| name(key), diff(shape, Presence::of_element(a), b));
            });
        }
        if let Some(new) = new {
            new.for_each(&mut |key, b| {
                if !find(old, key) {
                    self.push(|| name(key), diff(shape, Presence::Absent, Presence::of_element(b)));
                }
            });
        }
    }

    fn lists(&mut self, field: &FieldDesc, old: Option<&dyn List>, new: Option<&dyn List>) {
        let shape = Shape::of_item(field);
        let mut items: BTreeMap<PathElement, [Vec<Value<'_>>; 2]> = BTreeMap::new();
        for (side, list) in [old, new].into_iter().enumerate() {
            for item in list.into_iter().flat_map(|l| (0..l.len()).map(move |i| l.get(i))) {
                items.entry(item_element(field, item)).or_default()[side].push(item);
            }
        }
        for (element, [a, b]) in items {
            self.push(|| element.clone(), diff_items(shape, &a, &b));
        }
    }
}

/// What a message says, field by field; nothing where there is no message.
struct Said<'a> {
    fields: Option<std::vec::IntoIter<reflect::Said<'a>>>,
}

impl<'a> Said<'a> {
    fn of(message: Option<&'a dyn Reflect>) -> Said<'a> {
        let fields = message.map(|message| {
            let mut said = Vec::with_capacity(16);
            message.said(&mut said);
            said.into_iter()
        });
        Said { fields }
    }

    /// The first field that one of two says and that was not taken.
    fn first(one: &Said<'a>, other: &Said<'a>) -> Option<u16> {
        let next = |said: &Said<'a>| said.fields.as_ref()?.as_slice().first().map(|(index, _)| *index);
        next(one).into_iter().chain(next(other)).min()
    }

    /// The value of this field; `None` where there is no message.
    fn take(&mut self, index: u16) -> Option<Value<'a>> {
        let fields = self.fields.as_mut()?;
        let is_next = fields.as_slice().first().is_some_and(|(next, _)| *next == index);
        let said = if is_next { fields.next() } else { None };
        Some(said.map_or(Value::Absent, |(_, value)| value))
    }
}

fn as_message(value: Option<Value<'_>>) -> Option<&dyn Reflect> {
    match value {
        Some(Value::Message(m)) => Some(m),
        _ => None,
    }
}

/// Items of one key. Where a list has several of one key, they count as one thing.
fn diff_items(shape: Shape<'_>, old: &[Value<'_>], new: &[Value<'_>]) -> Diff {
    fn only<'a>(items: &[Value<'a>]) -> Presence<'a> {
        items.first().copied().map_or(Presence::Absent, Presence::of_element)
    }
    match (old.len(), new.len()) {
        (0 | 1, 0 | 1) => diff(shape, only(old), only(new)),
        (2.., 2..) => Diff {
            modified: old.len() != new.len() || !old.iter().zip(new).all(|(a, b)| same(*a, *b)),
            ..Diff::default()
        },
        (2.., _) => Diff {
            removed: (new.is_empty(), FieldSet::EMPTY),
            ..diff(shape, Presence::Absent, only(new))
        },
        _ => Diff {
            added: (true, FieldSet::EMPTY),
            ..diff(shape, only(old), Presence::Absent)
        },
    }
}

/// Of a value of which nothing is declared: an object that something else takes the place of, or the other way round.
/// Its keys go or come, and the value is another.
fn diff_kinds(old: Presence<'_>, new: Presence<'_>) -> Option<Diff> {
    let object = |value| match value {
        Presence::Value(Value::Map(_)) => value,
        _ => Presence::Absent,
    };
    let are_values = matches!((old, new), (Presence::Value(_), Presence::Value(_)));
    let (was, is) = (object(old), object(new));
    if !are_values || matches!(was, Presence::Absent) == matches!(is, Presence::Absent) {
        return None;
    }
    let mut level = Level::default();
    level.descend(Shape::Map(FieldDesc::ANY), was, is);
    Some(Diff {
        modified: true,
        ..level.below()
    })
}

fn diff(shape: Shape<'_>, old: Presence<'_>, new: Presence<'_>) -> Diff {
    use Presence::{Absent, Null, Value as Is};
    if let Shape::Any = shape
        && let Some(diff) = diff_kinds(old, new)
    {
        return diff;
    }
    let shape = shape.with_both(old, new);
    let mut out = match (shape, old, new) {
        (_, Absent, Absent) | (_, Null, Null) => return Diff::default(),
        (Shape::Leaf, Is(a), Is(b)) => {
            return Diff {
                modified: !same(a, b),
                ..Diff::default()
            };
        }
        (Shape::Message, Is(Value::Message(a)), Is(Value::Message(b))) => {
            let mut level = Level::default();
            level.messages(Some(a), Some(b), &FieldSet::EMPTY);
            return level.below();
        }
        (Shape::List(field), Is(Value::List(a)), Is(Value::List(b))) => {
            if let Some(diff) = diff_parallel(field, a, b) {
                return diff;
            }
            let mut level = Level::default();
            level.lists(field, Some(a), Some(b));
            return level.below();
        }
        (Shape::Leaf, ..) => Diff::default(),
        _ if old.is_hollow() && new.is_hollow() => Diff::default(),
        (_, old, new) => {
            let mut level = Level::default();
            level.descend(shape, old, new);
            level.below()
        }
    };
    // Where nothing was, everything is added with the path to it; of null and something else only the content differs.
    match (old, new) {
        (Absent, _) => out.added.0 = true,
        (_, Absent) => out.removed.0 = true,
        _ => out.modified = matches!(shape, Shape::Leaf) || (old.is_hollow() && new.is_hollow()),
    }
    out
}

impl Level {
    /// The content of two values of which one may not be there.
    fn descend(&mut self, shape: Shape<'_>, old: Presence<'_>, new: Presence<'_>) {
        let value = |p| match p {
            Presence::Value(v) => Some(v),
            _ => None,
        };
        let (a, b) = (value(old), value(new));
        match shape {
            Shape::Leaf | Shape::Any => {}
            Shape::Message => self.messages(as_message(a), as_message(b), &FieldSet::EMPTY),
            Shape::List(field) => {
                let list = |v| match v {
                    Some(Value::List(l)) => Some(l),
                    _ => None,
                };
                self.lists(field, list(a), list(b));
            }
            Shape::Map(field) => {
                let map = |v| match v {
                    Some(Value::Map(m)) => Some(m),
                    _ => None,
                };
                self.maps(field, map(a), map(b));
            }
        }
    }
}

/// Lists whose items have the same keys in the same places: the usual case, without building the keys of items that
/// don't differ. `None`: not such lists.
fn diff_parallel(field: &FieldDesc, old: &dyn List, new: &dyn List) -> Option<Diff> {
    let len = old.len();
    if len != new.len() || !(0..len).all(|i| same_key(field, old.get(i), new.get(i))) {
        return None;
    }
    let shape = Shape::of_item(field);
    let mut level = Level::default();
    for i in 0..len {
        let (a, b) = (old.get(i), new.get(i));
        if identical(a, b) {
            continue;
        }
        level.push(
            || item_element(field, b),
            diff(shape, Presence::of_element(a), Presence::of_element(b)),
        );
    }
    let differs = !level.added.is_empty() || !level.removed.is_empty() || !level.modified.is_empty();
    if !differs {
        return Some(Diff::default());
    }
    // Several items of one key are a case for the long way.
    let keys: std::collections::BTreeSet<PathElement> = (0..len).map(|i| item_element(field, new.get(i))).collect();
    (keys.len() == len).then(|| level.below())
}
