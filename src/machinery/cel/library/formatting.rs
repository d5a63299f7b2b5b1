//! Texts with places for values: `"%s-%d".format([a, b])`.

mod clause;
mod display;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::Result;

pub(in crate::cel) use clause::{Clause, Part, parts};

/// Bytes of a text that is made.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

pub(super) fn define(to: &mut Functions) {
    add(to, "format", Cost::Make, format, &["string.(list(dyn)) string"]);
}

fn format<'a>(v: &[Value<'a>]) -> Result<'a> {
    let [Value::String(pattern), Value::List(list)] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let mut values = list.iter();
    let mut out = String::new();
    for part in parts(pattern.as_str(), list.len()) {
        match part.map_err(Fault::function)? {
            Part::Text(text) => out.push_str(text),
            Part::Place(clause) => {
                let value = values.next().unwrap_or(Value::Null);
                out.push_str(&clause.show(&value).map_err(Fault::function)?);
            }
        }
        if out.len() > MAX_TEXT_BYTES {
            return Err(Fault::function("the text becomes too long"));
        }
    }
    Ok(Value::text(out))
}
