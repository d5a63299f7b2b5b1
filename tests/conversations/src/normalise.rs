//! Normalising: what may differ between two correct runs is replaced by placeholders.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::variables::Variables;

static JWT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"));
static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static CLUSTER_IP: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.0\.0\.\d{1,3}\b"));
static VERSION_IN_YAML: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(resourceVersion: )"[1-9]\d*""#));
static VERSION_IN_JSON: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(resourceVersion\\*":\\*")[1-9]\d*"#));
static VERSION_IN_TEXT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(ResourceVersion in (?:the precondition|record) \()[1-9]\d*"));
static TOKEN_VOLUME: LazyLock<Regex> = LazyLock::new(|| pattern(r"kube-api-access-[a-z0-9]{5}\b"));
/// An age in a row of a Table.
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+[smhdy]){1,2}$"));

/// What normalising remembers within a case: uids are numbered by their first appearance.
#[derive(Debug, Default)]
pub struct Normaliser {
    uids: HashMap<String, usize>,
    /// The stub's port, where chance chose it.
    chance_port: Option<u16>,
}

impl Normaliser {
    pub fn new(chance_port: Option<u16>) -> Normaliser {
        Normaliser {
            uids: HashMap::new(),
            chance_port,
        }
    }

    pub fn text(&mut self, text: &str, variables: &Variables) -> String {
        let mut text = without_variables(text, variables);
        if let Some(port) = self.chance_port.filter(|_| text.contains(':')) {
            let port = pattern(&format!(r":{port}\b"));
            text = port.replace_all(&text, ":<stubPort>").into_owned();
        }
        // Looked for first by what is cheap to find: expressions are slow in a program that is not optimized.
        replace(&mut text, "eyJ", &JWT, "<jwt>");
        self.number_uids(&mut text);
        replace(&mut text, "T", &TIME, "<time>");
        replace(&mut text, "10.0.0.", &CLUSTER_IP, "<clusterIP>");
        replace(&mut text, "resourceVersion", &VERSION_IN_YAML, r#"${1}"<rv>""#);
        replace(&mut text, "resourceVersion", &VERSION_IN_JSON, "${1}<rv>");
        replace(&mut text, "ResourceVersion in ", &VERSION_IN_TEXT, "${1}<rv>");
        replace(&mut text, "kube-api-access-", &TOKEN_VOLUME, "kube-api-access-<suffix>");
        text
    }

    fn number_uids(&mut self, text: &mut String) {
        if text.bytes().filter(|byte| *byte == b'-').count() < 4 {
            return;
        }
        let numbered = UID.replace_all(text, |uid: &Captures<'_>| {
            let next = self.uids.len() + 1;
            format!("<uid:{}>", self.uids.entry(uid[0].to_owned()).or_insert(next))
        });
        *text = numbered.into_owned();
    }

    pub fn value(&mut self, value: &Value, variables: &Variables) -> Value {
        self.below(value, "", false, variables)
    }

    /// A value below a key. `generated`: the object that holds it has a `generateName`.
    fn below(&mut self, value: &Value, key: &str, generated: bool, variables: &Variables) -> Value {
        match value {
            Value::Object(fields) => {
                let generated = fields.get("generateName").is_some_and(holds);
                let pair = |(key, value): (&String, &Value)| {
                    let name = self.text(key, variables);
                    (name, self.below(value, key, generated, variables))
                };
                Value::Object(fields.iter().map(pair).collect())
            }
            // The elements have the key of their list, but are no fields of what holds it.
            Value::Array(items) => {
                let normal = items.iter().map(|item| self.below(item, key, false, variables));
                normal.collect()
            }
            Value::String(text) => match by_key(text, key, generated) {
                Some(placeholder) => placeholder.into(),
                None => self.text(text, variables).into(),
            },
            Value::Number(number) if number.is_i64() || number.is_u64() => {
                let port = self.chance_port.map(u64::from);
                match number.as_u64() {
                    Some(number) if Some(number) == port => "<stubPort>".into(),
                    number => number_by_key(number, key).map_or_else(|| value.clone(), Value::from),
                }
            }
            other => other.clone(),
        }
    }
}

