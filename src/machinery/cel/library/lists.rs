//! Functions on lists, and lists as sets.

use std::cmp::Ordering;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{List, Value};
use super::Result;

pub(super) fn define(to: &mut Functions) {
    let ordered = [
        "list(int).() bool",
        "list(uint).() bool",
        "list(double).() bool",
        "list(bool).() bool",
        "list(string).() bool",
        "list(bytes).() bool",
        "list(duration).() bool",
        "list(timestamp).() bool",
    ];
    add(to, "isSorted", Cost::Member, is_sorted, &ordered);
    let ends = [
        "list(int).() int",
        "list(uint).() uint",
        "list(double).() double",
        "list(bool).() bool",
        "list(string).() string",
        "list(bytes).() bytes",
        "list(duration).() duration",
        "list(timestamp).() timestamp",
    ];
    add(to, "min", Cost::Member, |v| end(v, "min", Ordering::Less), &ends);
    add(to, "max", Cost::Member, |v| end(v, "max", Ordering::Greater), &ends);
    let sums = [
        "list(int).() int",
        "list(uint).() uint",
        "list(double).() double",
        "list(duration).() duration",
    ];
    add(to, "sum", Cost::Member, sum, &sums);
    let places = ["list(A).(A) int", "string.(string) int", "string.(string, int) int"];
    add(to, "indexOf", Cost::Search, |v| index_of(v, false), &places);
    add(to, "lastIndexOf", Cost::Search, |v| index_of(v, true), &places);
    define_copies(to);
    define_sets(to);
}

/// What makes lists of lists.
fn define_copies(to: &mut Functions) {
    add(to, "slice", Cost::Copy, slice, &["list(A).(int, int) list(A)"]);
    add(to, "distinct", Cost::Square, distinct, &["list(A).() list(A)"]);
    let sorted = [
        "list(int).() list(int)",
        "list(uint).() list(uint)",
        "list(double).() list(double)",
        "list(bool).() list(bool)",
        "list(duration).() list(duration)",
        "list(timestamp).() list(timestamp)",
        "list(string).() list(string)",
        "list(bytes).() list(bytes)",
    ];
    add(to, "sort", Cost::Square, sort, &sorted);
    let by_keys = [
        "list(A).(list(int)) list(A)",
        "list(A).(list(uint)) list(A)",
        "list(A).(list(double)) list(A)",
        "list(A).(list(bool)) list(A)",
        "list(A).(list(duration)) list(A)",
        "list(A).(list(timestamp)) list(A)",
        "list(A).(list(string)) list(A)",
        "list(A).(list(bytes)) list(A)",
    ];
    add(to, SORT_BY_KEYS, Cost::Square, sort_by_keys, &by_keys);
    add(to, "reverse", Cost::Copy, reverse, &["list(A).() list(A)"]);
    let flat = ["list(list(A)).() list(A)", "list(dyn).(int) list(dyn)"];
    add(to, "flatten", Cost::Copy, flatten, &flat);
    add(to, "lists.range", Cost::Copy, range, &["(int) list(int)"]);
    add(to, "first", Cost::One, |v| at_end(v, true), &["list(A).() optional(A)"]);
    add(to, "last", Cost::One, |v| at_end(v, false), &["list(A).() optional(A)"]);
    let unwrap = ["(list(optional(A))) list(A)"];
    add(to, "optional.unwrap", Cost::One, unwrapped, &unwrap);
    let unwrap = ["list(optional(A)).() list(A)"];
    add(to, "unwrapOpt", Cost::One, unwrapped, &unwrap);
}

fn define_sets(to: &mut Functions) {
    let sets = ["(list(A), list(A)) bool"];
    add(to, "sets.contains", Cost::Pairs(1), |v| two(v, holds_all), &sets);
    add(
        to,
        "sets.equivalent",
        Cost::Pairs(2),
        |v| two(v, |a, b| holds_all(a, b) && holds_all(b, a)),
        &sets,
    );
    add(
        to,
        "sets.intersects",
        Cost::Pairs(1),
        |v| two(v, |a, b| a.iter().any(|one| holds(b, &one))),
        &sets,
    );
}

/// What `list.sortBy(x, key)` becomes: the elements in the order of their keys.
pub(in super::super) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// Elements of a list that `lists.range` makes.
const MAX_RANGE: i64 = 1_000_000;

fn only<'a, 'v>(v: &'v [Value<'a>]) -> std::result::Result<&'v List<'a>, Fault> {
    match v {
        [Value::List(list), ..] => Ok(list),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn two<'a>(v: &[Value<'a>], test: impl Fn(&List<'a>, &List<'a>) -> bool) -> Result<'a> {
    match v {
        [Value::List(a), Value::List(b)] => Ok(Value::Bool(test(a, b))),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn holds<'a>(list: &List<'a>, one: &Value<'a>) -> bool {
    list.iter().any(|element| element.equals(one))
}

fn holds_all<'a>(list: &List<'a>, others: &List<'a>) -> bool {
    others.iter().all(|one| holds(list, &one))
}

