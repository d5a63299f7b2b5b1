//! Answers as they are compared: status, reason, causes in their order, warnings, and the object that came of it,
//! without what differs between two servers that do the same.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::server::Exchange;

/// Kinds whose status a controller writes that not both servers have beside them.
const OF_CONTROLLERS: [&str; 2] = ["APIService", "ValidatingAdmissionPolicy"];
/// Causes that kube-apiserver tells in the order of a map, which is another one each time.
const OF_A_MAP: [&str; 1] = ["must populate the given metric source only"];

/// An answer.
pub struct Answer {
    /// What is compared and recorded.
    pub row: String,
    /// The same with causes in the order of their texts.
    pub sorted: String,
    /// Whether the order of the causes is chance.
    in_any_order: bool,
    /// The object that came of it.
    pub object: Option<Value>,
}

/// Behind what is recorded of an answer whose causes stand in an order of chance.
const IN_ANY_ORDER: &str = "in any order";

/// Finds out whose causes stand in an order of chance: kube-apiserver goes over a map there, and was seen to tell the
/// same causes in several orders.
pub fn find_orders_of_chance(answers: &mut [Answer]) {
    for at in 0..answers.len() {
        let is_other = |other: &Answer| other.sorted == answers[at].sorted && other.row != answers[at].row;
        answers[at].in_any_order |= answers.iter().any(is_other);
    }
}

impl Answer {
    pub fn of(exchange: &Exchange) -> Answer {
        let mut warnings = exchange.warnings.clone();
        warnings.sort();
        if exchange.status < 300 {
            let mut object = without_chance(&exchange.body, "");
            if OF_CONTROLLERS.iter().any(|kind| object["kind"] == *kind) {
                object["status"] = Value::Null;
            }
            let sum = Sha256::digest(object.to_string());
            let sum: String = sum.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            let row = json!([exchange.status, sum, warnings]).to_string();
            return Answer {
                object: Some(object),
                ..Answer::recorded(&row)
            };
        }
        let told = &exchange.body;
        let text = |value: &Value| words(value.as_str().unwrap_or_default());
        let causes = told["details"]["causes"].as_array().filter(|causes| !causes.is_empty());
        let said = match causes {
            Some(causes) => {
                let cause = |c: &Value| json!([text(&c["field"]), text(&c["reason"]), text(&c["message"])]);
                let mut all: Vec<Value> = causes.iter().map(cause).collect();
                for pair in 1..all.len() {
                    sort_of_a_map(&mut all[..=pair]);
                }
                Value::Array(all)
            }
            None => json!(text(&told["message"])),
        };
        Answer::recorded(&json!([exchange.status, told["reason"], said, warnings]).to_string())
    }

    /// One of which the row alone is known.
    pub fn recorded(row: &str) -> Answer {
        let mut parts: Vec<Value> = serde_json::from_str(row).unwrap();
        let in_any_order = parts.pop_if(|last| last == IN_ANY_ORDER).is_some();
        let row = Value::from(parts.clone()).to_string();
        for part in &mut parts {
            if let Value::Array(causes) = part {
                causes.sort_by_key(ToString::to_string);
            }
        }
        Answer {
            row,
            sorted: Value::from(parts).to_string(),
            in_any_order,
            object: None,
        }
    }

    /// What is recorded of it.
    pub fn as_recorded(&self) -> String {
        let mut parts: Vec<Value> = serde_json::from_str(&self.row).unwrap();
        parts.extend(self.in_any_order.then(|| json!(IN_ANY_ORDER)));
        Value::from(parts).to_string()
    }

    /// Whether another server says the same.
    pub fn is_met_by(&self, own: &Answer) -> bool {
        self.row == own.row || (self.in_any_order && self.sorted == own.sorted)
    }

    /// What is different, a line each.
    pub fn difference(&self, theirs: &Answer) -> String {
        if let (Some(ours), Some(theirs)) = (&self.object, &theirs.object) {
            let mut lines = String::new();
            differing(ours, theirs, "", &mut lines);
            if !lines.is_empty() {
                return lines;
            }
        }
        format!("   ours: {}\n theirs: {}\n", self.row, theirs.row)
    }
}

/// Puts the last cause into its place among those before it, if its order is chance.
fn sort_of_a_map(causes: &mut [Value]) {
    let is_of_a_map = |cause: &Value| {
        OF_A_MAP
            .iter()
            .any(|text| cause[2].as_str().is_some_and(|c| c.ends_with(text)))
    };
    let from = causes
        .iter()
        .rposition(|cause| !is_of_a_map(cause))
        .map_or(0, |place| place + 1);
    causes[from..].sort_by_key(ToString::to_string);
}

fn differing(ours: &Value, theirs: &Value, path: &str, lines: &mut String) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differing(&ours[key], &theirs[key], &format!("{path}.{key}"), lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differing(a, b, &format!("{path}[{index}]"), lines);
            }
        }
        (ours, theirs) if ours != theirs => *lines += &format!("   {path} ours: {ours} theirs: {theirs}\n"),
        _ => {}
    }
}

