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

use facts::facts;
use flate2::read::GzDecoder;
use keelson::api::SCHEME;
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
    };
    Documents::new(&SCHEMES, &served, info).unwrap()
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

/// What differs between two objects whose members are named alike; only members of `ours` are looked at.
fn differences(what: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    for (name, value) in ours
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !is_foreign(name))
    {
        match theirs.get(name) {
            Some(other) if other == value => {}
            Some(other) => out.push(format!("{what} {name}\n   ours: {value}\n theirs: {other}")),
            None => out.push(format!("{what} {name} is not kube-apiserver's")),
        }
    }
}

/// These two belong to every group of the server, of which there are fewer here.
fn forget_groups_of_common_kinds(definitions: &mut Value) {
    for kind in ["DeleteOptions", "WatchEvent"] {
        let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
        definitions[&name]["x-kubernetes-group-version-kind"] = Value::Null;
    }
}

#[test]
fn v2_equals_that_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let mut theirs: Value = serde_json::from_slice(&gunzip(&facts.join("openapi/v2.json.gz"))).unwrap();
    let mut ours = stripped(built().v2());
    for document in [&mut ours, &mut theirs] {
        forget_groups_of_common_kinds(&mut document["definitions"]);
    }
    let mut found = Vec::new();
    for part in ["paths", "definitions", "parameters"] {
        differences(part, &ours[part], &theirs[part], &mut found);
    }
    for part in ["swagger", "info", "securityDefinitions", "security"] {
        assert_eq!(ours[part], theirs[part], "{part}");
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    assert_eq!(
        pending_paths(&ours, &theirs),
        pending_list(),
        "tests/data/openapi-pending.txt: take out what exists now"
    );
}

#[test]
fn v3_equals_that_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let documents = built();
    let mut found = Vec::new();
    for name in documents.v3_names().filter(|name| !is_foreign(name)) {
        let theirs: Value = serde_json::from_slice(&gunzip(&facts.join(format!("openapi/v3/{name}.json.gz")))).unwrap();
        let ours = stripped(documents.v3(name).unwrap());
        differences(&format!("{name}: path"), &ours["paths"], &theirs["paths"], &mut found);
        let schemas = |v: &Value| v["components"]["schemas"].clone();
        differences(
            &format!("{name}: schema"),
            &schemas(&ours),
            &schemas(&theirs),
            &mut found,
        );
        for part in ["openapi", "info"] {
            assert_eq!(ours[part], theirs[part], "{name} {part}");
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
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
    let names: Vec<String> = documents.v3_names().map(str::to_owned).collect();
    let all = names
        .iter()
        .filter_map(|name| documents.v3(name))
        .chain([documents.v2()]);
    for document in all {
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} leads nowhere");
        }
    }
}

/// The paths of kube-apiserver below resources that exist here, that do not exist here.
fn pending_paths(ours: &Value, theirs: &Value) -> BTreeSet<String> {
    let paths = |document: &Value| {
        document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<BTreeSet<_>>()
    };
    let ours = paths(ours);
    let objects: Vec<String> = ours
        .iter()
        .filter(|p| p.ends_with("/{name}") && !p.contains("/watch/"))
        .cloned()
        .collect();
    let below = |path: &String| objects.iter().any(|o| path.starts_with(&format!("{o}/")));
    paths(theirs).difference(&ours).filter(|p| below(p)).cloned().collect()
}

fn pending_list() -> BTreeSet<String> {
    include_str!("data/openapi-pending.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn checked_in_documents_are_fresh() {
    let documents = built();
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    files.insert("v2.json".into(), lines(&stripped(documents.v2())));
    for name in documents.v3_names() {
        let value = stripped(documents.v3(name).unwrap());
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