fn is_sorted<'a>(v: &[Value<'a>]) -> Result<'a> {
    let list = only(v)?;
    for (a, b) in list.iter().zip(list.iter().skip(1)) {
        match a.compare(&b) {
            None => return Err(Fault::NoSuchOverload),
            Some(Ordering::Greater) => return Ok(Value::Bool(false)),
            Some(_) => {}
        }
    }
    Ok(Value::Bool(true))
}

fn end<'a>(v: &[Value<'a>], name: &str, wanted: Ordering) -> Result<'a> {
    let mut best: Option<Value<'a>> = None;
    for one in only(v)?.iter() {
        best = match best {
            None => Some(one),
            Some(known) => match one.compare(&known) {
                None => return Err(Fault::NoSuchOverload),
                Some(order) if order == wanted => Some(one),
                Some(_) => Some(known),
            },
        };
    }
    best.ok_or_else(|| Fault::function(format!("{name} called on empty list")))
}

fn sum<'a>(v: &[Value<'a>]) -> Result<'a> {
    let mut total = Value::Int(0);
    for (n, one) in only(v)?.iter().enumerate() {
        total = match (total, one) {
            (_, one @ (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_))) if n == 0 => one,
            _ if n == 0 => return Err(Fault::NoSuchOverload),
            (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(b).ok_or(Fault::Overflow)?),
            (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(b).ok_or_else(Fault::uint_overflow)?),
            (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
            (a, b) => super::times::sum(&[a, b])?,
        };
    }
    Ok(total)
}

fn index_of<'a>(v: &[Value<'a>], last: bool) -> Result<'a> {
    let [Value::List(list), wanted] = v else {
        return super::strings::index_of(v, last);
    };
    let found = |(_, element): &(usize, Value<'a>)| element.equals(wanted);
    let mut places = list.iter().enumerate().filter(found).map(|(n, _)| n);
    let place = if last { places.last() } else { places.next() };
    Ok(Value::Int(place.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1)))
}

fn slice<'a>(v: &[Value<'a>]) -> Result<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let wrong = |text: String| Err(Fault::function(text));
    let (Ok(first), Ok(last)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return wrong(format!("cannot slice({start}, {end}), negative indexes not supported"));
    };
    if first > last {
        return wrong(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if last > list.len() {
        return wrong(format!("cannot slice({start}, {end}), list is length {}", list.len()));
    }
    Ok(Value::list(list.iter().skip(first).take(last - first).collect()))
}

fn distinct<'a>(v: &[Value<'a>]) -> Result<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for one in only(v)?.iter() {
        if !kept.iter().any(|known| known.equals(&one)) {
            kept.push(one);
        }
    }
    Ok(Value::list(kept))
}

fn sort<'a>(v: &[Value<'a>]) -> Result<'a> {
    let mut elements = only(v)?.clone().into_vec();
    let orderable = elements.windows(2).all(|pair| pair[0].compare(&pair[1]).is_some());
    if !orderable {
        return Err(Fault::NoSuchOverload);
    }
    elements.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
    Ok(Value::list(elements))
}

fn sort_by_keys<'a>(v: &[Value<'a>]) -> Result<'a> {
    let [Value::List(list), Value::List(keys)] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.iter().zip(list.iter()).collect();
    if !pairs.windows(2).all(|pair| pair[0].0.compare(&pair[1].0).is_some()) {
        return Err(Fault::NoSuchOverload);
    }
    pairs.sort_by(|a, b| a.0.compare(&b.0).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, element)| element).collect()))
}

/// The first or last element.
fn at_end<'a>(v: &[Value<'a>], first: bool) -> Result<'a> {
    let list = only(v)?;
    let element = match first {
        true => list.get(0),
        false => list.len().checked_sub(1).and_then(|n| list.get(n)),
    };
    Ok(Value::Optional(element.map(std::rc::Rc::new)))
}

/// What the elements hold, if they hold anything.
fn unwrapped<'a>(v: &[Value<'a>]) -> Result<'a> {
    let mut kept = Vec::new();
    for element in only(v)?.iter() {
        match element {
            Value::Optional(Some(inner)) => kept.push(Value::clone(&inner)),
            Value::Optional(None) => {}
            _ => return Err(Fault::NoSuchOverload),
        }
    }
    Ok(Value::list(kept))
}

fn reverse<'a>(v: &[Value<'a>]) -> Result<'a> {
    let mut elements = only(v)?.clone().into_vec();
    elements.reverse();
    Ok(Value::list(elements))
}

fn flatten<'a>(v: &[Value<'a>]) -> Result<'a> {
    let depth = match v {
        [_] => 1,
        [_, Value::Int(depth)] if *depth >= 0 => *depth,
        _ => return Err(Fault::function("level must be non-negative")),
    };
    let mut elements: Vec<Value<'a>> = only(v)?.clone().into_vec();
    for _ in 0..depth {
        if !elements.iter().any(|one| matches!(one, Value::List(_))) {
            break;
        }
        let inner = elements.into_iter().flat_map(|one| match one {
            Value::List(list) => list.into_vec(),
            other => vec![other],
        });
        elements = inner.collect();
    }
    Ok(Value::list(elements))
}

fn range<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(n)] if *n > MAX_RANGE => Err(Fault::Budget),
        [Value::Int(n)] => Ok(Value::list((0..*n).map(Value::Int).collect())),
        _ => Err(Fault::NoSuchOverload),
    }
}
