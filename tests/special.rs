//! Values with encodings of their own (quantities, times, ports, bytes, numbers), read and written as kube-apiserver
//! does: rows of apiVersion, kind, path, input, output and error that were observed at a real one. An output of
//! `"<absent>"` means that the answer lacks the field. What validation says of a value that could be read is not looked
//! at.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

use keelson::api::SCHEME;
use keelson_machinery::defaults;
use keelson_machinery::json;
use keelson_machinery::object::{Object, api_version};
use keelson_machinery::quantity::Quantity;
use serde_json::Value;

const ROWS: &str = include_str!("data/special.tsv");

fn new_object(version: &str, kind: &str) -> Box<dyn Object> {
    let kinds = SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
    let mut named = kinds.filter(|k| k.kind == kind && api_version(&k.group, &k.version) == version);
    named.next().unwrap_or_else(|| panic!("{version} {kind}")).new_object()
}

/// The parts of a path; a dot within a part stands behind a backslash.
fn parts(path: &str) -> Vec<String> {
    path.replace("\\.", "\0")
        .split('.')
        .map(|p| p.replace('\0', "."))
        .collect()
}

/// The text of a document with the value at the path. Built by hand: numbers keep their spelling.
fn document(path: &str, input: &str) -> String {
    let open: String = parts(path)
        .iter()
        .map(|p| format!("{{{}:", Value::from(p.as_str())))
        .collect();
    format!("{open}{input}{}", "}".repeat(parts(path).len()))
}

fn at(document: &Value, path: &str) -> Option<Value> {
    parts(path)
        .iter()
        .try_fold(document, |value, part| value.get(part))
        .cloned()
}

/// What the server stores of the value at the path, or the error.
fn answer(version: &str, kind: &str, path: &str, input: &str) -> Result<Option<Value>, String> {
    let mut object = new_object(version, kind);
    json::read(document(path, input).as_bytes(), object.as_reflect_mut()).map_err(|e| e.to_string())?;
    defaults::apply(object.as_reflect_mut());
    let shown: Value = serde_json::from_slice(&json::to_vec(&*object)).unwrap();
    let found = at(&shown, path);
    // Lists of resources are kept to thousandths.
    if let (true, Some(Value::String(text))) = (path.starts_with("spec.hard"), &found) {
        let mut quantity = Quantity::parse(text).unwrap();
        quantity.round_up(-3);
        return Ok(Some(quantity.as_str().into()));
    }
    Ok(found)
}

#[test]
fn every_row() {
    let mut failures = Vec::new();
    let mut count = 0;
    for row in ROWS.lines() {
        let [version, kind, path, input, output, error] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let got = answer(version, kind, path, input);
        let got = match got {
            Ok(None) => Value::from("<absent>").to_string(),
            Ok(Some(value)) => value.to_string(),
            Err(error) => {
                let version = version.rsplit('/').next().unwrap_or_default();
                Value::from(format!(
                    "{kind} in version {version:?} cannot be handled as a {kind}: {error}"
                ))
                .to_string()
            }
        };
        let want: Value = serde_json::from_str(if error == "null" { output } else { error }).unwrap();
        let want = want.to_string();
        count += 1;
        if got != want {
            failures.push(format!("{row}\n  got {got}"));
        }
    }
    assert!(count > 250, "{count} rows");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
