//! Operators.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Map, Value};
use super::Result;

/// Ways to call them are in kube-apiserver's order: the first one that fits says what an unknown type is.
pub(super) fn define(to: &mut Functions) {
    add(to, "_?_:_", Cost::One, unreachable_code, &["(bool, A, A) A"]);
    add(to, "@not_strictly_false", Cost::One, unreachable_code, &["(bool) bool"]);
    add(to, "!_", Cost::One, not, &["(bool) bool"]);
    add(to, "-_", Cost::One, negate, &["(double) double", "(int) int"]);
    add(to, "_==_", Cost::Compare, equal, &["(A, A) bool"]);
    add(to, "_!=_", Cost::Compare, unequal, &["(A, A) bool"]);
    let ordered = &[
        "(bool, bool) bool",
        "(int, int) bool",
        "(int, uint) bool",
        "(int, double) bool",
        "(uint, uint) bool",
        "(uint, int) bool",
        "(uint, double) bool",
        "(double, double) bool",
        "(double, int) bool",
        "(double, uint) bool",
        "(string, string) bool",
        "(bytes, bytes) bool",
        "(timestamp, timestamp) bool",
        "(duration, duration) bool",
    ];
    add(to, "_<_", Cost::Compare, |v| order(v, |o| o == Ordering::Less), ordered);
    add(
        to,
        "_<=_",
        Cost::Compare,
        |v| order(v, |o| o != Ordering::Greater),
        ordered,
    );
    add(
        to,
        "_>_",
        Cost::Compare,
        |v| order(v, |o| o == Ordering::Greater),
        ordered,
    );
    add(
        to,
        "_>=_",
        Cost::Compare,
        |v| order(v, |o| o != Ordering::Less),
        ordered,
    );
    let numbers = ["(double, double) double", "(int, int) int", "(uint, uint) uint"];
    let sums = [
        "(bytes, bytes) bytes",
        "(double, double) double",
        "(duration, duration) duration",
        "(duration, timestamp) timestamp",
        "(timestamp, duration) timestamp",
        "(int, int) int",
        "(list(A), list(A)) list(A)",
        "(string, string) string",
        "(uint, uint) uint",
    ];
    add(to, "_+_", Cost::Make, sum, &sums);
    let differences = [
        "(double, double) double",
        "(duration, duration) duration",
        "(int, int) int",
        "(timestamp, duration) timestamp",
        "(timestamp, timestamp) duration",
        "(uint, uint) uint",
    ];
    add(to, "_-_", Cost::One, super::times::difference, &differences);
    add(to, "_*_", Cost::One, product, &numbers);
    add(to, "_/_", Cost::One, quotient, &numbers);
    add(to, "_%_", Cost::One, remainder, &numbers[1..]);
    let within = ["(A, list(A)) bool", "(A, map(A, B)) bool"];
    add(to, "@in", Cost::Member, contained, &within);
    let indexes = [
        "(list(A), int) A",
        "(map(A, B), A) B",
        "(optional(list(A)), int) optional(A)",
        "(optional(map(A, B)), A) optional(B)",
    ];
    add(to, "_[_]", Cost::One, index, &indexes);
    let optional_indexes = [
        "(list(A), int) optional(A)",
        "(map(A, B), A) optional(B)",
        "(optional(list(A)), int) optional(A)",
        "(optional(map(A, B)), A) optional(B)",
    ];
    add(to, "_[?_]", Cost::One, optional_index, &optional_indexes);
}

/// Parts that are computed otherwise, since not all of their operands are.
fn unreachable_code<'a>(_: &[Value<'a>]) -> Result<'a> {
    Err(Fault::NoSuchOverload)
}

fn not<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Bool(b)] => Ok(Value::Bool(!b)),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn negate<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(n)] => n.checked_neg().map(Value::Int).ok_or(Fault::Overflow),
        [Value::Double(n)] => Ok(Value::Double(-n)),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn equal<'a>(v: &[Value<'a>]) -> Result<'a> {
    equality(v).map(Value::Bool)
}

fn unequal<'a>(v: &[Value<'a>]) -> Result<'a> {
    equality(v).map(|equal| Value::Bool(!equal))
}

