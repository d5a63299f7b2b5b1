//! Amounts with units: `quantity("1Gi")`.

use std::any::Any;
use std::cmp::Ordering;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Opaque, Value};
use super::{Result, strings, versions};
use crate::reflect::quantity::Quantity;

pub(super) fn define(to: &mut Functions) {
    add(to, "quantity", Cost::Traverse, quantity, &["(string) quantity"]);
    add(to, "isQuantity", Cost::Traverse, is_quantity, &["(string) bool"]);
    let compared = ["quantity.(quantity) bool", "semver.(semver) bool"];
    add(
        to,
        "isGreaterThan",
        Cost::One,
        |v| compare(v, |o| o == Ordering::Greater),
        &compared,
    );
    add(
        to,
        "isLessThan",
        Cost::One,
        |v| compare(v, |o| o == Ordering::Less),
        &compared,
    );
    add(
        to,
        "compareTo",
        Cost::One,
        compare_to,
        &["quantity.(quantity) int", "semver.(semver) int"],
    );
    add(to, "asInteger", Cost::One, as_integer, &["quantity.() int"]);
    add(to, "isInteger", Cost::One, is_integer, &["quantity.() bool"]);
    add(to, "asApproximateFloat", Cost::One, as_float, &["quantity.() double"]);
    add(to, "sign", Cost::One, sign, &["(quantity) int"]);
    let summed = ["quantity.(quantity) quantity", "quantity.(int) quantity"];
    add(to, "add", Cost::One, |v| total(v, Quantity::plus), &summed);
    add(to, "sub", Cost::One, |v| total(v, Quantity::minus), &summed);
}

#[derive(Debug)]
struct Amount(Quantity);

impl Opaque for Amount {
    fn name(&self) -> &'static str {
        "kubernetes.Quantity"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other
            .as_any()
            .downcast_ref::<Amount>()
            .is_some_and(|other| self.0 == other.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn amount<'v>(value: Option<&'v Value<'_>>) -> std::result::Result<&'v Quantity, Fault> {
    match value {
        Some(Value::Opaque(value)) => {
            let found = value.as_any().downcast_ref::<Amount>();
            found.map(|found| &found.0).ok_or(Fault::NoSuchOverload)
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

fn parse(v: &[Value<'_>]) -> std::result::Result<Quantity, Fault> {
    let text = strings::text(v.first().unwrap_or(&Value::Null))?;
    Quantity::parse(text).map_err(|error| Fault::function(error.to_string()))
}

fn quantity<'a>(v: &[Value<'a>]) -> Result<'a> {
    Ok(Value::opaque(Amount(parse(v)?)))
}

fn is_quantity<'a>(v: &[Value<'a>]) -> Result<'a> {
    super::is_readable(parse(v))
}

/// How two amounts, or two versions, stand to each other.
fn order(v: &[Value<'_>]) -> std::result::Result<Ordering, Fault> {
    if let Some(order) = versions::order(v) {
        return Ok(order);
    }
    Ok(amount(v.first())?.cmp(amount(v.get(1))?))
}

fn compare<'a>(v: &[Value<'a>], holds: fn(Ordering) -> bool) -> Result<'a> {
    Ok(Value::Bool(holds(order(v)?)))
}

fn compare_to<'a>(v: &[Value<'a>]) -> Result<'a> {
    Ok(Value::Int(order(v)? as i64))
}

fn whole(quantity: &Quantity) -> Option<i64> {
    let mut rounded = quantity.clone();
    let exact = rounded.round_up(0);
    let number = rounded.value();
    (exact && number != i64::MAX && number != i64::MIN).then_some(number)
}

fn as_integer<'a>(v: &[Value<'a>]) -> Result<'a> {
    let number = whole(amount(v.first())?);
    number
        .map(Value::Int)
        .ok_or_else(|| Fault::function("cannot convert value to integer"))
}

fn is_integer<'a>(v: &[Value<'a>]) -> Result<'a> {
    Ok(Value::Bool(whole(amount(v.first())?).is_some()))
}

fn as_float<'a>(v: &[Value<'a>]) -> Result<'a> {
    let quantity = amount(v.first())?;
    let billionths = quantity.scaled_value(-9);
    Ok(Value::Double(match billionths {
        i64::MAX | i64::MIN => quantity.value() as f64,
        n => n as f64 / 1e9,
    }))
}

/// An amount, and another one or a whole number, put together.
fn total<'a>(v: &[Value<'a>], of: fn(&Quantity, &Quantity) -> Quantity) -> Result<'a> {
    let first = amount(v.first())?;
    let second = match v.get(1) {
        Some(Value::Int(n)) => &Quantity::from_int(*n),
        other => amount(other)?,
    };
    Ok(Value::opaque(Amount(of(first, second))))
}

fn sign<'a>(v: &[Value<'a>]) -> Result<'a> {
    let quantity = amount(v.first())?;
    Ok(Value::Int(match (quantity.is_zero(), quantity.is_negative()) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    }))
}
