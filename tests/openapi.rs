//! The OpenAPI documents: equal to kube-apiserver's for what exists here, and equal to the checked-in ones.
//!
//! The checked-in documents in `openapi/` have no descriptions. After a wanted change, refresh them with
//! `UPDATE=1 cargo test --test openapi`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod facts;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use facts::facts;
use flate2::read::GzDecoder;
use keelson::api::SCHEME;
use keelson_base::env::SystemClock;
use keelson_kube::KNOWN_VERSIONS;
use keelson_machinery::scheme::Scheme;
use keelson_server::discovery::{RuntimeConfig, Served};
use keelson_server::openapi::{Documents, Info};
use serde_json::{Value, json};

static SCHEMES: [&Scheme; 1] = [&SCHEME];

fn built() -> Documents {
    let served = Served::new(&SCHEMES, &RuntimeConfig::default());
    let info = Info {
        title: "Kubernetes".to_owned(),
        version: "1.36".to_owned(),
        issuer: true,
        known: KNOWN_VERSIONS,
    };
    Documents::new(&SCHEMES, served.fixed(), info, Arc::new(SystemClock))
}

/// The text of the v2 document.
fn v2(documents: &Documents) -> Value {
    let mut text = Vec::new();
    documents.v2(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn v3(documents: &Documents, name: &str) -> Value {
    let mut text = Vec::new();
    assert!(documents.v3(name, &mut text).unwrap(), "no document {name}");
    serde_json::from_slice(&text).unwrap()
}

fn stripped(mut value: Value) -> Value {
    strip_descriptions(&mut value);
    value
}

/// Whether a path, document or definition comes from a definition file that is not of Kubernetes.
fn is_foreign(name: &str) -> bool {
    let group = name
        .trim_start_matches('/')
        .strip_prefix("apis/")
        .and_then(|rest| rest.split('/').next());
    match group {
        Some(group) => group.contains('.') && !group.ends_with(".k8s.io"),
        None => name.contains('.') && !name.contains('/') && !name.starts_with("io.k8s."),
    }
}

/// Members of `ours` and `theirs` that differ, also in the order of keys.
fn differences(what: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (ours, theirs) = (members(ours), members(theirs));
    for (name, value) in ours.iter().filter(|(name, _)| !is_foreign(name)) {
        let value = value.to_string();
        match theirs.get(name).map(Value::to_string) {
            Some(other) if other == value => {}
            Some(other) => out.push(format!("{what} {name}\n   ours: {value}\n theirs: {other}")),
            None => out.push(format!("{what} {name} is not kube-apiserver's")),
        }
    }
    let missing = theirs.keys().filter(|name| !ours.contains_key(*name));
    out.extend(missing.map(|name| format!("{what} {name} is missing")));
}

/// Fails if anything differs that tests/data/openapi-pending.txt does not name, or if it names what does not differ.
fn assert_equal_but_for_pending(found: &[String], document: &str) {
    let pending: BTreeSet<&str> = include_str!("data/openapi-pending.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(" # ").next()?.trim().strip_prefix(document))
        .map(str::trim)
        .collect();
    let name = |difference: &String| difference.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let names: BTreeSet<String> = found.iter().map(name).collect();
    let new: Vec<&String> = found.iter().filter(|f| !pending.contains(name(f).as_str())).collect();
    assert!(new.is_empty(), "{document}: {} differences:\n{}", new.len(), {
        new.iter().map(|f| f.as_str()).collect::<Vec<_>>().join("\n")
    });
    let gone: Vec<&&str> = pending.iter().filter(|p| !names.contains(**p)).collect();
    assert!(
        gone.is_empty(),
        "tests/data/openapi-pending.txt: take out {gone:?}, which are equal now"
    );
}

#[test]
fn v2_equals_that_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let theirs: Value = serde_json::from_slice(&gunzip(&facts.join("openapi/v2.json.gz"))).unwrap();
    let ours = stripped(v2(&built()));
    let mut found = Vec::new();
    for part in ["paths", "definitions", "parameters"] {
        differences(part, &ours[part], &theirs[part], &mut found);
    }
    assert_equal_but_for_pending(&found, "v2");
    let keys = |document: &Value| document.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&ours), keys(&theirs));
    for part in ["swagger", "info", "securityDefinitions", "security"] {
        assert_eq!(ours[part], theirs[part], "{part}");
    }
}

