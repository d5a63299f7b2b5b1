//! Folded answers: what an expected answer shares with every answer, every failure, or an earlier answer of its case is
//! not written out.
//!
//! - `contentType` is left out where it is `application/json`.
//! - `failure` holds what a Status of a failure adds to its kind and code.
//! - `like` names an earlier step: the body is the one of that step, `but` for the values at these paths and `without`
//!   these.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::Step;

const JSON: &str = "application/json";
/// So many earlier answers are looked at for one that is alike.
const EARLIER: usize = 3;

/// Writes out the expected answers of a case's steps. An error names what they lack.
pub fn unfold(steps: &mut [Step]) -> Result<(), String> {
    let mut bodies: HashMap<String, Value> = HashMap::new();
    for step in steps {
        let id = step.id.clone().unwrap_or_default();
        let Some(Value::Object(expect)) = &mut step.expect else {
            continue;
        };
        unfold_answer(expect, &bodies).map_err(|error| format!("{id}: {error}"))?;
        if let Some(body @ Value::Object(_)) = expect.get("body") {
            bodies.insert(id, body.clone());
        }
    }
    Ok(())
}

fn unfold_answer(expect: &mut Map<String, Value>, bodies: &HashMap<String, Value>) -> Result<(), String> {
    let folded: Map<String, Value> = ["failure", "like", "but", "without"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), expect.shift_remove(key)?)))
        .collect();
    if let Some(failure) = folded.get("failure") {
        expect.insert("body".into(), status(failure, &expect["status"])?);
    }
    if let Some(like) = folded.get("like") {
        let like = like.as_str().unwrap_or_default();
        let mut body = bodies
            .get(like)
            .cloned()
            .ok_or_else(|| format!("there is no body of a step {like}"))?;
        for path in folded.get("without").and_then(Value::as_array).into_iter().flatten() {
            remove(&mut body, path.as_str().unwrap_or_default())?;
        }
        for (path, value) in folded.get("but").and_then(Value::as_object).into_iter().flatten() {
            put(&mut body, path, value)?;
        }
        expect.insert("body".into(), body);
    }
    if expect.contains_key("body") && !expect.contains_key("contentType") {
        expect.insert("contentType".into(), JSON.into());
    }
    Ok(())
}

/// The Status of a failure.
fn status(failure: &Value, code: &Value) -> Result<Value, String> {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code});
    let own = failure.as_object().ok_or("failure is no object")?;
    for (key, value) in own {
        status[key] = value.clone();
    }
    Ok(status)
}

/// Folds the expected answers of a case as it stands in its file.
pub fn fold(case: &mut Value) {
    let mut earlier: Vec<(String, Value)> = Vec::new();
    for step in case["steps"].as_array_mut().into_iter().flatten() {
        let id = step["id"].as_str().unwrap_or_default().to_owned();
        let Some(expect) = step.get_mut("expect").and_then(Value::as_object_mut) else {
            continue;
        };
        let known: HashMap<String, Value> = earlier.iter().rev().take(EARLIER).rev().cloned().collect();
        let body = expect.get("body").filter(|body| body.is_object()).cloned();
        let folded = folded(expect, body.as_ref(), &earlier);
        let mut unfolded = folded.clone();
        // Only what comes back as it was is folded.
        if unfold_answer(&mut unfolded, &known).is_ok() && unfolded == *expect {
            *expect = folded;
        }
        if let Some(body) = body.filter(|_| !id.is_empty()) {
            earlier.retain(|(other, _)| *other != id);
            earlier.push((id, body));
        }
    }
}

fn folded(expect: &Map<String, Value>, body: Option<&Value>, earlier: &[(String, Value)]) -> Map<String, Value> {
    let mut folded = expect.clone();
    if expect.contains_key("body") && expect.get("contentType").is_some_and(|kind| kind == JSON) {
        folded.shift_remove("contentType");
    }
    let Some(body) = body else {
        return folded;
    };
    let short = match failure(body, &expect["status"]) {
        Some(failure) => Some(Map::from_iter([("failure".to_owned(), failure)])),
        None => alike(body, earlier),
    };
    if let Some(short) = short {
        folded.shift_remove("body");
        folded.extend(short);
    }
    folded
}

