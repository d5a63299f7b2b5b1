//! Recorded answers: what the packages of kube-apiserver v1.36.3 say of schemas and objects, one question a line.
//!
//! `KEELSON_STRUCTURAL` names another file of the same form. Where kube-apiserver walks over a map, the order of what
//! it says is chance, so causes are compared as sets.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::reflect::object::{Gvk, Object};
use crate::reflect::{Desc, Name};
use crate::structural::decl::Decl;
use crate::structural::{
    Compile, Definition, JsonSchema, OpenApi, OpenApiTexts, OpenApiVersion, Requirements, Subject, Validator, check,
    compile, rules,
};

/// A question and what kube-apiserver says.
struct Row(Json);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Cause {
    kind: String,
    field: String,
    body: String,
}

impl Row {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn causes(&self) -> Vec<Cause> {
        let causes = self.0["answer"]["causes"].as_array().into_iter().flatten();
        let text = |cause: &Json, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
        let causes = causes.map(|cause| Cause {
            kind: text(cause, "type"),
            field: text(cause, "field"),
            body: without_numbers(&text(cause, "body")),
        });
        causes.collect()
    }

    /// Warnings; or costs, in the order of rules; or definitions.
    fn warnings(&self) -> Vec<String> {
        if let Some(definitions) = self.0["answer"]["definitions"].as_array() {
            let definitions = definitions.iter().cloned().map(|mut definition| {
                without_texts(&mut definition);
                definition.to_string()
            });
            return definitions.collect();
        }
        if let Some(costs) = self.0["answer"]["costs"].as_array() {
            return costs.iter().map(ToString::to_string).collect();
        }
        let warnings = self.0["answer"]["warnings"].as_array().into_iter().flatten();
        warnings.filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    }
}

fn cause(error: &FieldError) -> Cause {
    Cause {
        kind: error.kind.reason().to_owned(),
        field: error.field.clone(),
        body: without_numbers(&error.body()),
    }
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items
}

/// The objects of a schema.
struct Kind {
    validator: Validator,
    desc: Desc,
}

impl Kind {
    fn of(schema: &Json, object: &Json) -> Kind {
        let text = |name: &str| object.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let gvk = Gvk::new(group, version, text("kind"));
        let schema = Arc::new(JsonSchema::parse(schema.to_string().as_bytes()).unwrap());
        let desc = compile(&Compile {
            gvk: gvk.clone(),
            schema: Some(&schema),
            // What is asked about has not been pruned.
            preserve_unknown_fields: true,
        });
        Kind {
            validator: Validator::new(schema, &gvk),
            desc: desc.unwrap(),
        }
    }

    fn read(&self, object: &Json) -> Box<dyn Object> {
        let mut read = self.desc.new_object();
        json::read(object.to_string().as_bytes(), read.as_reflect_mut()).unwrap();
        read
    }
}

/// What is said of an object, as the strategy of custom resources puts it together; metadata aside.
fn object(row: &Row) -> (Vec<Cause>, Vec<String>) {
    let kind = Kind::of(&row.0["schema"], &row.0["object"]);
    let status = row.0["status"] == true;
    let new = kind.read(&row.0["object"]);
    let old = row.0.get("old").map(|old| kind.read(old));
    let (new, old) = (new.as_reflect(), old.as_deref().map(|old| old.as_reflect()));
    let mut errors = ErrorList::new();
    match (status, old) {
        (true, Some(old)) => kind.validator.status(new, old, &mut errors),
        _ => kind.validator.values(new, old, &mut errors),
    }
    if !status {
        kind.validator.embedded(new, &mut errors);
    }
    kind.validator.unique(new, old, &mut errors);
    let mut warnings = Vec::new();
    kind.validator.rules(new, old, &mut errors, &mut warnings);
    (errors.iter().map(cause).collect(), warnings)
}

/// What the rules of a schema cost at most, and what is wrong with them.
fn costs(row: &Row) -> (Vec<Cause>, Vec<String>) {
    let schema = JsonSchema::parse(row.0["schema"].to_string().as_bytes()).unwrap();
    let decl = Decl::of(&schema, false).unwrap();
    let (mut causes, mut costs) = (Vec::new(), Vec::new());
    for rule in rules::compile(&schema, &decl) {
        costs.push(rule.max_cost.to_string());
        causes.extend(rule.error.map(|error| Cause {
            kind: "FieldValueInvalid".to_owned(),
            field: String::new(),
            body: without_numbers(&error),
        }));
    }
    (causes, costs)
}

/// The schema of the one version of a definition.
fn schema_of(definition: &Json) -> Option<JsonSchema> {
    let schema = definition["spec"]["versions"][0]["schema"].get("openAPIV3Schema")?;
    Some(JsonSchema::parse(schema.to_string().as_bytes()).unwrap())
}

