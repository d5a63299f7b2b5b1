//! Values, as much as possible borrowed from whoever has them.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt::{self, Debug};
use std::rc::Rc;
use std::sync::Arc;

use super::moment::Moment;
use crate::reflect::Name;
use crate::reflect::time::Duration;

/// A text, borrowed, owned, or shared with the program that it is written in.
#[derive(Clone)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Own(Rc<str>),
    Written(Arc<str>),
}

impl Text<'_> {
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Own(text) => text,
            Text::Written(text) => text,
        }
    }
}

/// A list that somebody else has.
pub trait Elements<'a> {
    fn count(&self) -> usize;
    fn get(&self, index: usize) -> Option<Value<'a>>;
    /// How it is compared with others and added to.
    fn matching(&self) -> Matching<'a> {
        Matching::InOrder
    }
}

/// Which elements of two lists are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matching<'a> {
    /// Those in the same place.
    InOrder,
    /// Equal ones: there is one of each.
    Set,
    /// Those that have the same values in these fields.
    Keys(&'a [Name]),
}

/// A map with texts as keys that somebody else has, or an object with its fields.
pub trait Entries<'a> {
    fn count(&self) -> usize;
    /// `None`: absent.
    fn get(&self, key: &str) -> Option<Value<'a>>;
    /// All keys that are present.
    fn keys(&self) -> Vec<Text<'a>>;
    /// The name of the message that it is; `None`: it is none.
    fn message(&self) -> Option<&str> {
        None
    }
    /// What an expression can't reach, by its keys, as JSON: equality looks at it.
    fn unseen(&self) -> Vec<(Text<'a>, String)> {
        Vec::new()
    }
}

#[derive(Clone)]
pub enum List<'a> {
    Borrowed(Rc<dyn Elements<'a> + 'a>),
    Own(Rc<Vec<Value<'a>>>),
    /// Parts of a text, as functions cut them out: a list of texts and nothing else. Some of kube-apiserver's uses of
    /// an expression do not take such a list, whence the difference.
    Texts(Rc<[Rc<str>]>),
}

#[derive(Clone)]
pub enum Map<'a> {
    Borrowed(Rc<dyn Entries<'a> + 'a>),
    /// In the order in which they were written; keys are booleans, numbers or texts.
    Own(Rc<Vec<(Value<'a>, Value<'a>)>>),
}

/// A value that only functions look into.
pub trait Opaque: Debug {
    /// The name of its type.
    fn name(&self) -> &'static str;
    fn equals(&self, other: &dyn Opaque) -> bool;
    fn as_any(&self) -> &dyn Any;
}

/// What an expression works with.
#[derive(Clone)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    Duration(Duration),
    Timestamp(Moment),
    List(List<'a>),
    Map(Map<'a>),
    Opaque(Rc<dyn Opaque>),
    Optional(Option<Rc<Value<'a>>>),
    /// The name of a type.
    Type(Rc<str>),
    /// There is a value, but none that an expression can work with: why. Whoever evaluates to it fails.
    Invalid(Rc<str>),
}

impl<'a> Value<'a> {
    pub fn text(text: impl Into<Rc<str>>) -> Value<'a> {
        Value::String(Text::Own(text.into()))
    }

    pub fn list(elements: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Own(Rc::new(elements)))
    }

    /// A list of parts of a text.
    pub fn texts<'t>(parts: impl Iterator<Item = &'t str>) -> Value<'a> {
        Value::List(List::Texts(parts.map(Rc::from).collect()))
    }

    pub fn opaque(value: impl Opaque + 'static) -> Value<'a> {
        Value::Opaque(Rc::new(value))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The name of the value's type.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::List(_) => "list",
            Value::Map(map) => map.message().unwrap_or("map"),
            Value::Opaque(value) => value.name(),
            Value::Optional(_) => "optional_type",
            Value::Type(_) => "type",
            Value::Invalid(_) => "error",
        }
    }

    /// Characters of a text, bytes, elements or entries; 1 for anything else.
    pub fn size(&self) -> u64 {
        let size = match self {
            Value::String(text) => text.as_str().len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            _ => 1,
        };
        size as u64
    }

    /// Whether two values are the same. Numbers are compared by what they are, not by their type.
    pub fn equals(&self, other: &Value<'a>) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a.as_str() == b.as_str(),
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::List(a), Value::List(b)) => a.equals(b),
            (Value::Map(a), Value::Map(b)) => a.equals(b),
            (Value::Opaque(a), Value::Opaque(b)) => a.equals(&**b),
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b),
                (None, None) => true,
                _ => false,
            },
            (a, b) => matches!(compare_numbers(a, b), Some(Ordering::Equal)),
        }
    }

    /// Which of two values of one kind is the larger; `None`: they have no order.
    pub fn compare(&self, other: &Value<'a>) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::String(a), Value::String(b)) => Some(a.as_str().cmp(b.as_str())),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            (a, b) => compare_numbers(a, b),
        }
    }
}

