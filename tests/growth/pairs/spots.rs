//! Spots: what can be made large below a message, found through the field tables, and the pairs of them.
//!
//! Work that grows with the product of two places needs code that sees both, so pairs are made of what lies a few steps
//! below the same message. A message is looked at in the first kind that has it.

use std::collections::BTreeSet;

use keelson_machinery::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Type};
use keelson_machinery::scheme::KindDesc;

/// Messages within messages that are looked at.
const MAX_DEPTH: usize = 9;
/// Steps from the message that has both: to lists and maps, to texts, and of an object as a whole.
const TO_ITEMS: usize = 3;
const TO_TEXT: usize = 2;
const OF_OBJECT: usize = 4;

pub type Path = Vec<&'static FieldDesc>;

/// What grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// The items of a list, the entries of a map.
    Items,
    /// A text.
    Text,
    /// The key of the one entry of a map.
    Key,
    /// The value of the one entry of a map of texts.
    Value,
    /// Fields that the message at the end of the path does not have.
    Unknown,
}

/// A place that can be made large.
#[derive(Clone, Debug)]
pub struct Spot {
    pub path: Path,
    pub growth: Growth,
}

impl Spot {
    pub fn name(&self) -> String {
        let path: Vec<&str> = self.path.iter().map(|field| field.json.as_str()).collect();
        format!("{} ({:?})", path.join("."), self.growth)
    }

    /// How many steps are below its message: those into fields that stand in the same object don't count.
    fn steps(&self) -> usize {
        steps(&self.path)
    }

    fn is_text(&self) -> bool {
        matches!(self.growth, Growth::Text | Growth::Value)
    }
}

fn steps(path: &[&'static FieldDesc]) -> usize {
    path.iter().filter(|field| !field.flags.has(Flags::INLINE)).count()
}

/// Two spots below the same message.
#[derive(Clone)]
pub struct Pair {
    pub kind: &'static KindDesc,
    /// From the object to the message.
    pub above: Path,
    pub owner: &'static str,
    pub spots: [Spot; 2],
}

impl Pair {
    pub fn name(&self) -> String {
        let [one, other] = &self.spots;
        let (kind, owner) = (&self.kind.kind, self.owner);
        format!("{kind} {owner}: {} × {}", one.name(), other.name())
    }

    /// Whether one of them is part of the object's status.
    pub fn is_of_status(&self) -> bool {
        let begins = |path: &Path| path.first().is_some_and(|field| field.json == "status");
        match self.above.is_empty() {
            true => self.spots.iter().any(|spot| begins(&spot.path)),
            false => begins(&self.above),
        }
    }
}

/// The pairs of all messages of some kinds.
pub fn of_kinds(kinds: impl IntoIterator<Item = &'static KindDesc>) -> Vec<Pair> {
    let mut walk = Walk::default();
    for kind in kinds {
        walk.of_kind.clear();
        walk.message(kind, &kind.message);
    }
    walk.found
}

#[derive(Default)]
struct Walk {
    found: Vec<Pair>,
    /// Messages that were looked at, in any kind, and in the present one.
    seen: BTreeSet<&'static str>,
    of_kind: BTreeSet<&'static str>,
    path: Path,
}

impl Walk {
    fn message(&mut self, kind: &'static KindDesc, desc: &'static MessageDesc) {
        if self.path.len() > MAX_DEPTH || !self.of_kind.insert(&desc.name) {
            return;
        }
        if self.seen.insert(&desc.name) {
            self.pairs(kind, desc);
        }
        for field in &desc.fields {
            if let Some(inner) = field.message() {
                self.path.push(field);
                self.message(kind, inner);
                self.path.pop();
            }
        }
    }

    fn pairs(&mut self, kind: &'static KindDesc, desc: &'static MessageDesc) {
        let more = if self.path.is_empty() { OF_OBJECT - TO_ITEMS } else { 0 };
        let mut spots = vec![Spot {
            path: Vec::new(),
            growth: Growth::Unknown,
        }];
        below(desc, TO_ITEMS + more, &mut Vec::new(), &mut spots);
        spots.retain(|spot| !spot.is_text() || spot.steps() <= TO_TEXT + more);
        for (place, one) in spots.iter().enumerate() {
            for other in spots.get(place..).into_iter().flatten() {
                if go_together(one, other) {
                    self.found.push(Pair {
                        kind,
                        above: self.path.clone(),
                        owner: &desc.name,
                        spots: [one.clone(), other.clone()],
                    });
                }
            }
        }
    }
}

/// The spots so many steps below a message.
fn below(desc: &'static MessageDesc, most: usize, path: &mut Path, found: &mut Vec<Spot>) {
    for field in &desc.fields {
        // A message below itself has the same spots once more.
        if path.iter().any(|above| std::ptr::eq(*above, field)) {
            continue;
        }
        path.push(field);
        if steps(path) <= most {
            for growth in growths(&field.ty) {
                let path = path.clone();
                found.push(Spot { path, growth: *growth });
            }
            if let Some(inner) = field.message() {
                below(inner, most, path, found);
            }
        }
        path.pop();
    }
}

fn growths(ty: &Type) -> &'static [Growth] {
    match ty {
        Type::Map(value) if value.ty.message().is_some() => &[Growth::Items, Growth::Key],
        Type::Map(value) if matches!(value.ty, Type::String | Type::Bytes) => &[Growth::Items, Growth::Value],
        Type::List(_) | Type::Map(_) | Type::Leaf(LeafKind::Raw | LeafKind::Union) => &[Growth::Items],
        Type::String | Type::Bytes | Type::Leaf(LeafKind::IntOrString) => &[Growth::Text],
        _ => &[],
    }
}

/// Whether both can be large at once, and something is done for each part of the one. What lies below the same field
/// is looked at where the message in it is.
fn go_together(one: &Spot, other: &Spot) -> bool {
    let is_countable = |spot: &Spot| matches!(spot.growth, Growth::Items | Growth::Unknown);
    if !is_countable(one) && !is_countable(other) {
        return false;
    }
    match (one.path.first(), other.path.first()) {
        (Some(a), Some(b)) if std::ptr::eq(*a, *b) => is_within(one, other),
        (None, None) => false,
        _ => true,
    }
}

/// Whether one is a key, and the other is in what has it; or whether they are the same list.
fn is_within(one: &Spot, other: &Spot) -> bool {
    let begins =
        other.path.len() >= one.path.len() && one.path.iter().zip(&other.path).all(|(a, b)| std::ptr::eq(*a, *b));
    match one.growth {
        Growth::Key => begins && other.path.len() > one.path.len(),
        Growth::Items => begins && other.path.len() == one.path.len() && other.growth == Growth::Items,
        Growth::Text | Growth::Value | Growth::Unknown => false,
    }
}
