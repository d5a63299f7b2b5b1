//! The definitions of a build: loading, what refers to what, and the form that OpenAPI v2 has them in.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::ZlibDecoder;
use keelson_machinery::scheme::Scheme;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Prefix of references in OpenAPI v3.
pub(super) const V3_REF: &str = "#/components/schemas/";
/// Prefix of references in OpenAPI v2.
pub(super) const V2_REF: &str = "#/definitions/";
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/// The definitions of one scheme may be this large; those of all of Kubernetes take 2 MiB.
const MAX_BYTES: u64 = 64 << 20;

/// OpenAPI v3 schemas by name, each as its JSON text: parsed, all of them would take ten times the space.
pub(super) type Definitions = BTreeMap<String, Box<RawValue>>;
/// Group and version.
pub(super) type GroupVersion<'a> = (&'a str, &'a str);

/// The definitions of a scheme that cannot be read: a fault of the build.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    #[error("definitions of the scheme: {0}")]
    Inflate(#[from] std::io::Error),
    #[error("definitions of the scheme: {0}")]
    Json(#[from] serde_json::Error),
}

/// The definitions of a build. They are read when one is asked for; kept is what documents of kinds that are made at
/// run time refer to, so that such a kind costs its own definitions alone.
pub(super) struct BuildDefinitions {
    schemes: Vec<&'static Scheme>,
    common: OnceLock<Definitions>,
}

/// Looks for definitions, those of the build among them.
pub(super) struct Lookup<'b> {
    build: &'b BuildDefinitions,
    /// Read when the common ones do not do.
    all: OnceCell<Definitions>,
}

impl BuildDefinitions {
    pub(super) fn new(schemes: &[&'static Scheme]) -> BuildDefinitions {
        BuildDefinitions {
            schemes: schemes.to_vec(),
            common: OnceLock::new(),
        }
    }

    pub(super) fn lookup(&self) -> Lookup<'_> {
        Lookup {
            build: self,
            all: OnceCell::new(),
        }
    }

    /// All of them; the first scheme wins where two have one name.
    fn load(&self) -> Result<Definitions, DefinitionsError> {
        let mut all = Definitions::new();
        for scheme in &self.schemes {
            for (name, schema) in inflated(scheme.definitions)? {
                all.entry(name).or_insert(schema);
            }
        }
        let common = all.keys().filter(|name| is_common(name)).map(String::as_str);
        let (common, _) = closure(common, [&all]);
        self.common.get_or_init(|| copied(common));
        Ok(all)
    }
}

impl Lookup<'_> {
    /// The definitions of these names and every one that they refer to, directly or not, `own` ones first.
    pub(super) fn closure<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str> + Clone,
        own: &Definitions,
    ) -> Result<Definitions, DefinitionsError> {
        if let Some(common) = self.build.common.get() {
            let (found, missing) = closure(names.clone(), [own, common]);
            if !missing {
                return Ok(copied(found));
            }
        }
        let all = match self.all.get() {
            Some(all) => all,
            None => {
                let all = self.build.load()?;
                self.all.get_or_init(|| all)
            }
        };
        Ok(copied(closure(names, [own, all]).0))
    }
}

/// What kinds of any group refer to.
fn is_common(name: &str) -> bool {
    name.starts_with(META) || name == "io.k8s.api.autoscaling.v1.Scale"
}

