//! What the definitions give to absent fields is what kube-apiserver gave to the same requests.

mod facts;

use facts::facts;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::{defaults, json};
use serde_json::Value;

fn kind(record: &Value) -> Option<&'static KindDesc> {
    let groups = keelson::api::SCHEME.groups.iter().filter(|g| g.name == record["group"]);
    let versions = groups
        .flat_map(|g| g.versions)
        .filter(|v| v.version == record["version"]);
    versions.flat_map(|v| v.kinds).find(|k| k.plural == record["resource"])
}

/// Where `ours` says something that `theirs` does not say. The server's code adds more than the definitions.
fn contradictions(path: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in ours {
                contradictions(
                    &format!("{path}.{name}"),
                    value,
                    theirs.get(name).unwrap_or(&Value::Null),
                    out,
                );
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() <= theirs.len() => {
            for (i, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                contradictions(&format!("{path}[{i}]"), ours, theirs, out);
            }
        }
        _ if ours == theirs => {}
        // An always-written zero: the definition says nothing of it, and code may.
        (Value::Null, _) => {}
        (Value::Number(n), _) if n.as_i64() == Some(0) => {}
        _ => out.push(format!("{path}: ours {ours}, theirs {theirs}")),
    }
}

#[test]
fn no_default_contradicts_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let text = std::fs::read_to_string(facts.join("created.json")).unwrap();
    let records = text
        .lines()
        .filter_map(|l| serde_json::from_str::<Value>(l.trim_end_matches(',')).ok());
    let (mut found, mut checked) = (Vec::new(), 0);
    for record in records {
        let Some(kind) = kind(&record) else { continue };
        let mut object = (kind.new)();
        json::read(record["request"].to_string().as_bytes(), object.as_reflect_mut()).unwrap();
        defaults::apply(object.as_reflect_mut());
        let ours: Value = serde_json::from_slice(&json::to_vec(&*object)).unwrap();
        contradictions(kind.kind, &ours, &record["response"], &mut found);
        checked += 1;
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(checked > 10, "only {checked} kinds were checked");
}
