//! Maps that macros fill.

use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Map, Value};
use super::Result;

/// Adds one entry, or those of another map. No text can name it: a name has no `@`.
pub(in super::super) const MAP_INSERT: &str = "cel.@mapInsert";

pub(super) fn define(to: &mut Functions) {
    let overloads = ["(map(A, B), A, B) map(A, B)", "(map(A, B), map(A, B)) map(A, B)"];
    add(to, MAP_INSERT, Cost::Member, |v| map_insert(v.to_vec()), &overloads);
}

/// The map with what is added; it is copied only if somebody else has it.
pub(in super::super) fn map_insert<'a>(values: Vec<Value<'a>>) -> Result<'a> {
    let mut values = values.into_iter();
    let Some(Value::Map(map)) = values.next() else {
        return Err(Fault::NoSuchOverload);
    };
    let added = match (values.next(), values.next()) {
        (Some(key), Some(value)) => vec![(key, value)],
        (Some(Value::Map(more)), None) => pairs(more),
        _ => return Err(Fault::NoSuchOverload),
    };
    let mut all = pairs(map);
    for (key, value) in added {
        if !matches!(key, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_)) {
            return Err(Fault::function(format!("unsupported key type: {}", key.type_name())));
        }
        if all.iter().any(|(known, _)| known.equals(&key)) {
            let key = key.as_str().map_or_else(|| format!("{key:?}"), str::to_owned);
            return Err(Fault::function(format!("insert failed: key {key} already exists")));
        }
        all.push((key, value));
    }
    Ok(Value::Map(Map::Own(Rc::new(all))))
}

fn pairs<'a>(map: Map<'a>) -> Vec<(Value<'a>, Value<'a>)> {
    match map {
        Map::Own(pairs) => Rc::try_unwrap(pairs).unwrap_or_else(|shared| shared.to_vec()),
        borrowed => {
            let keys = borrowed.keys().into_iter();
            keys.filter_map(|key| {
                let value = borrowed.get(&key)?;
                Some((key, value))
            })
            .collect()
        }
    }
}
