//! Conversion of objects by the stub, as a webhook of a custom resource does it.

use serde_json::{Map, Value, json};

use crate::case::Convert;
use crate::paths::lookup;

/// The answer to a ConversionReview.
pub fn converted(spec: &Convert, review: &Value) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        convert(object, spec, wanted);
    }
    objects.truncate(spec.keep.unwrap_or(objects.len()));
    let mut response = json!({
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
    });
    for (key, value) in &spec.response {
        put(&mut response, &[key], value);
    }
    let version = spec.api_version.as_ref().unwrap_or(&review["apiVersion"]);
    json!({"kind": "ConversionReview", "apiVersion": version, "response": response})
}

fn convert(object: &mut Value, spec: &Convert, wanted: &str) {
    put(object, &["apiVersion"], &wanted.into());
    let version = wanted.rsplit('/').next().unwrap_or_default();
    for (from, to) in spec.moves.get(version).into_iter().flatten() {
        let found = lookup(object, from).filter(|found| !found.is_null()).cloned();
        if let Some(value) = found {
            put(object, &parts(from), &Value::Null);
            put(object, &parts(to), &value);
        }
    }
    for (path, value) in &spec.set {
        put(object, &parts(path), value);
    }
}

fn parts(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// Puts a value at a path, making the objects that lead there; null takes it out.
fn put(value: &mut Value, path: &[&str], new: &Value) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut at = value;
    for part in way {
        let Value::Object(fields) = at else { return };
        at = fields.entry(*part).or_insert_with(|| Map::new().into());
    }
    let Value::Object(fields) = at else { return };
    match new {
        Value::Null => {
            fields.shift_remove(*last);
        }
        new => {
            fields.insert((*last).to_owned(), new.clone());
        }
    }
}