fn same<'a>(a: Option<&Value<'a>>, b: Option<&Value<'a>>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a.equals(b))
}

fn compare_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    let wide = |value: &Value<'_>| match value {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Uint(n) => Some(i128::from(*n)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => whole_order(wide(b)?, *a).map(Ordering::reverse),
        (a, Value::Double(b)) => whole_order(wide(a)?, *b),
        (a, b) => Some(wide(a)?.cmp(&wide(b)?)),
    }
}

/// How a whole number stands to a fraction, without losing digits of the first.
fn whole_order(whole: i128, fraction: f64) -> Option<Ordering> {
    if fraction.is_nan() {
        return None;
    }
    // Beyond these bounds a fraction is larger, or smaller, than any whole number here.
    if fraction >= 2e19 {
        return Some(Ordering::Less);
    }
    if fraction <= -2e19 {
        return Some(Ordering::Greater);
    }
    let floor = fraction.floor();
    Some(match whole.cmp(&(floor as i128)) {
        Ordering::Equal if fraction > floor => Ordering::Less,
        order => order,
    })
}

impl<'a> List<'a> {
    fn matching(&self) -> Matching<'a> {
        match self {
            List::Borrowed(list) => list.matching(),
            List::Own(_) | List::Texts(_) => Matching::InOrder,
        }
    }

    fn equals(&self, other: &List<'a>) -> bool {
        let matching = self.matching();
        self.len() == other.len()
            && match matching {
                Matching::InOrder => (0..self.len()).all(|n| same(self.get(n).as_ref(), other.get(n).as_ref())),
                Matching::Set => other.iter().all(|one| self.iter().any(|own| own.equals(&one))),
                Matching::Keys(keys) => other.iter().all(|one| {
                    let own = self.iter().find(|own| same_keys(own, &one, keys));
                    own.is_some_and(|own| own.equals(&one))
                }),
            }
    }

    /// The elements of both; where they are known again, those of the other one count.
    pub(super) fn concat(self, other: List<'a>) -> List<'a> {
        let matching = self.matching();
        let mut elements = self.into_vec();
        for one in other.into_vec() {
            let known = match matching {
                Matching::InOrder => None,
                Matching::Set => elements.iter().position(|own| own.equals(&one)),
                Matching::Keys(keys) => elements.iter().position(|own| same_keys(own, &one, keys)),
            };
            match known.and_then(|at| elements.get_mut(at)) {
                Some(own) => *own = one,
                None => elements.push(one),
            }
        }
        match matching {
            Matching::InOrder => List::Own(Rc::new(elements)),
            matching => List::Borrowed(Rc::new(Merged { elements, matching })),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            List::Borrowed(list) => list.count(),
            List::Own(list) => list.len(),
            List::Texts(texts) => texts.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Borrowed(list) => list.get(index),
            List::Own(list) => list.get(index).cloned(),
            List::Texts(texts) => texts.get(index).map(|text| Value::text(text.clone())),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|n| self.get(n))
    }

    /// The elements, copied only if they are borrowed or shared.
    pub(super) fn into_vec(self) -> Vec<Value<'a>> {
        match self {
            List::Own(list) => Rc::try_unwrap(list).unwrap_or_else(|shared| shared.to_vec()),
            borrowed => borrowed.iter().collect(),
        }
    }
}

