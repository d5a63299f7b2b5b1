//! Answers as they are compared: status, reason, causes in their order, warnings, and the object that came of it,
//! without what differs between two servers that do the same.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::server::Exchange;

/// An answer.
pub struct Answer {
    /// What is compared and recorded.
    pub row: String,
    /// The object that came of it.
    object: Option<Value>,
}

impl Answer {
    pub fn of(exchange: &Exchange) -> Answer {
        let mut warnings = exchange.warnings.clone();
        warnings.sort();
        if exchange.status < 300 {
            let object = without_chance(&exchange.body, "");
            let sum = Sha256::digest(object.to_string());
            let sum: String = sum.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            let row = json!([exchange.status, sum, warnings]).to_string();
            let object = Some(object);
            return Answer { row, object };
        }
        let told = &exchange.body;
        let text = |value: &Value| words(value.as_str().unwrap_or_default());
        let causes = told["details"]["causes"].as_array().filter(|causes| !causes.is_empty());
        let said = match causes {
            Some(causes) => {
                let cause = |c: &Value| json!([text(&c["field"]), text(&c["reason"]), text(&c["message"])]);
                causes.iter().map(cause).collect()
            }
            None => json!(text(&told["message"])),
        };
        let row = json!([exchange.status, told["reason"], said, warnings]).to_string();
        Answer { row, object: None }
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
            let kept = map
                .iter()
                .filter(|(name, _)| key != "metadata" || !OF_METADATA.contains(&name.as_str()));
            let mut kept: Vec<_> = kept
                .map(|(name, value)| (name.clone(), without_chance(value, name)))
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

/// A text without uids, times and allocated addresses; without how structs are written in Go, and without what comes of
/// two long texts that are compared.
fn words(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_start = !words.ends_with(|c: char| c.is_ascii_alphanumeric());
        let made_up = [uid(rest), time(rest), address(rest), token_volume(rest)]
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
    let is_struct = value.starts_with(['{', '[']) && !matches!(value, "{}" | "[]");
    match value.rfind(['}', ']']).filter(|_| is_struct) {
        Some(end) if end > 1 => format!("{head}STRUCT{}", &value[end + 1..]),
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