/// The object without what the server makes up: uids, times, allocated addresses and ports. Keys are sorted.
fn without_chance(value: &Value, key: &str) -> Value {
    const OF_METADATA: [&str; 5] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
    ];
    match value {
        Value::Object(map) => {
            let generated = generated_name(map).filter(|_| key == "metadata");
            let kept = map
                .iter()
                .filter(|(name, _)| key != "metadata" || !OF_METADATA.contains(&name.as_str()));
            let mut kept: Vec<_> = kept
                .map(|(name, value)| match (name.as_str(), &generated) {
                    ("name", Some(shown)) => (name.clone(), json!(shown)),
                    // Namespaces are labelled with their name.
                    ("labels", Some(shown)) => (name.clone(), replaced(value, &map["name"], shown)),
                    _ => (name.clone(), without_chance(value, name)),
                })
                .collect();
            kept.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(kept.into_iter().collect())
        }
        Value::Array(list) => list.iter().map(|item| without_chance(item, key)).collect(),
        Value::String(text) => json!(words(text)),
        Value::Number(port) if matches!(key, "nodePort" | "healthCheckNodePort") && port.as_i64() >= Some(30_000) => {
            json!("a port")
        }
        other => other.clone(),
    }
}

/// Labels, of which those with a value are shown with another.
fn replaced(labels: &Value, value: &Value, shown: &str) -> Value {
    let labels = labels.as_object().into_iter().flatten();
    let shown = labels.map(|(name, own)| {
        let own = if own == value { json!(shown) } else { own.clone() };
        (name.clone(), own)
    });
    Value::Object(shown.collect())
}

/// The name of an object without what the server has put behind its prefix.
fn generated_name(metadata: &serde_json::Map<String, Value>) -> Option<String> {
    let (name, prefix) = (metadata.get("name")?.as_str()?, metadata.get("generateName")?.as_str()?);
    let base = name.get(..name.len().checked_sub(5)?)?;
    (!base.is_empty() && prefix.starts_with(base)).then(|| format!("{base}GENERATED"))
}

/// A text without uids, times and allocated addresses; without how structs are written in Go, and without what comes of
/// two long texts that are compared.
fn words(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_start = !words.ends_with(|c: char| c.is_ascii_alphanumeric());
        let made_up = [
            uid(rest),
            time(rest),
            address(rest),
            token_volume(rest),
            node_port(&words, rest),
        ]
        .into_iter()
        .flatten()
        .next();
        match made_up.filter(|_| is_start) {
            Some((length, word)) => {
                words += word;
                rest = &rest[length..];
            }
            None => {
                words.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    let words = without_diff(&words);
    without_struct(words)
}

/// Length, where the text begins with digits as in the pattern: `h` hexadecimal, `d` decimal, any other itself.
fn fits(text: &str, pattern: &str) -> bool {
    let is_at = |(byte, wanted): (u8, u8)| match wanted {
        b'h' => byte.is_ascii_hexdigit(),
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(is_at)
}

fn uid(text: &str) -> Option<(usize, &'static str)> {
    fits(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh").then_some((36, "UID"))
}

fn time(text: &str) -> Option<(usize, &'static str)> {
    if !fits(text, "dddd-dd-ddTdd:dd:dd") {
        return None;
    }
    let fraction = text[19..]
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(text.len() - 19);
    text[19 + fraction..]
        .starts_with('Z')
        .then_some((20 + fraction, "TIME"))
}

fn address(text: &str) -> Option<(usize, &'static str)> {
    let rest = text.strip_prefix("10.0.0.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let is_whole = !rest[digits..].starts_with(['.', '/']);
    (digits > 0 && is_whole).then_some((7 + digits, "ADDRESS"))
}

/// A port that was allocated, behind its protocol: `{TCP 30624}`.
fn node_port(before: &str, text: &str) -> Option<(usize, &'static str)> {
    let is_allocated = fits(text, "3dddd") && text.get(5..6) == Some("}");
    (is_allocated && before.ends_with("P ")).then_some((5, "PORT"))
}

/// The volume of a token is called by chance.
fn token_volume(text: &str) -> Option<(usize, &'static str)> {
    let rest = text.strip_prefix("kube-api-access-")?;
    let suffix = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    (suffix == 5).then_some((21, "TOKEN-VOLUME"))
}

/// `Invalid value: {…}: why` shows the value as Go prints a struct of its own: only that there is one is compared.
fn without_struct(text: &str) -> String {
    const BEFORE: [&str; 3] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: "];
    let Some(value) = BEFORE.iter().find_map(|before| text.strip_prefix(before)) else {
        return text.to_owned();
    };
    let head = &text[..text.len() - value.len()];
    // Nor is it known here whether a list or map is empty, or there is none.
    if let Some(why) = value.strip_prefix("null:") {
        return format!("{head}STRUCT:{why}");
    }
    let is_struct = value.starts_with(['{', '[']);
    match value.rfind(['}', ']']).filter(|_| is_struct) {
        Some(end) => format!("{head}STRUCT{}", &value[end + 1..]),
        _ => text.to_owned(),
    }
}

/// What is after the first line of a comparison of two texts.
fn without_diff(text: &str) -> &str {
    let end = ["\n@@", "\nspec.", "\nstatus.", "\n  ", "\n\n"]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min();
    text[..end.unwrap_or(text.len())].trim_end()
}