/// What a Status adds to the one of every failure with this code.
fn failure(body: &Value, code: &Value) -> Option<Value> {
    let usual = status(&json!({}), code).ok()?;
    let usual = usual.as_object()?;
    let body = body.as_object()?;
    let all = usual.iter().all(|(key, value)| body.get(key) == Some(value));
    let own = body.iter().filter(|(key, _)| !usual.contains_key(*key));
    all.then(|| own.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// The body by the one of an earlier step, where that is much shorter.
fn alike(body: &Value, earlier: &[(String, Value)]) -> Option<Map<String, Value>> {
    let length = |value: &Value| value.to_string().len();
    // Sorted, so that an answer whose keys come in another order is folded alike.
    let candidates = earlier.iter().rev().take(EARLIER).map(|(id, other)| {
        let mut changes = Changes::default();
        changes.between(other, body, "");
        changes.but.sort_keys();
        changes.without.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        let mut short = Map::from_iter([("like".to_owned(), Value::from(id.as_str()))]);
        if !changes.without.is_empty() {
            short.insert("without".into(), changes.without.into());
        }
        if !changes.but.is_empty() {
            short.insert("but".into(), changes.but.into());
        }
        Value::Object(short)
    });
    let best = candidates.min_by_key(length)?;
    match best {
        Value::Object(short) if length(&Value::Object(short.clone())) * 5 < length(body) * 3 => Some(short),
        _ => None,
    }
}

/// How one value becomes another.
#[derive(Default)]
struct Changes {
    but: Map<String, Value>,
    without: Vec<Value>,
}

impl Changes {
    fn between(&mut self, from: &Value, to: &Value, path: &str) {
        match (from, to) {
            (Value::Object(from), Value::Object(to)) => {
                for (key, value) in to {
                    let path = below(path, key);
                    match from.get(key) {
                        Some(other) => self.between(other, value, &path),
                        None => self.put(path, value),
                    }
                }
                let gone = from.keys().filter(|key| !to.contains_key(*key));
                self.without.extend(gone.map(|key| Value::from(below(path, key))));
            }
            (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
                for (index, (from, to)) in from.iter().zip(to).enumerate() {
                    self.between(from, to, &below(path, &index.to_string()));
                }
            }
            (from, to) if from == to => {}
            (_, to) => self.put(path.to_owned(), to),
        }
    }

    fn put(&mut self, path: String, value: &Value) {
        self.but.insert(path, value.clone());
    }
}

fn below(path: &str, key: &str) -> String {
    let key = key.replace('.', "\\1");
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

fn put(value: &mut Value, path: &str, new: &Value) -> Result<(), String> {
    let (holder, last) = holder(value, path)?;
    match holder {
        Value::Object(fields) => {
            fields.insert(last, new.clone());
        }
        Value::Array(items) => {
            let item = last.parse().ok().and_then(|index: usize| items.get_mut(index));
            *item.ok_or_else(|| nothing(path))? = new.clone();
        }
        _ => return Err(nothing(path)),
    }
    Ok(())
}

fn remove(value: &mut Value, path: &str) -> Result<(), String> {
    let (holder, last) = holder(value, path)?;
    let removed = holder.as_object_mut().and_then(|fields| fields.shift_remove(&last));
    removed.map(drop).ok_or_else(|| nothing(path))
}

/// What holds the value at a path, and its key there.
fn holder<'a>(value: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let mut parts: Vec<String> = path.split('.').map(|part| part.replace("\\1", ".")).collect();
    let last = parts.pop().unwrap_or_default();
    let mut at = value;
    for part in parts {
        at = match at {
            Value::Object(fields) => fields.get_mut(&part),
            Value::Array(items) => part.parse().ok().and_then(|index: usize| items.get_mut(index)),
            _ => None,
        }
        .ok_or_else(|| nothing(path))?;
    }
    Ok((at, last))
}

fn nothing(path: &str) -> String {
    format!("nothing is at {path} of the body that this one is like")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfolded(case: &Value) -> Result<Vec<Value>, String> {
        let mut steps: Vec<Step> = serde_json::from_value(case["steps"].clone()).unwrap();
        unfold(&mut steps)?;
        Ok(steps.into_iter().map(|step| step.expect.unwrap()).collect())
    }

    fn case(expected: &[Value]) -> Value {
        let step =
            |(number, expect): (usize, &Value)| json!({"id": format!("s{number}"), "path": "/", "expect": expect});
        json!({"steps": expected.iter().enumerate().map(step).collect::<Vec<_>>()})
    }

    fn object(status: u16, body: Value) -> Value {
        json!({"status": status, "contentType": "application/json", "body": body})
    }

    #[test]
    fn a_failure_is_what_it_adds() {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "m", "code": 404
        });
        let mut folded = case(&[object(404, body.clone()), object(200, body)]);
        let whole = unfolded(&folded).unwrap();
        fold(&mut folded);
        assert_eq!(
            folded["steps"][0]["expect"],
            json!({"status": 404, "failure": {"message": "m"}})
        );
        assert!(
            folded["steps"][1]["expect"].get("failure").is_none(),
            "its code is another"
        );
        assert_eq!(unfolded(&folded).unwrap(), whole);
    }

    #[test]
    fn a_body_is_what_differs_from_an_earlier_one() {
        let spec =
            json!({"x": "a long text that stays as it is ".repeat(9), "y": [1, {"z.z": 2}], "gone": true, "n": null});
        let mut changed = spec.clone();
        changed["y"][1]["z.z"] = json!(3);
        changed["n"] = json!({"new": 1});
        changed.as_object_mut().unwrap().shift_remove("gone");
        let mut folded = case(&[
            object(201, json!({"spec": spec})),
            object(200, json!({"spec": changed})),
        ]);
        let whole = unfolded(&folded).unwrap();
        fold(&mut folded);
        assert_eq!(
            folded["steps"][1]["expect"],
            json!({
                "status": 200, "like": "s0", "without": ["spec.gone"],
                "but": {"spec.y.1.z\\1z": 3, "spec.n": {"new": 1}}
            })
        );
        assert_eq!(unfolded(&folded).unwrap(), whole);
    }

    #[test]
    fn texts_and_other_types_stay() {
        let mut folded = case(&[
            json!({"status": 200, "contentType": "text/plain", "body": "ok"}),
            json!({"status": 200, "contentType": "", "body": ""}),
            json!({"status": 200, "events": []}),
        ]);
        let whole = folded.clone();
        fold(&mut folded);
        assert_eq!(folded, whole);
        assert_eq!(unfolded(&folded).unwrap(), unfolded(&whole).unwrap());
    }

    #[test]
    fn a_body_like_none_is_an_error() {
        let folded = case(&[json!({"status": 200, "like": "s7"})]);
        assert!(unfolded(&folded).unwrap_err().contains("s7"));
        let folded = case(&[
            object(200, json!({"a": 1})),
            json!({"status": 200, "like": "s0", "without": ["b"]}),
        ]);
        assert!(unfolded(&folded).unwrap_err().contains('b'));
    }
}
