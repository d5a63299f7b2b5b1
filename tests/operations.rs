//! Every operation of OpenAPI v2 is that of kube-apiserver, also those of versions that are off by default.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod facts;

use std::collections::BTreeMap;
use std::sync::Arc;

use facts::facts;
use keelson::api::SCHEME;
use keelson_base::env::SystemClock;
use keelson_kube::KNOWN_VERSIONS;
use keelson_machinery::scheme::Scheme;
use keelson_server::discovery::{RuntimeConfig, Served};
use keelson_server::openapi::{Documents, Info};
use serde_json::{Value, json};

static SCHEMES: [&Scheme; 1] = [&SCHEME];
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

fn document() -> Value {
    let served = Served::new(&SCHEMES, &RuntimeConfig::parse(["api/all=true"]).unwrap());
    let info = Info {
        title: "Kubernetes".to_owned(),
        version: "1.36".to_owned(),
        issuer: true,
        known: KNOWN_VERSIONS,
    };
    let mut text = Vec::new();
    let documents = Documents::new(&SCHEMES, served.fixed(), info, Arc::new(SystemClock));
    documents.v2(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Every operation by path and method, in the form of the recorded table.
fn ours(document: &Value) -> BTreeMap<(String, String), Value> {
    let paths = document["paths"].as_object().unwrap();
    let mut all = BTreeMap::new();
    for (path, item) in paths {
        for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
            let key = (path.clone(), method.to_uppercase());
            all.insert(key, operation(document, item, &item[*method]));
        }
    }
    all
}

fn operation(document: &Value, item: &Value, operation: &Value) -> Value {
    let gvk = operation.get("x-kubernetes-group-version-kind");
    let schema = |response: &Value| match response.get("schema") {
        Some(schema) => schema.get("$ref").unwrap_or(&schema["type"]).clone(),
        None => "".into(),
    };
    let responses: serde_json::Map<String, Value> = operation["responses"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(code, response)| (code.clone(), definition(&schema(response)).into()))
        .collect();
    json!([
        operation["operationId"],
        operation.get("x-kubernetes-action"),
        gvk.map(|gvk| json!([gvk["group"], gvk["version"], gvk["kind"]])),
        parameters(document, item, operation),
        operation.get("consumes"),
        operation.get("produces"),
        responses,
    ])
}

fn definition(reference: &Value) -> String {
    let text = reference.as_str().unwrap();
    text.strip_prefix("#/definitions/").unwrap_or(text).to_owned()
}

/// `{name}` in the path, `limit:integer` in the query, `body:<definition>*` where required; sorted.
fn parameters(document: &Value, item: &Value, operation: &Value) -> Vec<String> {
    let lists = [item.get("parameters"), operation.get("parameters")];
    let all = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
    let mut found: Vec<String> = all
        .map(|parameter| {
            let parameter = match parameter["$ref"].as_str() {
                Some(target) => document.pointer(&target[1..]).unwrap(),
                None => parameter,
            };
            let name = parameter["name"].as_str().unwrap();
            match (parameter["in"].as_str().unwrap(), parameter["type"].as_str()) {
                ("path", _) => format!("{{{name}}}"),
                ("body", _) => {
                    let required = parameter["required"] == true;
                    let definition = definition(&parameter["schema"]["$ref"]);
                    format!("body:{definition}{}", if required { "*" } else { "" })
                }
                (_, Some("string")) => name.to_owned(),
                (_, ty) => format!("{name}:{}", ty.unwrap()),
            }
        })
        .collect();
    found.sort();
    found
}

/// The recorded table. CBOR, which was on when the versions off by default were recorded, is left out.
fn theirs(table: &Value) -> BTreeMap<(String, String), Value> {
    let lookup = |list: &str, index: &Value| index.as_u64().map(|i| table[list][i as usize].clone());
    let media = |index: &Value| {
        let mut types = lookup("mediaTable", index)?;
        let plain = |v: &Value| !v.as_str().is_some_and(|text| text.contains("cbor"));
        types.as_array_mut()?.retain(plain);
        Some(types)
    };
    let row = |row: &Value| {
        let key = [0, 1].map(|i| row[i].as_str().unwrap().to_owned());
        let mut parameters = lookup("paramTable", &row[5]).unwrap();
        parameters.as_array_mut().unwrap().sort_by_key(Value::to_string);
        let value = json!([
            row[2],
            row[3],
            row[4],
            parameters,
            media(&row[6]),
            media(&row[7]),
            row[8]
        ]);
        (key.into(), value)
    };
    table["routes"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn operations_are_those_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let table: Value = serde_json::from_slice(&std::fs::read(facts.join("resources.json")).unwrap()).unwrap();
    let theirs = theirs(&table);
    assert!(theirs.len() > 1000);
    let is_foreign = |path: &str| {
        let group = path.strip_prefix("/apis/").and_then(|rest| rest.split('/').next());
        group.is_some_and(|group| group.contains('.') && !group.ends_with(".k8s.io"))
    };
    let ours = ours(&document());
    let mut found = Vec::new();
    for (key, value) in ours.iter().filter(|((path, _), _)| !is_foreign(path)) {
        match theirs.get(key) {
            Some(other) if other == value => {}
            Some(other) => found.push(format!("{key:?}\n   ours: {value}\n theirs: {other}")),
            None => found.push(format!("{key:?} is not kube-apiserver's")),
        }
    }
    let missing = theirs.keys().filter(|key| !ours.contains_key(*key));
    found.extend(missing.map(|key| format!("{key:?} is missing")));
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
