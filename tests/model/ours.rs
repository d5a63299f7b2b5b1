//! The generated tables as text.

use std::collections::BTreeMap;
use std::io::Read;

use keelson_machinery::reflect::{FieldDesc, Flags, ListType, MessageDesc, Patch, Type};
use keelson_machinery::scheme::{KindDesc, Names, Scheme, SubresourceDesc, VersionDesc};
use serde_json::Value;

use crate::{NUMBER, PUBLISHED, Texts};

/// Definitions as OpenAPI has them, by name.
pub fn schemas() -> BTreeMap<String, Value> {
    let mut text = Vec::new();
    let mut reader = flate2::read::ZlibDecoder::new(keelson::api::SCHEME.definitions);
    reader.read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Every message that a kind of the server leads to.
fn messages() -> BTreeMap<&'static str, &'static MessageDesc> {
    let mut all = BTreeMap::new();
    let scheme: &Scheme = &keelson::api::SCHEME;
    let kinds = scheme.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
    let roots = kinds.map(|k| &k.message).chain(scheme.types.iter().map(|t| &t.message));
    let mut queue: Vec<&'static MessageDesc> = roots.map(|desc| &**desc).collect();
    while let Some(message) = queue.pop() {
        if all.insert(message.name.as_str(), message).is_none() {
            queue.extend(message.fields.iter().filter_map(|f| inner(&f.ty)));
        }
    }
    all
}

fn inner(ty: &Type) -> Option<&MessageDesc> {
    ty.message().map(|desc| &**desc)
}

pub fn definitions() -> Texts {
    let schemas = schemas();
    let of = |(name, message): (&&str, &&'static MessageDesc)| {
        let schema = schemas.get(*name).unwrap_or(&Value::Null);
        ((*name).to_owned(), definition(message, schema))
    };
    messages().iter().map(of).collect()
}

fn definition(message: &MessageDesc, schema: &Value) -> String {
    let mut out = String::new();
    for field in &message.fields {
        out += &line(field, &schema["properties"][field.json.as_str()]);
    }
    for (name, key) in [("map type", "x-kubernetes-map-type"), ("unions", "x-kubernetes-unions")] {
        if !schema[key].is_null() {
            out += &format!("{name} {}\n", schema[key]);
        }
    }
    out
}

fn line(field: &FieldDesc, schema: &Value) -> String {
    let flags = field.flags;
    let mut out = field.json.to_string();
    if flags.has(Flags::INLINE) {
        return format!("inline{NUMBER}{}\n", field.number);
    }
    let plain = matches!(field.ty, Type::Message(_) | Type::Leaf(_)) && !flags.has(Flags::OPTIONAL);
    out += match (plain, flags.has(Flags::OMIT_ZERO), flags.has(Flags::ALWAYS)) {
        (true, true, _) => " unless zero",
        (true, false, _) | (false, _, true) => " always",
        (false, _, false) => " unless empty",
    };
    // A list that may be empty without being absent is none: Go's tells the two apart by itself.
    if flags.has(Flags::OPTIONAL) && !matches!(field.ty, Type::List(_)) {
        out += " pointer";
    }
    out += &format!("{NUMBER}{}{PUBLISHED}{}", field.number, form(schema));
    for (flag, word) in [(Flags::REQUIRED, " required"), (Flags::NULLABLE, " nullable")] {
        if flags.has(flag) {
            out += word;
        }
    }
    out += match field.list {
        ListType::Unset => "",
        ListType::Atomic => " list atomic",
        ListType::Set => " list set",
        ListType::Map => " list map",
    };
    if !field.map_keys().is_empty() {
        out += &format!(" keys {}", field.map_keys().to_vec().join(","));
    }
    if let Some(map_type) = schema["x-kubernetes-map-type"].as_str() {
        out += &format!(" map {map_type}");
    }
    let strategies = [
        (Patch::MERGE, " patch merge"),
        (Patch::REPLACE, " patch replace"),
        (Patch::RETAIN_KEYS, " patch retainKeys"),
    ];
    for (_, word) in strategies.into_iter().filter(|(p, _)| field.patch.has(*p)) {
        out += word;
    }
    if !field.merge_key().is_empty() {
        out += &format!(" by {}", field.merge_key());
    }
    if !schema["default"].is_null() {
        out += &format!(" default {}", schema["default"]);
    }
    for (word, values) in [("enum", &field.rules.enum_values), ("items", &field.rules.item_enum)] {
        let mut values = values.to_vec();
        values.sort_unstable();
        if !values.is_empty() {
            out += &format!(" {word} {}", values.join(","));
        }
    }
    out + "\n"
}

/// `string`, `integer:int32`, `array<ref:io.k8s.…>`, `map<string>`.
fn form(schema: &Value) -> String {
    let target = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(target) = target {
        return format!("ref:{}", target.rsplit('/').next().unwrap_or_default());
    }
    let ty = schema["type"].as_str().unwrap_or("any");
    match (ty, schema["format"].as_str()) {
        ("array", _) => format!("array<{}>", form(&schema["items"])),
        ("object", _) if schema["additionalProperties"].is_object() => {
            format!("map<{}>", form(&schema["additionalProperties"]))
        }
        (ty, Some(format)) => format!("{ty}:{format}"),
        (ty, None) => ty.to_owned(),
    }
}

/// Versions and kinds that may be served.
pub fn kinds() -> Texts {
    let mut all = Texts::new();
    for group in keelson::api::SCHEME.groups {
        for version in group.versions.iter().filter(|v| v.served) {
            let name = keelson_machinery::object::api_version(group.name, version.version);
            all.insert(name.clone(), priorities(group.name, group.priority, version));
            for kind in version.kinds {
                all.insert(format!("{name} {}", kind.kind), kind_text(kind, version.enabled));
            }
        }
    }
    all
}

fn priorities(group: &str, priority: i32, version: &VersionDesc) -> String {
    // The group of APIService has no APIService, hence no priorities that could be compared.
    if group == "apiregistration.k8s.io" {
        return format!("enabled {}\n", version.enabled);
    }
    format!(
        "priorities {priority} {}\nenabled {}\n",
        version.priority, version.enabled
    )
}

fn kind_text(kind: &KindDesc, enabled: bool) -> String {
    let sorted = |list: &Names| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list.join(",")
    };
    let mut out = format!(
        "{} {} namespaced {} enabled {enabled}\n",
        kind.plural, kind.singular, kind.namespaced
    );
    out += &format!("verbs {}\n", sorted(&kind.verbs));
    out += &format!(
        "short {} categories {}\n",
        kind.short_names.to_vec().join(","),
        kind.categories.to_vec().join(",")
    );
    let mut subresources: Vec<String> = kind.subresources.iter().map(|s| subresource(kind, s)).collect();
    subresources.sort();
    out += &subresources.concat();
    // A Table does not describe the hidden ones.
    for column in kind.columns.iter().filter(|c| !c.hidden) {
        out += &format!(
            "column {} {} {} {}\n",
            column.name, column.ty, column.format, column.priority
        );
    }
    // A label may stand before the path that gives its value.
    let mut fields = kind.selectable_fields.to_vec();
    fields
        .iter_mut()
        .for_each(|f| *f = f.split('=').next().unwrap_or_default());
    fields.sort_unstable();
    out + &format!("selects {}\n", fields.join(","))
}

fn subresource(kind: &KindDesc, s: &SubresourceDesc) -> String {
    let mut verbs = s.verbs.to_vec();
    verbs.sort_unstable();
    let name = if s.kind.is_empty() { &kind.kind } else { &s.kind };
    format!("subresource {} {name} {}\n", s.name, verbs.join(","))
}
