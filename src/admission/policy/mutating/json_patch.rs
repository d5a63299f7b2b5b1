//! JSON patches that expressions make.

use keelson_machinery::cel::{List, Value};
use keelson_machinery::json;
use keelson_machinery::object::Kind;
use keelson_machinery::patch::json::{JsonPatch, OperationError};
use keelson_machinery::scheme::KindRef;
use keelson_registry::admission::Attributes;
use serde_json::{Map as JsonMap, Value as Json};

use super::mutation::Failed;
use super::values::{Made, misnamed, to_json};
use crate::versions::{Changed, Reading, read_back};

/// The type of the operations.
const OPERATION: &str = "JSONPatch";

/// What the patch makes of an object; `None`: a test in it failed, so that it leaves the object as it is.
pub(super) fn patched(
    attributes: &Attributes<'_>,
    target: &KindRef,
    before: &dyn Kind,
    value: &Value<'_>,
) -> Result<Option<Changed>, Failed> {
    let Value::List(list) = value else {
        let why = "type mismatch: JSONPatchType.expression should evaluate to array";
        return Err(Failed::Policy(why.to_owned()));
    };
    let patch = Json::Array(operations(list).map_err(Failed::Policy)?).to_string();
    let (patch, _) = JsonPatch::decode(patch.as_bytes(), false).map_err(Failed::Request)?;
    let patched = match patch.apply_explained(&json::to_vec(before)) {
        Ok(patched) => patched,
        Err(OperationError::Test(_)) => return Ok(None),
        Err(why) => return Err(Failed::Policy(format!("JSON Patch: {why}"))),
    };
    let read = read_back(attributes, target, before, &patched, Reading::Strict);
    read.map(Some).map_err(Failed::Request)
}

fn operations(list: &List<'_>) -> Made<Vec<Json>> {
    list.iter().map(|operation| one(&operation)).collect()
}

fn one(operation: &Value<'_>) -> Made<Json> {
    let map = match operation {
        Value::Map(map) if map.message() == Some(OPERATION) => map,
        other => {
            let found = other.type_name();
            let why = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
            return Err(format!("{why}, got element of {found}"));
        }
    };
    let mut made = JsonMap::new();
    for name in ["op", "path", "from"] {
        let text = map.field(name);
        let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
        if name != "from" || !text.is_empty() {
            made.insert(name.to_owned(), text.into());
        }
    }
    if let Some(value) = map.field("value") {
        made.insert("value".to_owned(), json_of(&value)?);
    }
    Ok(Json::Object(made))
}

fn json_of(value: &Value<'_>) -> Made<Json> {
    if let Value::Map(map) = value
        && let Some(name) = map.message()
    {
        let mut errors = Vec::new();
        misnamed(value, name, &mut errors);
        if !errors.is_empty() {
            return Err(format!("type mismatch: {}", errors.join("\n")));
        }
    }
    let unshown = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
    to_json(value).map_err(|why| format!("{unshown}: {why}"))
}