/// Values of different types are different, but for those of Kubernetes' libraries, which compare with their own type
/// and with null alone.
fn equality(v: &[Value<'_>]) -> std::result::Result<bool, Fault> {
    match v {
        [Value::Opaque(_), other] if !matches!(other, Value::Opaque(_) | Value::Null) => Err(Fault::NoSuchOverload),
        [a, b] => Ok(a.equals(b)),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn order<'a>(v: &[Value<'a>], holds: fn(Ordering) -> bool) -> Result<'a> {
    let [a, b] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let has_nan = [a, b].iter().any(|v| matches!(v, Value::Double(n) if n.is_nan()));
    match a.compare(b) {
        Some(found) => Ok(Value::Bool(holds(found))),
        None if has_nan => Err(Fault::function("NaN values cannot be ordered")),
        None => Err(Fault::NoSuchOverload),
    }
}

fn sum<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(a), Value::Int(b)] => a.checked_add(*b).map(Value::Int).ok_or(Fault::Overflow),
        [Value::Uint(a), Value::Uint(b)] => a.checked_add(*b).map(Value::Uint).ok_or_else(Fault::uint_overflow),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => Ok(Value::text(format!("{}{}", a.as_str(), b.as_str()))),
        [Value::Bytes(a), Value::Bytes(b)] => Ok(Value::Bytes([&**a, &**b].concat().into())),
        [Value::List(a), Value::List(b)] => Ok(Value::List(a.clone().concat(b.clone()))),
        _ => super::times::sum(v),
    }
}

fn product<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(a), Value::Int(b)] => a.checked_mul(*b).map(Value::Int).ok_or(Fault::Overflow),
        [Value::Uint(a), Value::Uint(b)] => a.checked_mul(*b).map(Value::Uint).ok_or_else(Fault::uint_overflow),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn quotient<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(Fault::DivisionByZero),
        [Value::Int(a), Value::Int(b)] => a.checked_div(*b).map(Value::Int).ok_or(Fault::Overflow),
        [Value::Uint(a), Value::Uint(b)] => a.checked_div(*b).map(Value::Uint).ok_or_else(Fault::uint_overflow),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn remainder<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(Fault::ModulusByZero),
        [Value::Int(a), Value::Int(b)] => a.checked_rem(*b).map(Value::Int).ok_or(Fault::Overflow),
        [Value::Uint(a), Value::Uint(b)] => a.checked_rem(*b).map(Value::Uint).ok_or_else(Fault::uint_overflow),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn contained<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [one, Value::List(list)] => Ok(Value::Bool(list.iter().any(|element| element.equals(one)))),
        [one, Value::Map(map)] => Ok(Value::Bool(map.get(one).is_some())),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn index<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::List(list), at] => {
            let shown = || Fault::Index(format!("{at:?}"));
            let place = place(at).ok_or(Fault::NoSuchOverload)?;
            place.and_then(|n| list.get(n)).ok_or_else(shown)
        }
        [Value::Map(map), key] => map.get(key).ok_or_else(|| Fault::NoSuchKey(key_text(key))),
        [Value::Optional(_), _] => optional_index(v),
        [_, key] => Err(Fault::NoSuchKey(key_text(key))),
        _ => Err(Fault::NoSuchOverload),
    }
}

/// The place in a list that a number names; the inner `None`: it has none.
fn place(at: &Value<'_>) -> Option<Option<usize>> {
    match at {
        Value::Int(n) => Some(usize::try_from(*n).ok()),
        Value::Uint(n) => Some(usize::try_from(*n).ok()),
        Value::Double(n) if n.fract() == 0.0 && *n >= 0.0 && *n < 9e15 => Some(Some(*n as usize)),
        _ => None,
    }
}

fn key_text(key: &Value<'_>) -> String {
    match key.as_str() {
        Some(text) => text.to_owned(),
        None => format!("{key:?}"),
    }
}

fn optional_index<'a>(v: &[Value<'a>]) -> Result<'a> {
    let found = match v {
        [Value::Optional(None), _] => None,
        [Value::Optional(Some(inner)), at] => return optional_index(&[Value::clone(inner), at.clone()]),
        [Value::List(list), at] => place(at).ok_or(Fault::NoSuchOverload)?.and_then(|n| list.get(n)),
        [Value::Map(map), key] => Map::get(map, key),
        _ => return Err(Fault::NoSuchOverload),
    };
    Ok(Value::Optional(found.map(Rc::new)))
}