#[test]
fn v3_equals_that_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let documents = built();
    let index: Value = serde_json::from_slice(&std::fs::read(facts.join("openapi/v3_index.json")).unwrap()).unwrap();
    let theirs: Vec<&str> = index["paths"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let ours: Vec<String> = documents
        .v3_names()
        .into_iter()
        .filter(|name| !is_foreign(name))
        .collect();
    assert_eq!(ours, theirs);
    let mut found = Vec::new();
    for name in &ours {
        let theirs: Value = serde_json::from_slice(&gunzip(&facts.join(format!("openapi/v3/{name}.json.gz")))).unwrap();
        let ours = stripped(v3(&documents, name));
        differences("path", &ours["paths"], &theirs["paths"], &mut found);
        let schemas = |v: &Value| v["components"]["schemas"].clone();
        differences("schema", &schemas(&ours), &schemas(&theirs), &mut found);
        for part in ["openapi", "info"] {
            assert_eq!(ours[part], theirs[part], "{name} {part}");
        }
    }
    assert_equal_but_for_pending(&found, "v3");
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &Value, out: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                out.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|v| references(v, out));
            }
            Value::Array(items) => items.iter().for_each(|v| references(v, out)),
            _ => {}
        }
    }
    let documents = built();
    let names = documents.v3_names();
    let all = names.iter().map(|name| v3(&documents, name)).chain([v2(&documents)]);
    for document in all {
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} leads nowhere");
        }
    }
}

#[test]
fn checked_in_documents_are_fresh() {
    let documents = built();
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    files.insert("v2.json".into(), lines(&stripped(v2(&documents))));
    for name in documents.v3_names() {
        let value = stripped(v3(&documents, &name));
        files.insert(format!("v3/{}.json", name.replace('/', "_")).into(), lines(&value));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi");
    if std::env::var_os("UPDATE").is_some() {
        for (name, text) in &files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    for (name, text) in &files {
        let path = root.join(name);
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            old == *text,
            "openapi/{} is out of date: UPDATE=1 cargo test --test openapi",
            name.display()
        );
    }
    let mut there: Vec<PathBuf> = files_below(&root);
    there.retain(|path| !files.contains_key(path));
    assert!(there.is_empty(), "no document is called {there:?}: delete them");
}

/// JSON with one line per path and definition.
fn lines(document: &Value) -> String {
    fn member(out: &mut String, name: &str, value: &Value, depth: usize, nested: usize) {
        let indent = " ".repeat(depth);
        out.push_str(&format!("{indent}{}: ", json!(name)));
        match value.as_object().filter(|o| nested > 0 && !o.is_empty()) {
            Some(members) => {
                out.push_str("{\n");
                for (i, (name, value)) in members.iter().enumerate() {
                    member(out, name, value, depth + 1, nested - 1);
                    out.push_str(if i + 1 < members.len() { ",\n" } else { "\n" });
                }
                out.push_str(&format!("{indent}}}"));
            }
            None => out.push_str(&value.to_string()),
        }
    }
    let mut out = String::from("{\n");
    let members = document.as_object().unwrap();
    for (i, (name, value)) in members.iter().enumerate() {
        let nested = match name.as_str() {
            "paths" | "definitions" | "parameters" => 1,
            "components" => 2,
            _ => 0,
        };
        member(&mut out, name, value, 0, nested);
        out.push_str(if i + 1 < members.len() { ",\n" } else { "\n" });
    }
    out.push_str("}\n");
    out
}

fn gunzip(path: &Path) -> Vec<u8> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out = Vec::new();
    GzDecoder::new(file).read_to_end(&mut out).unwrap();
    out
}

/// Takes out every description. A property of that name has an object, not a text.
fn strip_descriptions(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| name != "description" || !value.is_string());
            members.values_mut().for_each(strip_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_descriptions),
        _ => {}
    }
}

/// Every file below `root`, relative to it.
fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path.strip_prefix(root).unwrap().to_owned())
            }
        }
    }
    found
}
