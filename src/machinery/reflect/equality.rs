//! Equality of messages by their fields, as Kubernetes compares: an empty list or map is the same as none, quantities
//! and times compare by value.

use crate::reflect::quantity::Quantity;
use crate::reflect::{self, FieldDesc, Flags, Leaf, LeafKind, List, Map, Reflect, Said, Unknown, Value};

/// Whether two messages of the same type have the same fields. Messages of different types are not equal.
pub fn equal(a: &dyn Reflect, b: &dyn Reflect) -> bool {
    let desc = a.desc();
    let fields = || match a.sparse() {
        None => (0..desc.fields.len()).all(|i| equal_field(a, b, i)),
        Some(_) => reflect::indexes_of_both(a, b).into_iter().all(|i| equal_field(a, b, i)),
    };
    is_shared(a, b) || (std::ptr::eq(desc, b.desc()) && fields() && equal_rest(a, b))
}

/// Whether two messages are known to be the same without a look at their fields.
fn is_shared(a: &dyn Reflect, b: &dyn Reflect) -> bool {
    matches!((a.shared(), b.shared()), (Some(a), Some(b)) if a.is_same(b))
}

/// Whether two messages hold the same beside their fields.
pub fn equal_rest(a: &dyn Reflect, b: &dyn Reflect) -> bool {
    match (a.rest(), b.rest()) {
        (Some(a), Some(b)) => equal_maps(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn is_absent(value: Value<'_>) -> bool {
    matches!(value, Value::Absent)
}

/// Whether two messages of one type have the same value in field `index`. What is absent differs from what is empty
/// where both are kept as they were said.
pub fn equal_field(a: &dyn Reflect, b: &dyn Reflect, index: usize) -> bool {
    let is_dynamic = a.desc().is_dynamic();
    let (a, b) = (a.get(index), b.get(index));
    (!is_dynamic || is_absent(a) == is_absent(b)) && equal_values(a, b)
}

/// Whether two values of one field are the same.
pub fn equal_values(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Absent, Value::Absent) | (Value::Null, Value::Null) => true,
        // An optional list or map that is there but empty equals one that is not.
        (Value::Absent, Value::List(l)) | (Value::List(l), Value::Absent) => l.is_empty(),
        (Value::Absent, Value::Map(m)) | (Value::Map(m), Value::Absent) => m.is_empty(),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int32(a), Value::Int32(b)) => a == b,
        (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Message(a), Value::Message(b)) => equal(a, b),
        (Value::Leaf(a), Value::Leaf(b)) => a.eq_leaf(b),
        (Value::List(a), Value::List(b)) => equal_lists(a, b),
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b),
        _ => false,
    }
}

fn equal_lists(a: &dyn List, b: &dyn List) -> bool {
    a.len() == b.len() && (0..a.len()).all(|i| equal_values(a.get(i), b.get(i)))
}

fn equal_maps(a: &dyn Map, b: &dyn Map) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut same = true;
    a.for_each(&mut |key, value| same = same && b.get(key).is_some_and(|other| equal_values(value, other)));
    same
}

/// Room for the values of two messages and of those within them.
const VALUES: usize = 96;

/// Whether two values of one field are the same in all respects, so that one may stand for the other: what is equal but
/// written otherwise is not.
pub fn identical(a: Value<'_>, b: Value<'_>) -> bool {
    identical_values(a, b, &mut Vec::new())
}

/// `values` has the values of the messages around these.
fn identical_values<'a>(a: Value<'a>, b: Value<'a>, values: &mut Vec<Said<'a>>) -> bool {
    match (a, b) {
        (Value::Absent, Value::Absent) | (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int32(a), Value::Int32(b)) => a == b,
        (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Message(a), Value::Message(b)) => identical_messages(a, b, values),
        (Value::Leaf(a), Value::Leaf(b)) => identical_leaves(a, b),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && (0..a.len()).all(|i| identical_values(a.get(i), b.get(i), values))
        }
        (Value::Map(a), Value::Map(b)) => identical_maps(a, b, values),
        _ => false,
    }
}

/// Both have their keys in order, so that what belongs together stands in the same place: a lookup of each key takes
/// longer.
fn identical_maps<'a>(a: &'a dyn Map, b: &'a dyn Map, values: &mut Vec<Said<'a>>) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let begin = values.len();
    a.for_each(&mut |key, value| values.extend([(0, Value::Str(key)), (1, value)]));
    let middle = values.len();
    b.for_each(&mut |key, value| values.extend([(0, Value::Str(key)), (1, value)]));
    identical_halves(begin, middle, values)
}

fn identical_fields<'a>(a: &'a dyn Reflect, b: &'a dyn Reflect, values: &mut Vec<Said<'a>>) -> bool {
    if values.capacity() == 0 {
        values.reserve(VALUES);
    }
    let begin = values.len();
    a.said(values);
    let middle = values.len();
    b.said(values);
    identical_halves(begin, middle, values)
}

/// Compares the values from `begin` to `middle` with those from there on, and drops them all.
fn identical_halves<'a>(begin: usize, middle: usize, values: &mut Vec<Said<'a>>) -> bool {
    let as_many = values.len() - middle == middle - begin;
    let mut both = begin..middle;
    let same = as_many
        && both.all(|index| match (values.get(index), values.get(index + middle - begin)) {
            (Some(&(a_at, a)), Some(&(b_at, b))) => a_at == b_at && identical_values(a, b, values),
            _ => false,
        });
    values.truncate(begin);
    same
}