/// Whether two objects have the same values in these fields.
fn same_keys<'a>(a: &Value<'a>, b: &Value<'a>, keys: &[Name]) -> bool {
    let (Value::Map(a), Value::Map(b)) = (a, b) else {
        return false;
    };
    keys.iter().all(|key| match (a.field(key), b.field(key)) {
        (Some(a), Some(b)) => a.equals(&b),
        (a, b) => a.is_none() && b.is_none(),
    })
}

/// Elements of a list that is not compared in order.
struct Merged<'a> {
    elements: Vec<Value<'a>>,
    matching: Matching<'a>,
}

impl<'a> Elements<'a> for Merged<'a> {
    fn count(&self) -> usize {
        self.elements.len()
    }

    fn get(&self, index: usize) -> Option<Value<'a>> {
        self.elements.get(index).cloned()
    }

    fn matching(&self) -> Matching<'a> {
        self.matching
    }
}

impl<'a> Map<'a> {
    /// The name of the message that it is; `None`: it is a map like others.
    pub fn message(&self) -> Option<&str> {
        match self {
            Map::Borrowed(map) => map.message(),
            Map::Own(_) => None,
        }
    }

    fn equals(&self, other: &Map<'a>) -> bool {
        let keys = self.keys();
        self.len() == other.len()
            && self.message() == other.message()
            && keys
                .iter()
                .all(|key| same(self.get(key).as_ref(), other.get(key).as_ref()))
            && self.same_unseen(other)
    }

    /// Whether nothing that both have and expressions can't reach differs.
    fn same_unseen(&self, other: &Map<'a>) -> bool {
        let (Map::Borrowed(a), Map::Borrowed(b)) = (self, other) else {
            return true;
        };
        let own = a.unseen();
        if own.is_empty() {
            return true;
        }
        let others = b.unseen();
        own.iter().all(|(key, json)| {
            let other = others.iter().find(|(other, _)| other.as_str() == key.as_str());
            other.is_none_or(|(_, other)| other == json)
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Map::Borrowed(map) => map.count(),
            Map::Own(map) => map.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, key: &Value<'a>) -> Option<Value<'a>> {
        match self {
            Map::Borrowed(map) => map.get(key.as_str()?),
            Map::Own(map) => map
                .iter()
                .find(|(known, _)| known.equals(key))
                .map(|(_, value)| value.clone()),
        }
    }

    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Map::Borrowed(map) => map.get(name),
            Map::Own(map) => {
                let found = map.iter().find(|(known, _)| known.as_str() == Some(name));
                found.map(|(_, value)| value.clone())
            }
        }
    }

    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Borrowed(map) => map.keys().into_iter().map(Value::String).collect(),
            Map::Own(map) => map.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Uint(n) => write!(f, "{n}u"),
            Value::Double(n) => write!(f, "{n:?}"),
            Value::String(text) => write!(f, "{:?}", text.as_str()),
            Value::Bytes(bytes) => write!(f, "b{bytes:?}"),
            Value::Duration(span) => write!(f, "{span}"),
            Value::Timestamp(time) => write!(f, "{time}"),
            Value::List(list) => f.debug_list().entries(list.iter()).finish(),
            Value::Map(map) => {
                let pairs = map.keys().into_iter().map(|key| {
                    let value = map.get(&key);
                    (key, value)
                });
                let mut shown = f.debug_map();
                for (key, value) in pairs {
                    shown.key(&key).value(&value.unwrap_or(Value::Null));
                }
                shown.finish()
            }
            Value::Opaque(value) => write!(f, "{value:?}"),
            Value::Optional(None) => f.write_str("optional.none()"),
            Value::Optional(Some(value)) => write!(f, "optional({value:?})"),
            Value::Type(name) => write!(f, "type({name})"),
            Value::Invalid(why) => write!(f, "invalid({why})"),
        }
    }
}
