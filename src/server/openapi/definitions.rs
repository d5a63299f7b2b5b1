//! The definitions of a build: loading, what refers to what, and the form that OpenAPI v2 has them in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::ZlibDecoder;
use keelson_machinery::scheme::Scheme;
use serde_json::{Map, Value, json};

/// Prefix of references in OpenAPI v3.
pub(super) const V3_REF: &str = "#/components/schemas/";
/// Prefix of references in OpenAPI v2.
pub(super) const V2_REF: &str = "#/definitions/";
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/// The definitions of one scheme may be this large; those of all of Kubernetes take 2 MiB.
const MAX_BYTES: u64 = 64 << 20;

/// OpenAPI v3 schemas by name.
pub(super) type Definitions = BTreeMap<String, Value>;

/// The definitions of a scheme that cannot be read: a fault of the build.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    #[error("definitions of the scheme: {0}")]
    Inflate(#[from] std::io::Error),
    #[error("definitions of the scheme: {0}")]
    Json(#[from] serde_json::Error),
}

/// All definitions of `schemes`; the first scheme wins where two have one name.
pub(super) fn load(schemes: &[&'static Scheme]) -> Result<Definitions, DefinitionsError> {
    let mut all = Definitions::new();
    for scheme in schemes {
        let mut text = Vec::new();
        ZlibDecoder::new(scheme.definitions)
            .take(MAX_BYTES)
            .read_to_end(&mut text)?;
        let parsed: BTreeMap<String, Value> = serde_json::from_slice(&text)?;
        for (name, schema) in parsed {
            all.entry(name).or_insert(schema);
        }
    }
    Ok(all)
}

/// `roots` and every definition that they refer to, directly or not.
pub(super) fn reachable<'a>(
    definitions: &'a Definitions,
    roots: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut todo: Vec<&str> = roots.into_iter().collect();
    while let Some(name) = todo.pop() {
        let Some((name, schema)) = definitions.get_key_value(name) else {
            continue;
        };
        if found.insert(name.as_str()) {
            references(schema, &mut todo);
        }
    }
    found
}

fn references<'a>(schema: &'a Value, out: &mut Vec<&'a str>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                out.push(target.strip_prefix(V3_REF).unwrap_or(target));
            }
            fields.values().for_each(|v| references(v, out));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

/// The v2 form of a v3 schema: no defaults and no unions; a wrapped reference becomes the reference itself.
pub(super) fn to_v2(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (key, value) in fields {
        let value = match key.as_str() {
            "default" | "nullable" | "not" => continue,
            "anyOf" | "oneOf" => {
                out.insert("type".into(), "string".into());
                continue;
            }
            "allOf" => match reference(value) {
                Some(target) => {
                    out.insert("$ref".into(), target.into());
                    continue;
                }
                None => Value::Array(value.as_array().into_iter().flatten().map(to_v2).collect()),
            },
            "$ref" => value.as_str().map_or(Value::Null, |r| v2_reference(r).into()),
            "properties" => value.as_object().map_or(Value::Null, |p| {
                p.iter().map(|(name, schema)| (name.clone(), to_v2(schema))).collect()
            }),
            "items" | "additionalProperties" => to_v2(value),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if out.contains_key("$ref") {
        // Beside a reference, v2 takes nothing but extensions and a description.
        out.retain(|key, _| key == "$ref" || key == "description" || key.starts_with("x-"));
    }
    Value::Object(out)
}

/// The reference of an `allOf` that holds one reference and nothing else.
fn reference(all_of: &Value) -> Option<String> {
    match all_of.as_array()?.as_slice() {
        [one] => one.get("$ref")?.as_str().map(v2_reference),
        _ => None,
    }
}

fn v2_reference(target: &str) -> String {
    format!("{V2_REF}{}", target.strip_prefix(V3_REF).unwrap_or(target))
}

/// Names the group/versions that DeleteOptions and WatchEvent belong to: they are kinds of every one.
pub(super) fn stamp_common_kinds(definitions: &mut Definitions, group_versions: &BTreeSet<(&str, &str)>) {
    for kind in ["DeleteOptions", "WatchEvent"] {
        if let Some(Value::Object(schema)) = definitions.get_mut(&format!("{META}{kind}")) {
            let kinds: Vec<Value> = group_versions
                .iter()
                .map(|(group, version)| json!({"group": group, "kind": kind, "version": version}))
                .collect();
            schema.insert("x-kubernetes-group-version-kind".into(), kinds.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v2_form_of_schemas() {
        let cases = [
            (json!({"type": "string", "default": ""}), json!({"type": "string"})),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
                json!({"type": "string"}),
            ),
            (
                json!({"default": {}, "description": "d", "allOf": [{"$ref": "#/components/schemas/a.B"}]}),
                json!({"description": "d", "$ref": "#/definitions/a.B"}),
            ),
            (
                json!({"allOf": [{"$ref": "#/components/schemas/a.B"}], "x-kubernetes-patch-strategy": "replace"}),
                json!({"$ref": "#/definitions/a.B", "x-kubernetes-patch-strategy": "replace"}),
            ),
            (
                json!({"type": "array", "items": {"default": {}, "allOf": [{"$ref": "#/components/schemas/a.B"}]}}),
                json!({"type": "array", "items": {"$ref": "#/definitions/a.B"}}),
            ),
            (
                json!({"properties": {"default": {"type": "boolean", "default": false}}}),
                json!({"properties": {"default": {"type": "boolean"}}}),
            ),
        ];
        for (v3, v2) in cases {
            assert_eq!(to_v2(&v3), v2);
        }
    }

    #[test]
    fn reachability_follows_references_and_stops_at_cycles() {
        let definitions: Definitions = [
            ("a", json!({"items": {"$ref": "#/components/schemas/b"}})),
            ("b", json!({"allOf": [{"$ref": "#/components/schemas/a"}]})),
            ("c", json!({"type": "string"})),
        ]
        .map(|(name, schema)| (name.to_owned(), schema))
        .into();
        assert_eq!(reachable(&definitions, ["a"]), BTreeSet::from(["a", "b"]));
    }
}
