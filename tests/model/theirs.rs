//! The facts as text, in the form of `ours.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::{NUMBER, PUBLISHED, Texts};

pub struct Definitions {
    pub all: Texts,
    /// Those that have no numbers: protobuf does not know them.
    pub unnumbered: BTreeSet<String>,
    /// Those of which only Go's side is known: OpenAPI does not know them.
    pub unpublished: BTreeSet<String>,
    /// Those that kube-apiserver publishes, by default or with everything switched on.
    pub served: BTreeSet<String>,
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn words(value: &Value) -> Vec<&str> {
    list(value).map(text).collect()
}

pub fn definitions(facts: &Path) -> Definitions {
    let files: Vec<Value> = std::fs::read_dir(facts.join("types"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| !p.ends_with("index.json") && !p.ends_with("special.json"))
        .map(|p| read(&p))
        .collect();
    let mut types = BTreeMap::new();
    for file in &files {
        for ty in list(&file["types"]) {
            types.insert(format!("{}.{}", text(&file["goPackage"]), text(&ty["name"])), ty);
        }
    }
    let mut out = Definitions {
        all: Texts::new(),
        unnumbered: BTreeSet::new(),
        unpublished: BTreeSet::new(),
        served: BTreeSet::new(),
    };
    for file in &files {
        for ty in list(&file["types"]) {
            let name = definition_name(file, ty);
            if matches!(text(&ty["openapiFrom"]), "default" | "alpha") {
                out.served.insert(name.clone());
            }
            if ty["proto"].is_null() {
                out.unnumbered.insert(name.clone());
            }
            // Of a stored version that shares messages with the served one the two sides name different types.
            let shares = name.contains(".apiextensions.v1beta1.");
            if shares || list(&ty["fields"]).all(|f| f["oa"].is_null()) {
                out.unpublished.insert(name.clone());
            }
            out.all.insert(name, definition(ty, &types));
        }
    }
    out
}

/// Name in OpenAPI; of what is not there the one that it would have.
fn definition_name(file: &Value, ty: &Value) -> String {
    if let Some(name) = ty["openapi"].as_str() {
        return name.to_owned();
    }
    let path = ty["proto"].as_str().map_or_else(
        || {
            let package = text(&file["goPackage"]).replace('/', ".").replace('-', "_");
            // The kind has another name than the type.
            let name = match text(&ty["name"]) {
                "Configuration" if package.ends_with(".resourcequota.v1") => "ResourceQuotaConfiguration",
                name => name,
            };
            format!("{package}.{name}")
        },
        str::to_owned,
    );
    format!("io.k8s.{}", path.trim_start_matches("k8s.io."))
}

fn definition(ty: &Value, types: &BTreeMap<String, &Value>) -> String {
    // A name for a type of another package has that one's fields.
    let fields = match (text(&ty["form"]), types.get(text(&ty["under"]))) {
        ("named", Some(under)) => &under["fields"],
        _ => &ty["fields"],
    };
    let mut out: String = list(fields).filter_map(|f| line(f, types)).collect();
    if let Some(map_type) = ty["mapType"].as_str() {
        out += &format!("map type {:?}\n", map_type);
    }
    if !ty["unions"].is_null() {
        out += &format!("unions {}\n", ty["unions"]);
    }
    out
}

fn line(field: &Value, types: &BTreeMap<String, &Value>) -> Option<String> {
    let go = text(&field["gotype"]);
    if field["protoOnly"] == true || go.ends_with("meta/v1.TypeMeta") {
        return None;
    }
    let number = field["n"].as_u64().unwrap_or_default();
    if field["inline"] == true {
        return Some(format!("inline{NUMBER}{number}\n"));
    }
    let mut out = field["json"].as_str()?.to_owned();
    let omit = text(&field["omit"]);
    let plain = is_struct(go, types);
    out += match (plain, omit) {
        (true, omit) if omit.contains("zero") => " unless zero",
        (true, _) | (false, "") => " always",
        (false, _) => " unless empty",
    };
    if field["ptr"] == true {
        out += " pointer";
    }
    out += &format!("{NUMBER}{number}{PUBLISHED}{}", text(&field["oa"]));
    for (key, word) in [("required", " required"), ("nullable", " nullable")] {
        if field[key] == true {
            out += word;
        }
    }
    if let Some(list_type) = field["listType"].as_str() {
        out += &format!(" list {list_type}");
    }
    if !field["listMapKeys"].is_null() {
        out += &format!(" keys {}", words(&field["listMapKeys"]).join(","));
    }
    if let Some(map_type) = field["mapType"].as_str() {
        out += &format!(" map {map_type}");
    }
    let strategies = text(&field["patchStrategy"]);
    for strategy in ["merge", "replace", "retainKeys"] {
        if strategies.split(',').any(|s| s == strategy) {
            out += &format!(" patch {strategy}");
        }
    }
    if let Some(key) = field["patchMergeKey"].as_str() {
        out += &format!(" by {key}");
    }
    if !field["default"].is_null() {
        out += &format!(" default {}", field["default"]);
    }
    for (word, key) in [("enum", "enum"), ("items", "itemEnum")] {
        let mut values = words(&field[key]);
        values.sort_unstable();
        if !values.is_empty() {
            out += &format!(" {word} {}", values.join(","));
        }
    }
    Some(out + "\n")
}

/// Whether a Go type is a struct, behind any names it has.
fn is_struct(go: &str, types: &BTreeMap<String, &Value>) -> bool {
    match types.get(go) {
        Some(ty) if ty["form"] == "named" => is_struct(text(&ty["under"]), types),
        Some(_) => true,
        None => false,
    }
}

pub fn kinds(facts: &Path) -> Texts {
    let resources = read(&facts.join("resources.json"));
    let columns = read(&facts.join("columns.json"));
    let selectors = read(&facts.join("fieldselectors.json"));
    let mut all = Texts::new();
    for group in list(&resources["groups"]) {
        for version in list(&group["versions"]) {
            let name = keelson_machinery::object::api_version(text(&group["group"]), text(&version[0]));
            let mut out = String::new();
            if !version[2].is_null() {
                out += &format!("priorities {} {}\n", version[2], version[3]);
            }
            all.insert(name, out + &format!("enabled {}\n", version[1]));
        }
    }
    let all_rows: Vec<&Value> = list(&resources["resources"]).collect();
    for row in all_rows.iter().filter(|r| r["subresource"].is_null()) {
        let name = keelson_machinery::object::api_version(text(&row["group"]), text(&row["version"]));
        let text = resource(row, &all_rows, &columns["resources"], &selectors);
        all.insert(format!("{name} {}", super::theirs::text(&row["kind"])), text);
    }
    all
}

fn same(a: &Value, b: &Value) -> bool {
    ["group", "version", "resource"].iter().all(|key| a[key] == b[key])
}

fn resource(row: &Value, rows: &[&Value], columns: &Value, selectors: &Value) -> String {
    let mut verbs = words(&row["verbs"]);
    verbs.sort_unstable();
    let mut out = format!(
        "{} {} namespaced {} enabled {}\n",
        text(&row["resource"]),
        text(&row["singular"]),
        row["namespaced"],
        row["default"]
    );
    out += &format!("verbs {}\n", verbs.join(","));
    out += &format!(
        "short {} categories {}\n",
        words(&row["shortNames"]).join(","),
        words(&row["categories"]).join(",")
    );
    let subresources = rows.iter().filter(|s| !s["subresource"].is_null() && same(s, row));
    let mut lines: Vec<String> = subresources.map(|s| subresource(s)).collect();
    lines.sort();
    out += &lines.concat();
    for column in list(columns).filter(|c| same(c, row)).flat_map(|c| list(&c["columns"])) {
        let [name, ty, format] = [0, 1, 2].map(|i| text(&column[i]));
        out += &format!("column {name} {ty} {format} {}\n", column[3]);
    }
    let fields = list(selectors)
        .filter(|s| same(s, row))
        .flat_map(|s| words(&s["fields"]));
    let mut fields: Vec<&str> = fields.filter(|f| !f.starts_with("metadata.")).collect();
    fields.sort_unstable();
    out + &format!("selects {}\n", fields.join(","))
}

fn subresource(row: &Value) -> String {
    let mut verbs = words(&row["verbs"]);
    verbs.sort_unstable();
    format!(
        "subresource {} {} {}\n",
        text(&row["subresource"]),
        text(&row["kind"]),
        verbs.join(",")
    )
}
