//! Conversions between types.

use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::{Result, times};
use crate::field::text::float;

pub(super) fn define(to: &mut Functions) {
    add(to, "dyn", Cost::One, |v| one(v).cloned(), &["(A) dyn"]);
    add(
        to,
        "type",
        Cost::One,
        |v| Ok(Value::Type(Rc::from(one(v)?.type_name()))),
        &["(A) type(A)"],
    );
    add(to, "bool", Cost::One, boolean, &["(bool) bool", "(string) bool"]);
    let ints = [
        "(int) int",
        "(uint) int",
        "(double) int",
        "(string) int",
        "(timestamp) int",
        "(duration) int",
    ];
    add(to, "int", Cost::One, int, &ints);
    add(
        to,
        "uint",
        Cost::One,
        uint,
        &["(uint) uint", "(int) uint", "(double) uint", "(string) uint"],
    );
    let doubles = ["(double) double", "(int) double", "(uint) double", "(string) double"];
    add(to, "double", Cost::One, double, &doubles);
    let strings = [
        "(string) string",
        "(bool) string",
        "(int) string",
        "(uint) string",
        "(double) string",
        "(bytes) string",
        "(timestamp) string",
        "(duration) string",
        "(ip) string",
        "(cidr) string",
    ];
    add(to, "string", Cost::Traverse, string, &strings);
    add(to, "bytes", Cost::Traverse, bytes, &["(bytes) bytes", "(string) bytes"]);
}

fn one<'a, 'v>(v: &'v [Value<'a>]) -> std::result::Result<&'v Value<'a>, Fault> {
    v.first().ok_or(Fault::NoSuchOverload)
}

fn boolean<'a>(v: &[Value<'a>]) -> Result<'a> {
    match one(v)? {
        Value::Bool(b) => Ok(Value::Bool(*b)),
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unconvertible("bool")),
        },
        _ => Err(Fault::NoSuchOverload),
    }
}

fn int<'a>(v: &[Value<'a>]) -> Result<'a> {
    let number = match one(v)? {
        Value::Int(n) => Some(*n),
        Value::Uint(n) => i64::try_from(*n).ok(),
        Value::Double(n) => (*n > -9.223_372_036_854_775e18 && *n < 9.223_372_036_854_775e18).then(|| n.trunc() as i64),
        Value::Timestamp(at) => Some(at.time.unix_seconds()),
        Value::Duration(span) => Some(span.as_nanos()),
        Value::String(text) => Some(parse(text.as_str(), "int")?),
        _ => return Err(Fault::NoSuchOverload),
    };
    number.map(Value::Int).ok_or(Fault::Overflow)
}

fn uint<'a>(v: &[Value<'a>]) -> Result<'a> {
    let number = match one(v)? {
        Value::Uint(n) => Some(*n),
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::Double(n) => (*n >= 0.0 && *n < 1.844_674_407_370_955e19).then(|| n.trunc() as u64),
        Value::String(text) => Some(parse(text.as_str(), "uint")?),
        _ => return Err(Fault::NoSuchOverload),
    };
    number.map(Value::Uint).ok_or_else(Fault::uint_overflow)
}

fn parse<T: std::str::FromStr>(text: &str, to: &str) -> std::result::Result<T, Fault> {
    text.parse().map_err(|_| unconvertible(to))
}

/// A text that is none of the type.
fn unconvertible(to: &str) -> Fault {
    Fault::function(format!("type conversion error from 'string' to '{to}'"))
}

fn double<'a>(v: &[Value<'a>]) -> Result<'a> {
    Ok(Value::Double(match one(v)? {
        Value::Double(n) => *n,
        Value::Int(n) => *n as f64,
        Value::Uint(n) => *n as f64,
        Value::String(text) => match parse::<f64>(text.as_str(), "double")? {
            // More than a number can be is none, unless it is named.
            n if n.is_infinite() && text.as_str().contains(|c: char| c.is_ascii_digit()) => {
                return Err(unconvertible("double"));
            }
            n => n,
        },
        _ => return Err(Fault::NoSuchOverload),
    }))
}

pub(super) fn string<'a>(v: &[Value<'a>]) -> Result<'a> {
    Ok(Value::text(match one(v)? {
        Value::String(text) => return Ok(Value::String(text.clone())),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => n.to_string(),
        Value::Double(n) => float(*n),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Fault::function("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Timestamp(at) => at.to_string(),
        Value::Duration(span) => times::show_duration(*span),
        Value::Opaque(value) => match super::addresses::show(&**value) {
            Some(text) => text,
            None => return Err(Fault::NoSuchOverload),
        },
        _ => return Err(Fault::NoSuchOverload),
    }))
}

fn bytes<'a>(v: &[Value<'a>]) -> Result<'a> {
    match one(v)? {
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
        Value::String(text) => Ok(Value::Bytes(text.as_str().as_bytes().into())),
        _ => Err(Fault::NoSuchOverload),
    }
}