fn identical_messages<'a>(a: &'a dyn Reflect, b: &'a dyn Reflect, values: &mut Vec<Said<'a>>) -> bool {
    if !std::ptr::eq(a.desc(), b.desc()) {
        return false;
    }
    if is_shared(a, b) {
        return true;
    }
    let same = match a.sparse() {
        None => identical_fields(a, b, values),
        Some(_) => reflect::indexes_of_both(a, b)
            .into_iter()
            .all(|index| identical_values(a.get(index), b.get(index), values)),
    };
    same && (a.desc().unknown == Unknown::Dropped
        || match (a.rest(), b.rest()) {
            (Some(a), Some(b)) => identical_maps(a, b, values),
            (a, b) => a.is_none() && b.is_none(),
        })
}

fn identical_leaves(a: &dyn Leaf, b: &dyn Leaf) -> bool {
    match a.kind() {
        LeafKind::Quantity => quantity_text(a) == quantity_text(b),
        _ => a.is_identical(b),
    }
}

fn quantity_text(leaf: &dyn Leaf) -> Option<&str> {
    leaf.as_any().downcast_ref().map(Quantity::as_str)
}

/// Whether every field of the message is at its zero: absent, or of those that can't be absent 0, "" or empty.
pub fn is_zero(message: &dyn Reflect) -> bool {
    message.rest().is_none()
        && reflect::fields(message).all(|(_, field, value)| match value {
            Value::Absent => true,
            value => !field.flags.has(Flags::OPTIONAL) && is_zero_value(value),
        })
}

/// Whether a value that is not an `Option` is the zero of its type.
pub fn is_zero_value(value: Value<'_>) -> bool {
    match value {
        Value::Absent | Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int32(n) => n == 0,
        Value::Int64(n) => n == 0,
        Value::Double(n) => n == 0.0,
        Value::Str(s) => s.is_empty(),
        Value::Bytes(b) => b.is_empty(),
        Value::Message(m) => is_zero(m),
        Value::Leaf(l) => l.is_zero(),
        Value::List(l) => l.is_empty(),
        Value::Map(m) => m.is_empty(),
    }
}

/// Whether JSON shows the field when it has this value.
#[inline]
pub(crate) fn is_written(field: &FieldDesc, value: Value<'_>) -> bool {
    let always = field.flags.has(Flags::ALWAYS);
    if field.flags.has(Flags::OPTIONAL) {
        return always || !matches!(value, Value::Absent);
    }
    match value {
        Value::Absent => always,
        Value::Null => true,
        Value::Bool(b) => always || b,
        Value::Int32(n) => always || n != 0,
        Value::Int64(n) => always || n != 0,
        Value::Double(n) => always || n != 0.0,
        Value::Str(s) => always || !s.is_empty(),
        Value::Bytes(b) => always || !b.is_empty(),
        Value::List(l) => always || !l.is_empty(),
        Value::Map(m) => always || !m.is_empty(),
        Value::Message(m) => !field.flags.has(Flags::OMIT_ZERO) || !is_zero(m),
        Value::Leaf(l) => !field.flags.has(Flags::OMIT_ZERO) || !l.is_zero(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::reflect::raw::RawJson;
    use crate::sample::{FULL, Part, Widget, WidgetSpec};

    fn full() -> Widget {
        let mut widget = Widget::default();
        json::read(FULL.as_bytes(), &mut widget).unwrap();
        widget
    }

    #[test]
    fn every_field_counts() {
        assert!(equal(&full(), &full()));
        assert!(!equal(&full(), &full().spec));
        let changes: &[fn(&mut WidgetSpec)] = &[
            |s| s.replicas = None,
            |s| s.size += 1,
            |s| s.ratio = 0.0,
            |s| s.parts[0].args.push("x".into()),
            |s| s.parts[0].numbers[1] = 7,
            |s| s.selector.clear(),
            |s| drop(s.limits.insert("cpu".into(), "101m".parse().unwrap())),
            |s| drop(s.data.insert("d".into(), bytes::Bytes::new())),
            |s| s.source.path = Some("/y".into()),
            |s| s.port = 80.into(),
            |s| s.raw = None,
            |s| s.child.as_mut().unwrap().size = 1,
        ];
        for change in changes {
            let mut other = full();
            change(&mut other.spec);
            assert!(!equal(&full(), &other));
        }
    }

    #[test]
    fn values_not_texts() {
        let mut other = full();
        other.spec.limits.insert("cpu".into(), "0.1".parse().unwrap());
        assert!(equal(&full(), &other));
    }

    #[test]
    fn what_is_identical_is_written_alike() {
        let same = |a: &Widget, b: &Widget| identical(Value::Message(a), Value::Message(b));
        assert!(same(&full(), &full()));
        let mut other = full();
        other.spec.limits.insert("cpu".into(), "0.1".parse().unwrap());
        assert!(equal(&full(), &other) && same(&full(), &other), "one canonical text");
        let zeros = |text: Option<&str>| {
            let mut widget = full();
            widget.spec.source.path = text.map(str::to_owned);
            widget
        };
        assert!(!same(&zeros(None), &zeros(Some(""))) && same(&zeros(None), &zeros(None)));
        let mut deep = full();
        deep.spec.child.as_mut().unwrap().parts.push(Part::default());
        assert!(!same(&full(), &deep));
        assert!(!identical(Value::Message(&full()), Value::Message(&full().spec)));
    }

    #[test]
    fn zero() {
        assert!(is_zero(&Widget::default()));
        assert!(!is_zero(&full()));
        assert!(!is_zero(&WidgetSpec {
            replicas: Some(0),
            ..WidgetSpec::default()
        }));
        assert!(!is_zero(&WidgetSpec {
            raw: Some(RawJson::default()),
            ..WidgetSpec::default()
        }));
        assert!(!is_zero(&WidgetSpec {
            parts: vec![Part::default()],
            ..WidgetSpec::default()
        }));
    }
}
