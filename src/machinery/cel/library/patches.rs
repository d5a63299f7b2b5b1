//! The JSON patch library: `jsonpatch.escapeKey("a/b")`.

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::Result;

pub(super) fn define(to: &mut Functions) {
    add(to, "jsonpatch.escapeKey", Cost::One, escape_key, &["(string) string"]);
}

/// A key as a part of a path.
fn escape_key<'a>(values: &[Value<'a>]) -> Result<'a> {
    match values {
        [Value::String(key)] => Ok(Value::text(key.as_str().replace('~', "~0").replace('/', "~1"))),
        _ => Err(Fault::NoSuchOverload),
    }
}