/// Reads definitions in the form of [`Scheme::definitions`].
fn inflated(bytes: &[u8]) -> Result<Definitions, DefinitionsError> {
    let mut text = Vec::new();
    ZlibDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

type Found<'a> = BTreeMap<&'a str, &'a RawValue>;

fn copied(found: Found<'_>) -> Definitions {
    let copy = |(name, schema): (&str, &RawValue)| (name.to_owned(), schema.to_owned());
    found.into_iter().map(copy).collect()
}

/// `roots` and every definition that they refer to, directly or not, of the first that has it; and whether one is
/// missing.
fn closure<'a, 'n: 'a, const N: usize>(
    roots: impl IntoIterator<Item = &'n str>,
    among: [&'a Definitions; N],
) -> (Found<'a>, bool) {
    let (mut found, mut missing) = (Found::new(), false);
    let mut todo: Vec<&str> = roots.into_iter().collect();
    while let Some(name) = todo.pop() {
        let Some((name, schema)) = among.iter().find_map(|definitions| definitions.get_key_value(name)) else {
            missing = true;
            continue;
        };
        if found.insert(name.as_str(), &**schema).is_none() {
            references(schema, &mut todo);
        }
    }
    (found, missing)
}

/// Names of the definitions that a schema refers to. The text has no spaces between tokens, and a quote within a string
/// is escaped, so nothing but a reference looks like one.
fn references<'a>(schema: &'a RawValue, out: &mut Vec<&'a str>) {
    const KEY: &str = "\"$ref\":\"";
    let mut rest = schema.get();
    while let Some((_, after)) = rest.split_once(KEY) {
        let Some((target, after)) = after.split_once('"') else {
            return;
        };
        let name = [V3_REF, V2_REF].iter().find_map(|prefix| target.strip_prefix(prefix));
        out.push(name.unwrap_or(target));
        rest = after;
    }
}

/// The schema of definition `name` with the group/versions of the kinds that belong to all of them.
pub(super) fn parsed(name: &str, schema: &RawValue, kinds: &BTreeSet<GroupVersion<'_>>) -> serde_json::Result<Value> {
    let mut value: Value = serde_json::from_str(schema.get())?;
    if let (Some(kind), Value::Object(members)) = (common_kind(name), &mut value) {
        let kinds: Vec<Value> = kinds
            .iter()
            .map(|(group, version)| json!({"group": group, "kind": kind, "version": version}))
            .collect();
        members.insert("x-kubernetes-group-version-kind".into(), kinds.into());
    }
    Ok(value)
}

/// The kind of definition `name`, if it is one that every group/version has.
pub(super) fn common_kind(name: &str) -> Option<&'static str> {
    let kind = name.strip_prefix(META)?;
    ["DeleteOptions", "WatchEvent"].into_iter().find(|k| *k == kind)
}

/// The v2 form of a v3 schema: no defaults and no unions; a wrapped reference becomes the reference itself.
pub(super) fn to_v2(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    let union = fields.contains_key("anyOf") || fields.contains_key("oneOf");
    for (key, value) in fields {
        if union && key != "description" {
            out.entry("type").or_insert_with(|| "string".into());
        }
        let value = match key.as_str() {
            "default" | "nullable" | "not" | "anyOf" | "oneOf" => continue,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v2_form_of_schemas() {
        let cases = [
            (json!({"type": "string", "default": ""}), json!({"type": "string"})),
            (
                json!({"description": "d", "format": "f", "oneOf": [{"type": "string"}, {"type": "number"}]}),
                json!({"description": "d", "type": "string", "format": "f"}),
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
            // As text: the order of keys counts.
            assert_eq!(to_v2(&v3).to_string(), v2.to_string());
        }
    }

    #[test]
    fn reachability_follows_references_and_stops_at_cycles() {
        let definitions: Definitions = [
            ("a", json!({"items": {"$ref": "#/components/schemas/b"}})),
            ("b", json!({"allOf": [{"$ref": "#/components/schemas/a"}]})),
            ("c", json!({"description": "like \"$ref\":\"#/components/schemas/d\""})),
            ("d", json!({"type": "string"})),
        ]
        .map(|(name, schema)| (name.to_owned(), serde_json::value::to_raw_value(&schema).unwrap()))
        .into();
        let reachable = |roots: &[&'static str]| {
            let (found, missing) = closure(roots.iter().copied(), [&definitions]);
            (found.into_keys().collect::<Vec<_>>(), missing)
        };
        assert_eq!(reachable(&["a"]), (vec!["a", "b"], false));
        assert_eq!(reachable(&["c", "absent"]), (vec!["c"], true));
    }
}
