//! Values that may be absent.

use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::Result;

pub(super) fn define(to: &mut Functions) {
    add(to, "optional.of", Cost::One, of, &["(A) optional(A)"]);
    add(
        to,
        "optional.ofNonZeroValue",
        Cost::One,
        of_non_zero,
        &["(A) optional(A)"],
    );
    add(
        to,
        "optional.none",
        Cost::One,
        |_| Ok(Value::Optional(None)),
        &["() optional(A)"],
    );
    add(to, "hasValue", Cost::One, has_value, &["optional(A).() bool"]);
    add(to, "value", Cost::One, value, &["optional(A).() A"]);
    add(to, "orValue", Cost::One, or_value, &["optional(A).(A) A"]);
    add(to, "or", Cost::One, or, &["optional(A).(optional(A)) optional(A)"]);
}

fn of<'a>(v: &[Value<'a>]) -> Result<'a> {
    let value = v.first().ok_or(Fault::NoSuchOverload)?;
    Ok(Value::Optional(Some(Rc::new(value.clone()))))
}

fn of_non_zero<'a>(v: &[Value<'a>]) -> Result<'a> {
    let zero = match v {
        [Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0)] => true,
        [Value::Double(n)] => *n == 0.0,
        [Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)] => v.first().map_or(0, Value::size) == 0,
        _ => false,
    };
    if zero { Ok(Value::Optional(None)) } else { of(v) }
}

fn has_value<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Optional(inner)] => Ok(Value::Bool(inner.is_some())),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn value<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Optional(Some(inner))] => Ok(Value::clone(inner)),
        [Value::Optional(None)] => Err(Fault::function("optional.none() dereference")),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn or_value<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Optional(Some(inner)), _] => Ok(Value::clone(inner)),
        [Value::Optional(None), other] => Ok(other.clone()),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn or<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Optional(None), other] => Ok(other.clone()),
        [one @ Value::Optional(_), _] => Ok(one.clone()),
        _ => Err(Fault::NoSuchOverload),
    }
}
