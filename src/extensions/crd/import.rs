//! Definition files of CustomResourceDefinitions.

mod field;
mod message;
mod names;
mod text;

use keelson_registry::maturity_order;
use serde_json::Value;

use message::{Messages, Place};
use text::{Message, list, option, quoted, rules};

/// A file that is to be written, and what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionFile {
    /// Below the folder of definitions: `example.com/v1/widget.proto`.
    pub path: String,
    /// In the syntax of protobuf.
    pub text: String,
}

/// Why there is no definition file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is of another kind or version.
    #[error("this is no CustomResourceDefinition of apiextensions.k8s.io/v1")]
    NoDefinition,
    /// What there is none of.
    #[error("the CustomResourceDefinition has no {0}")]
    Missing(&'static str),
}

/// The definition files of a CustomResourceDefinition, one for each version, and what they do not say of it, a line
/// each.
///
/// # Errors
/// It is none.
pub fn import(definition: &Value) -> Result<(Vec<DefinitionFile>, Vec<String>), ImportError> {
    if definition["kind"] != "CustomResourceDefinition" || definition["apiVersion"] != "apiextensions.k8s.io/v1" {
        return Err(ImportError::NoDefinition);
    }
    let spec = &definition["spec"];
    let mut versions: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    versions.sort_by(|a, b| maturity_order(&name(a), &name(b)));
    let (mut files, mut lost) = (Vec::new(), Vec::new());
    for (rank, version) in (1..).zip(&versions) {
        files.push(file(spec, version, rank, &mut lost)?);
    }
    if files.is_empty() {
        return Err(ImportError::Missing("versions"));
    }
    if spec["conversion"]["strategy"] == "Webhook" {
        lost.push("the webhook that converts: write `conversion`, and name what differs".to_owned());
    }
    Ok((files, lost))
}

fn file(spec: &Value, version: &Value, rank: i64, lost: &mut Vec<String>) -> Result<DefinitionFile, ImportError> {
    let text = |value: &'_ Value, what| match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(ImportError::Missing(what)),
    };
    let group = text(&spec["group"], "group")?;
    let name = text(&version["name"], "name of a version")?;
    let kind = text(&spec["names"]["kind"], "kind")?;
    let plural = text(&spec["names"]["plural"], "plural")?;
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut messages = Messages::new(lost);
    messages.kind(&kind, schema, Place::root(&name));
    let (mut messages, imports) = messages.finish();
    if let Some(first) = messages.first_mut() {
        first.options.push(kind_option(spec, version, &kind, &plural));
    }
    let mut out = format!("syntax = \"proto3\";\npackage {};\n\n", names::package(&group, &name));
    for import in imports {
        out.push_str(&format!("import \"{import}\";\n"));
    }
    let served = if version["served"] == false {
        ", unserved: true"
    } else {
        ""
    };
    out.push_str(&format!(
        "\noption (keelson.group_version) = {{group: {}, version: {}, group_priority: 1000, version_priority: {}{served}}};\n",
        quoted(&group),
        quoted(&name),
        rank * 10,
    ));
    for message in &messages {
        out.push('\n');
        out.push_str(&message.to_string());
    }
    Ok(DefinitionFile {
        path: format!("{group}/{name}/{}.proto", kind.to_lowercase()),
        text: out,
    })
}

/// `option (keelson.kind) = {…};`
fn kind_option(spec: &Value, version: &Value, kind: &str, plural: &str) -> String {
    let names = &spec["names"];
    let mut options = vec![option("plural", quoted(plural))];
    let singular = names["singular"].as_str().unwrap_or_default();
    if !singular.is_empty() && singular != kind.to_lowercase() {
        options.push(option("singular", quoted(singular)));
    }
    let list_kind = names["listKind"].as_str().unwrap_or_default();
    if !list_kind.is_empty() && list_kind != format!("{kind}List") {
        options.push(option("list_kind", quoted(list_kind)));
    }
    for (name, given) in [
        ("short_names", &names["shortNames"]),
        ("categories", &names["categories"]),
    ] {
        options.extend(list(name, given));
    }
    if spec["scope"] == "Cluster" {
        options.push(option("scope", "CLUSTER"));
    }
    if spec["versions"].as_array().is_some_and(|versions| versions.len() > 1) && version["storage"] == true {
        options.push(option("storage", "true"));
    }
    // As the API extensions server stores and counts.
    options.extend(["stored_as_json", "generation", "conditional_update"].map(|name| option(name, "true")));
    if version["deprecated"] == true {
        let default = format!(
            "{}/{} {kind} is deprecated",
            plain(&spec["group"]),
            plain(&version["name"])
        );
        let warning = version["deprecationWarning"].as_str().unwrap_or(&default);
        options.push(option("deprecation", quoted(warning)));
    }
    options.extend(subresources(&version["subresources"]));
    let columns = version["additionalPrinterColumns"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    options.extend(columns.iter().map(column));
    let shows_age = |column: &Value| column["name"] == "Age" || column["jsonPath"] == ".metadata.creationTimestamp";
    if !columns.is_empty() && !columns.iter().any(shows_age) {
        options.push(option("no_age", "true"));
    }
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    let fields: Vec<Value> = fields
        .map(|field| plain(&field["jsonPath"]).trim_start_matches('.').into())
        .collect();
    options.extend(list("selectable_fields", &fields.into()));
    options.extend(rules(&version["schema"]["openAPIV3Schema"]));
    Message::option_block("keelson.kind", &options)
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn subresources(given: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if given["status"].is_object() {
        out.push(option("subresources", "{name: \"status\"}"));
    }
    if given["scale"].is_object() {
        let paths = [
            ("spec_replicas_path", "specReplicasPath"),
            ("status_replicas_path", "statusReplicasPath"),
            ("label_selector_path", "labelSelectorPath"),
        ];
        let paths = paths.into_iter().filter_map(|(name, json)| {
            let path = given["scale"][json].as_str().filter(|path| !path.is_empty())?;
            Some(format!(", {}", option(name, quoted(path))))
        });
        out.push(option(
            "subresources",
            format!("{{name: \"scale\"{}}}", paths.collect::<String>()),
        ));
    }
    out
}

fn column(given: &Value) -> String {
    let texts = [
        ("name", "name"),
        ("type", "type"),
        ("path", "jsonPath"),
        ("format", "format"),
        ("description", "description"),
    ];
    let texts = texts.into_iter().filter_map(|(name, json)| {
        let text = given[json].as_str().filter(|text| !text.is_empty())?;
        Some(option(name, quoted(text)))
    });
    let priority = given["priority"].as_i64().filter(|priority| *priority != 0);
    let priority = priority.map(|priority| option("priority", priority.to_string()));
    let all: Vec<String> = texts.chain(priority).collect();
    option("columns", format!("{{{}}}", all.join(", ")))
}