/// What is wrong with the schema of a definition, which may take the place of another.
fn definition(row: &Row) -> (Vec<Cause>, Vec<String>) {
    let (new, old) = (&row.0["crd"], &row.0["oldcrd"]);
    let schema = |definition: &Json| definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    let (after, before) = (schema_of(new).unwrap(), schema_of(old));
    let before: Vec<&JsonSchema> = before.iter().collect();
    let schemas = |schemas| Definition {
        preserve_unknown_fields: false,
        schemas,
    };
    let errors = check(&Subject {
        schema: &after,
        path: Path::new("spec").child("validation").child("openAPIV3Schema"),
        has_status: new["spec"]["versions"][0]["subresources"]["status"].is_object(),
        unchanged: schema(new) == schema(old),
        requirements: &Requirements::of(&schemas(&[&after]), Some(&schemas(&before))),
    });
    (errors.iter().map(cause).collect(), Vec::new())
}

/// OpenAPI definitions without what is told to readers: those have words of their own.
fn without_texts(value: &mut Json) {
    match value {
        Json::Object(members) => {
            members.retain(|name, value| name != "description" || !value.is_string());
            members.values_mut().for_each(without_texts);
        }
        Json::Array(items) => items.iter_mut().for_each(without_texts),
        Json::Number(n) if n.is_f64() => *value = n.as_f64().unwrap_or_default().to_string().into(),
        _ => {}
    }
}

/// The definitions of the kinds of a definition, each as JSON.
fn openapi(row: &Row) -> (Vec<Cause>, Vec<String>) {
    let definition = &row.0["crd"]["spec"];
    let version = &definition["versions"][0];
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let gvk = Gvk::new(
        text(&definition["group"]),
        text(&version["name"]),
        text(&definition["names"]["kind"]),
    );
    let schema = version["schema"]["openAPIV3Schema"].to_string();
    let parsed = JsonSchema::parse(schema.as_bytes()).unwrap();
    let paths = version["selectableFields"].as_array().into_iter().flatten();
    let openapi = OpenApi {
        gvk: &gvk,
        list_kind: &text(&definition["names"]["listKind"]),
        plural: &text(&definition["names"]["plural"]),
        schema: Some((&parsed, schema.as_bytes())),
        preserve_unknown_fields: false,
        selectable_fields: &paths.map(|path| Name::new(text(&path["jsonPath"]))).collect::<Vec<_>>(),
        texts: &OpenApiTexts::default(),
    };
    let form = match row.0["v2"] == true {
        true => OpenApiVersion::V2,
        false => OpenApiVersion::V3,
    };
    let mut found: Json = serde_json::from_slice(&openapi.definitions(form)).unwrap();
    without_texts(&mut found);
    (
        Vec::new(),
        vec![
            found["com.example.g.v1.Thing"].to_string(),
            found["com.example.g.v1.ThingList"].to_string(),
        ],
    )
}

/// Names of types have a number that is chance.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("selfType");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn answers(row: &Row) -> (Vec<Cause>, Vec<String>) {
    match row.text("op") {
        "object" => object(row),
        "cost" => costs(row),
        "crd" => definition(row),
        "openapi" => openapi(row),
        other => panic!("no such question: {other}"),
    }
}

/// Compares all rows of a text; returns how many there were and those that differ.
fn differences(text: &str) -> (usize, Vec<String>) {
    let (mut rows, mut differ) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let row = Row(serde_json::from_str(line).unwrap());
        if row.0["answer"]["error"].is_string() {
            continue;
        }
        rows += 1;
        let (causes, warnings) = answers(&row);
        if sorted(causes.clone()) != sorted(row.causes()) || sorted(warnings.clone()) != sorted(row.warnings()) {
            let expected = row.causes();
            differ.push(format!(
                "{line}\nfound {causes:#?} {warnings:?}\nexpected {expected:#?}"
            ));
        }
    }
    (rows, differ)
}

#[test]
fn kube_apiserver_says_the_same() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/structural");
    let files = match std::env::var("KEELSON_STRUCTURAL") {
        Ok(file) => vec![file],
        Err(_) => ["objects", "rules", "expressions", "costs", "definitions", "openapi"]
            .iter()
            .map(|name| format!("{own}/{name}.jsonl"))
            .collect(),
    };
    for file in files {
        let (rows, differ) = differences(&std::fs::read_to_string(&file).unwrap());
        assert!(rows >= 100, "{file}");
        let shown = differ[..differ.len().min(90)].join("\n\n");
        assert!(differ.is_empty(), "{file}: {} of {rows}\n{shown}", differ.len());
    }
}