/// Names of the run give way to those of their variables. (`stub` contains `uniq`, so it goes first.)
fn without_variables(text: &str, variables: &Variables) -> String {
    let mut text = text.to_owned();
    for name in ["ns", "ns2", "ns3", "ns4", "stub", "server", "uniq", "advertise"] {
        if let Some(value) = variables.get(name).filter(|value| text.contains(value)) {
            text = text.replace(value, &format!("{{{name}}}"));
        }
    }
    // Operation ids of custom resources have it capitalised.
    if let Some(value) = variables
        .get("uniq")
        .map(capitalised)
        .filter(|value| text.contains(value))
    {
        text = text.replace(&value, "{Uniq}");
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn by_key(text: &str, key: &str, generated: bool) -> Option<&'static str> {
    match key {
        "resourceVersion" if !matches!(text, "" | "0") => Some("<rv>"),
        "storageVersionHash" => Some("<hash>"),
        "continue" if !text.is_empty() => Some("<continue>"),
        // `only` has whole paths as keys.
        key if (key == "cells" || key.ends_with(".cells")) && is_age(text) => Some("<age>"),
        "caBundle" => Some("<ca>"),
        "name" if generated => Some("<generated>"),
        _ => None,
    }
}

fn is_age(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && AGE.is_match(text)
}

fn number_by_key(number: Option<u64>, key: &str) -> Option<&'static str> {
    match key {
        "nodePort" | "healthCheckNodePort" if number != Some(0) => Some("<nodePort>"),
        "remainingItemCount" => Some("<remaining>"),
        "retryAfterSeconds" => Some("<seconds>"),
        _ => None,
    }
}

/// Whether a value is more than absent: neither null nor empty.
fn holds(value: &Value) -> bool {
    !value.is_null() && value != ""
}

fn replace(text: &mut String, hint: &str, expression: &Regex, with: &str) {
    if text.contains(hint) && expression.is_match(text) {
        *text = expression.replace_all(text, with).into_owned();
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables() -> Variables {
        let mut variables = Variables::default();
        variables.set("ns", "t1-abcd");
        variables.set("uniq", "u12");
        variables.set("stub", "https://127.0.0.1:27/u12");
        variables
    }

    #[test]
    fn texts_lose_what_chance_chose() {
        let mut normaliser = Normaliser::new(Some(2755));
        let mut normal = |text: &str| normaliser.text(text, &variables());
        assert_eq!(
            normal("t1-abcd u12 U12 https://127.0.0.1:27/u12/x"),
            "{ns} {uniq} {Uniq} {stub}/x"
        );
        assert_eq!(normal("at :2755, :27551"), "at :<stubPort>, :27551");
        assert_eq!(
            normal("2026-01-02T03:04:05Z, 2026-01-02T03:04:05.123Z"),
            "<time>, <time>"
        );
        assert_eq!(
            normal("10.0.0.7 110.0.0.7 10.0.0.1234"),
            "<clusterIP> 110.0.0.7 10.0.0.1234"
        );
        assert_eq!(normal("eyJh.b-c.d_e"), "<jwt>");
        assert_eq!(
            normal(r#"{\"resourceVersion\":\"12\"}"#),
            r#"{\"resourceVersion\":\"<rv>\"}"#
        );
        assert_eq!(normal("resourceVersion: \"12\""), "resourceVersion: \"<rv>\"");
        assert_eq!(
            normal("ResourceVersion in the precondition (12)"),
            "ResourceVersion in the precondition (<rv>)"
        );
        assert_eq!(normal("kube-api-access-ab1c9"), "kube-api-access-<suffix>");
    }

    #[test]
    fn uids_are_numbered_by_their_first_appearance() {
        let (a, b) = (
            "0a2b3c4d-0000-4000-8000-000000000001",
            "0a2b3c4d-0000-4000-8000-000000000002",
        );
        let value = json!({"x": a, "y": [b, a]});
        let normal = Normaliser::default().value(&value, &variables());
        assert_eq!(normal, json!({"x": "<uid:1>", "y": ["<uid:2>", "<uid:1>"]}));
    }

    #[test]
    fn some_keys_have_values_of_chance() {
        let value = json!({
            "metadata": {"resourceVersion": "12", "generateName": "a-", "name": "a-x7", "continue": "abc"},
            "list": {"resourceVersion": "0", "name": "stays", "remainingItemCount": 3},
            "ports": [{"nodePort": 30001}, {"nodePort": 0}], "cells": ["5d3h", "5 d", 7], "caBundle": "aaa",
            "rows.0.cells": ["0s"], "cells.x": "0s"
        });
        let normal = Normaliser::default().value(&value, &variables());
        assert_eq!(
            normal,
            json!({
                "metadata": {
                    "resourceVersion": "<rv>", "generateName": "a-", "name": "<generated>", "continue": "<continue>"
                },
                "list": {"resourceVersion": "0", "name": "stays", "remainingItemCount": "<remaining>"},
                "ports": [{"nodePort": "<nodePort>"}, {"nodePort": 0}], "cells": ["<age>", "5 d", 7], "caBundle": "<ca>",
                "rows.0.cells": ["<age>"], "cells.x": "0s"
            })
        );
    }
}
