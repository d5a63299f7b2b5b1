//! Kinds of definition files as CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::ZlibDecoder;
use keelson_machinery::scheme::{ColumnDesc, KindDesc, Scheme, SubresourceDesc};
use serde_json::{Map, Value, json};

use super::schema::{Definitions, structural};

/// The definitions of one scheme may be this large.
const MAX_BYTES: u64 = 64 << 20;

/// Why there is no CustomResourceDefinition of a kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// There is no such kind.
    #[error("no definition file has a kind {0:?} that is stored; say KIND, PLURAL or PLURAL.GROUP")]
    Unknown(String),
    /// The name fits several kinds: which ones.
    #[error("{0:?} may be any of {1}: say which")]
    Ambiguous(String, String),
    /// The kind and its group, which no CustomResourceDefinition can have.
    #[error("{0} is of group {1:?}: CustomResourceDefinitions are of groups with a dot in their names")]
    NoDomain(String, String),
    /// What is wrong with the definitions of the program.
    #[error("the definitions of the program cannot be read: {0}")]
    Unreadable(String),
}

/// The CustomResourceDefinition of a kind, which is named by its kind, its plural, or its plural and group, and what it
/// does not say of the kind, a line each.
///
/// # Errors
/// There is no such kind, or it can't be defined so.
pub fn export(schemes: &[&'static Scheme], name: &str) -> Result<(Value, Vec<String>), ExportError> {
    let versions = versions(schemes, name)?;
    let Some((_, first)) = versions.first() else {
        return Err(ExportError::Unknown(name.to_owned()));
    };
    if !first.group.contains('.') {
        let (kind, group) = (first.kind.to_string(), first.group.to_string());
        return Err(ExportError::NoDomain(kind, group));
    }
    let mut lost = Vec::new();
    let mut described = Vec::new();
    // Of a kind that is stored as another one no version is.
    let stored = versions.iter().position(|(_, kind)| kind.storage).unwrap_or_default();
    for (index, (scheme, kind)) in versions.iter().enumerate() {
        let mut version = version(scheme, kind, &mut lost)?;
        version["storage"] = (index == stored).into();
        described.push(version);
    }
    tell_selectable_fields_apart(&mut described, &mut lost);
    if versions.len() > 1 {
        lost.push("conversions: versions of a CustomResourceDefinition differ in nothing but their schemas".to_owned());
    }
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", first.plural, first.group)},
        "spec": {
            "group": first.group.as_str(),
            "names": names(first),
            "scope": if first.namespaced { "Namespaced" } else { "Cluster" },
            "versions": described,
        },
    });
    Ok((definition, lost))
}

/// All versions of the one kind that is meant.
fn versions<'a>(schemes: &[&'a Scheme], name: &str) -> Result<Vec<(&'a Scheme, &'a KindDesc)>, ExportError> {
    let mut found: BTreeMap<String, Vec<(&Scheme, &KindDesc)>> = BTreeMap::new();
    for scheme in schemes {
        let kinds = scheme
            .groups
            .iter()
            .flat_map(|group| group.versions)
            .flat_map(|version| version.kinds);
        for kind in kinds.filter(|kind| !kind.unstored) {
            let whole = format!("{}.{}", kind.plural, kind.group);
            let is_meant = [kind.kind.as_str(), kind.plural.as_str(), &whole].contains(&name);
            if is_meant {
                found.entry(whole).or_default().push((scheme, kind));
            }
        }
    }
    if found.len() > 1 {
        let all = found.into_keys().collect::<Vec<_>>().join(", ");
        return Err(ExportError::Ambiguous(name.to_owned(), all));
    }
    let found = found.into_values().next();
    found.ok_or_else(|| ExportError::Unknown(name.to_owned()))
}

fn names(kind: &KindDesc) -> Value {
    let mut names = json!({
        "plural": kind.plural.as_str(),
        "singular": kind.singular.as_str(),
        "kind": kind.kind.as_str(),
        "listKind": kind.list_kind.as_str(),
    });
    let lists = [("shortNames", &kind.short_names), ("categories", &kind.categories)];
    for (name, list) in lists {
        let list: Vec<&str> = list.iter().collect();
        if !list.is_empty() {
            names[name] = list.into();
        }
    }
    names
}

