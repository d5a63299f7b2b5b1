//! Answers of steps: read, checked, and reduced to what is compared.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::session::Session;
use crate::case::{Check, Operator, Step};
use crate::client::Received;
use crate::deep::parse;
use crate::paths::{change_array, ignore, lookup, plain, without_keys};
use crate::text::{compact, sortable};

/// Bytes of a broken answer that are shown.
const SHOWN: usize = 200;

/// An answer's content.
pub struct Answer {
    /// Its type, as it is compared; null where there is none and the whole header was asked for.
    pub kind: Value,
    pub body: Value,
}

impl Answer {
    pub fn read(received: &Received, step: &Step) -> Answer {
        let whole = received.header("content-type");
        let kind = match step.full_content_type {
            true => whole.map_or(Value::Null, Value::from),
            false => whole.as_deref().unwrap_or_default().split(';').next().into(),
        };
        let body = body(kind.as_str().unwrap_or_default(), &received.body, step);
        Answer { kind, body }
    }
}

fn body(kind: &str, bytes: &[u8], step: &Step) -> Value {
    if let Some(length) = step.body_prefix.filter(|length| *length > 0) {
        return json!({"prefix": BASE64_STANDARD.encode(&bytes[..bytes.len().min(length)])});
    }
    if kind.contains("json") || step.json {
        return parse(bytes).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
            json!({"unparsable": text})
        });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({"binary": true}),
    }
}

/// What a variable keeps of an answer: a header, or what is at a path.
pub fn captured(place: &str, received: &Received, body: &Value) -> String {
    match place.strip_prefix("header:") {
        Some(name) => received.header(name).unwrap_or_default(),
        None => captured_from(body, place),
    }
}

/// What is at a path, as text; nothing where nothing is.
pub fn captured_from(value: &Value, path: &str) -> String {
    match lookup(value, path) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => compact(other),
    }
}

impl Session<'_> {
    /// Whether an answer is what the step waits for.
    pub(super) fn satisfies(&self, step: &Step, received: &Received, body: &Value) -> bool {
        let Some(until) = &step.until else {
            return true;
        };
        if until.status.is_some_and(|status| status != received.status) {
            return false;
        }
        let Some(path) = &until.path else {
            return true;
        };
        let found = lookup(body, &self.variables.text(path)).filter(|found| !found.is_null());
        let equal = |wanted: &Value| found.unwrap_or(&Value::Null) == &self.variables.value(wanted);
        until.equals.as_ref().is_none_or(equal)
            && !(until.present && found.is_none())
            && !(until.absent && found.is_some())
    }

    /// The headers that are compared: warnings, and those that the step asks for.
    pub(super) fn headers(&mut self, step: &Step, received: &Received) -> Map<String, Value> {
        let mut compared = Map::new();
        let asked = step.expect_headers.iter().map(|name| name.to_lowercase());
        for name in std::iter::once("warning".to_owned()).chain(asked) {
            let values = received.header_values(&name);
            if !values.is_empty() {
                let normal = values.iter().map(|value| self.normaliser.text(value, &self.variables));
                compared.insert(name, normal.collect());
            }
        }
        compared
    }

    /// The outcome of each check, taken before anything is normalised.
    pub(super) fn checks(&self, step: &Step, body: &Value) -> Value {
        let outcomes = step.checks.iter().map(|(name, check)| {
            let found = lookup(body, &self.variables.text(&check.path)).unwrap_or(&Value::Null);
            let wanted = self.variables.value(&check.value);
            (name.clone(), holds(check, found, &wanted).into())
        });
        Value::Object(outcomes.collect())
    }

    /// What of an answer is compared, normalised.
    pub(super) fn clean(&mut self, step: &Step, mut body: Value, ignore_keys: &[String]) -> Value {
        for path in &step.ignore {
            ignore(&mut body, &self.variables.text(path));
        }
        let names = ignore_keys.iter().chain(&step.ignore_keys).map(String::as_str);
        without_keys(&mut body, &names.collect::<Vec<_>>());
        if let Value::String(text) = &body
            && !step.contains.is_empty()
        {
            let contained = |part: &String| (part.clone(), text.contains(&self.variables.text(part)).into());
            body = Value::Object(step.contains.iter().map(contained).collect());
        }
        if !step.only.is_empty() {
            let found = |path: &String| lookup(&body, &self.variables.text(path)).cloned().unwrap_or_default();
            body = Value::Object(step.only.iter().map(|path| (path.clone(), found(path))).collect());
        }
        for (path, keys) in &step.sort_by {
            let text = |item: &Value, key: &str| sortable(lookup(item, key).unwrap_or(&Value::Null));
            let texts = |item: &Value| keys.as_slice().iter().map(|key| text(item, key)).collect::<Vec<_>>();
            change_array(&mut body, path, |items| items.sort_by_cached_key(texts));
        }
        self.normaliser.value(&body, &self.variables)
    }
}

fn holds(check: &Check, found: &Value, wanted: &Value) -> bool {
    let numbers = || Some((number(found)?, number(wanted)?));
    let compared = |holds: fn(i128, i128) -> bool| numbers().is_some_and(|(found, wanted)| holds(found, wanted));
    match check.op {
        Operator::Equal => found == wanted,
        Operator::Differs => found != wanted,
        Operator::Present => !found.is_null(),
        Operator::Less => compared(|found, wanted| found < wanted),
        Operator::Greater => compared(|found, wanted| found > wanted),
        Operator::AtMost => compared(|found, wanted| found <= wanted),
        Operator::AtLeast => compared(|found, wanted| found >= wanted),
    }
}

fn number(value: &Value) -> Option<i128> {
    plain(value).trim().parse().ok()
}