fn version(scheme: &Scheme, kind: &KindDesc, lost: &mut Vec<String>) -> Result<Value, ExportError> {
    let definitions = definitions(scheme)?;
    let schema = structural(&definitions, kind.message.name.as_str(), lost);
    let mut out = json!({
        "name": kind.version.as_str(),
        "served": true,
        "storage": false,
        "schema": {"openAPIV3Schema": schema},
    });
    if !kind.deprecation.is_empty() {
        out["deprecated"] = true.into();
        out["deprecationWarning"] = kind.deprecation.as_str().into();
    }
    let subresources = subresources(kind, lost);
    if !subresources.is_empty() {
        out["subresources"] = Value::Object(subresources);
    }
    let columns: Vec<Value> = kind
        .columns
        .iter()
        .filter_map(|shown| column(kind, shown, lost))
        .collect();
    if !columns.is_empty() {
        out["additionalPrinterColumns"] = columns.into();
    }
    let fields: Vec<Value> = kind
        .selectable_fields
        .iter()
        .filter_map(|field| selectable(field, lost))
        .collect();
    if !fields.is_empty() {
        out["selectableFields"] = fields.into();
    }
    Ok(out)
}

fn definitions(scheme: &Scheme) -> Result<Definitions, ExportError> {
    let unreadable = |error: &dyn std::fmt::Display| ExportError::Unreadable(error.to_string());
    let mut text = Vec::new();
    let read = ZlibDecoder::new(scheme.definitions)
        .take(MAX_BYTES)
        .read_to_end(&mut text);
    read.map_err(|error| unreadable(&error))?;
    serde_json::from_slice(&text).map_err(|error| unreadable(&error))
}

fn subresources(kind: &KindDesc, lost: &mut Vec<String>) -> Map<String, Value> {
    let mut out = Map::new();
    for sub in kind.subresources.iter() {
        let value = match sub.name.as_str() {
            "status" => json!({}),
            "scale" if !sub.spec_replicas_path.is_empty() => scale(sub),
            other => {
                lost.push(format!("{}: the subresource {other}", kind.version));
                continue;
            }
        };
        out.insert(sub.name.to_string(), value);
    }
    out
}

fn scale(sub: &SubresourceDesc) -> Value {
    let mut out = json!({
        "specReplicasPath": sub.spec_replicas_path.as_str(),
        "statusReplicasPath": sub.status_replicas_path.as_str(),
    });
    if !sub.label_selector_path.is_empty() {
        out["labelSelectorPath"] = sub.label_selector_path.as_str().into();
    }
    out
}

/// Every table has the name.
fn column(kind: &KindDesc, shown: &ColumnDesc, lost: &mut Vec<String>) -> Option<Value> {
    if shown.path == ".metadata.name" || shown.function == "name" {
        return None;
    }
    let path = match (shown.path.as_str(), shown.function.as_str()) {
        (_, _) if shown.hidden => "",
        ("", "age" | "created") => ".metadata.creationTimestamp",
        (path, _) => path,
    };
    if path.is_empty() {
        lost.push(format!("{}: the column {}", kind.version, shown.name));
        return None;
    }
    let ty = if path == ".metadata.creationTimestamp" {
        "date"
    } else {
        shown.ty.as_str()
    };
    let mut out = json!({"name": shown.name.as_str(), "type": ty, "jsonPath": path});
    for (name, text) in [("format", &shown.format), ("description", &shown.description)] {
        if !text.is_empty() {
            out[name] = text.as_str().into();
        }
    }
    if shown.priority != 0 {
        out["priority"] = shown.priority.into();
    }
    Some(out)
}

/// A label that is no path of its own can't be said.
/// kube-apiserver takes selectable fields that all versions have for those of the whole definition, and refuses them
/// there unless the schemas are the same, too: then the last version, which is the least, goes without.
fn tell_selectable_fields_apart(versions: &mut [Value], lost: &mut Vec<String>) {
    let Some((last, others)) = versions.split_last_mut() else {
        return;
    };
    let is_same = |what: &str| others.iter().all(|other| other[what] == last[what]);
    if others.is_empty() || last["selectableFields"].is_null() || !is_same("selectableFields") || is_same("schema") {
        return;
    }
    lost.push(format!(
        "selectable fields of version {}",
        last["name"].as_str().unwrap_or_default()
    ));
    if let Some(members) = last.as_object_mut() {
        members.remove("selectableFields");
    }
}

fn selectable(field: &str, lost: &mut Vec<String>) -> Option<Value> {
    if field.contains('=') || field.starts_with("metadata.") {
        lost.push(format!("selectable fields: {field}"));
        return None;
    }
    Some(json!({"jsonPath": format!(".{field}")}))
}
