//! Environment variables of a container, and the fields and amounts of a pod that they and files may show.

use keelson_api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector, ResourceFieldSelector,
};
use keelson_machinery::scheme::NameRule;
use keelson_machinery::validation::names::{self, NamePart};

use crate::faults::Faults;
use crate::names::{config_key, environment_variable};

/// Fields of a pod that a variable may show, sorted.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that a file may show, sorted.
pub const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Fields of a pod that are known in either place, beside those above.
const OTHER_FIELDS: [&str; 3] = ["spec.restartPolicy", "spec.schedulerName", "status.phase"];
/// Amounts of a container, sorted.
const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const BYTES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
const ONE_OF: &str = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
    `fileKeyRef`";
const MANY: &str = "may not have more than one field specified at a time";

/// Checks the variables of a container that are named one by one.
pub fn variables(f: &mut Faults<'_>, variables: &[EnvVar]) {
    f.each("env", variables, |f, variable| {
        if f.at("name").filled(&variable.name) {
            f.at("name").texts(&variable.name, environment_variable(&variable.name));
        }
        f.some("valueFrom", variable.value_from.as_deref(), |f, source| {
            value_from(f, source, !variable.value.is_empty());
        });
    });
}

fn value_from(f: &mut Faults<'_>, from: &EnvVarSource, has_value: bool) {
    f.some("fieldRef", from.field_ref.as_deref(), |f, field| {
        object_field(f, field, &VARIABLE_FIELDS);
    });
    f.some("resourceFieldRef", from.resource_field_ref.as_deref(), |f, field| {
        resource_field(f, field, false);
    });
    f.some("configMapKeyRef", from.config_map_key_ref.as_deref(), |f, key| {
        object_key(f, &key.local_object_reference.name, &key.key);
    });
    f.some("secretKeyRef", from.secret_key_ref.as_deref(), |f, key| {
        object_key(f, &key.local_object_reference.name, &key.key);
    });
    f.some("fileKeyRef", from.file_key_ref.as_deref(), file_key);
    let sources = [
        from.field_ref.is_some(),
        from.resource_field_ref.is_some(),
        from.config_map_key_ref.is_some(),
        from.secret_key_ref.is_some(),
        from.file_key_ref.is_some(),
    ];
    match sources.iter().filter(|is_there| **is_there).count() {
        0 => f.invalid("", ONE_OF),
        _ if has_value => f.invalid("", "may not be specified when `value` is not empty"),
        1 => {}
        _ => f.invalid("", MANY),
    }
}

/// A field of the pod, or a label or annotation of it (`metadata.labels['key']`).
pub fn object_field(f: &mut Faults<'_>, field: &ObjectFieldSelector, known: &[&str]) {
    let path = field.field_path.as_str();
    if !f.at("apiVersion").filled(&field.api_version) || !f.at("fieldPath").filled(path) {
        return;
    }
    let unconverted = |text: String| format!("error converting fieldPath: {text}");
    if field.api_version != "v1" {
        let text = unconverted(format!("unsupported pod version: {}", field.api_version));
        return f.at("fieldPath").invalid(path, text);
    }
    let subscript = path.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscript.filter(|(map, _)| !map.is_empty()) {
        Some(("metadata.annotations", key)) => f.qualified(&key.to_lowercase()),
        Some(("metadata.labels", key)) => f.qualified(key),
        Some(_) => {
            let text = unconverted(format!("field label does not support subscript: {path}"));
            f.at("fieldPath").invalid(path, text);
        }
        None => plain_field(&mut f.at("fieldPath"), path, known),
    }
}

fn plain_field(f: &mut Faults<'_>, path: &str, known: &[&str]) {
    let (read, is_old) = match path {
        "spec.host" => ("spec.nodeName", true),
        path => (path, false),
    };
    let lists: [&[&str]; 3] = [&VARIABLE_FIELDS, &VOLUME_FIELDS, &OTHER_FIELDS];
    if !is_old && !lists.iter().any(|list| list.contains(&path)) {
        let text = format!("error converting fieldPath: field label not supported: {path}");
        return f.invalid(path, text);
    }
    f.one_of(read, known);
}

/// An amount of a container. A file is of no container, so it names one (`in_volume`).
pub fn resource_field(f: &mut Faults<'_>, field: &ResourceFieldSelector, in_volume: bool) {
    let resource = field.resource.as_str();
    let is_of_pages = HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && field.container_name.is_empty() {
        f.at("containerName").required("");
    } else if f.at("resource").filled(resource) && !is_of_pages {
        f.at("resource").one_of(resource, &AMOUNTS);
    }
    let divisor = &field.divisor;
    if divisor.is_zero() {
        return;
    }
    let (named, known) = match resource.split_once('.').map(|(_, name)| name) {
        _ if is_of_pages => ("hugepages", BYTES),
        Some("cpu") if AMOUNTS.contains(&resource) => ("cpu", "1m and 1"),
        Some("memory") if AMOUNTS.contains(&resource) => ("memory", BYTES),
        Some("ephemeral-storage") if AMOUNTS.contains(&resource) => ("local ephemeral storage", BYTES),
        _ => return,
    };
    let is_known = match named {
        "cpu" => matches!(divisor.as_str(), "1m" | "1"),
        _ => known.split(", ").any(|one| one == divisor.as_str()),
    };
    if !is_known {
        let text = format!("only divisor's values {known} are supported with the {named} resource");
        f.at("divisor").invalid(resource, text);
    }
}

fn object_key(f: &mut Faults<'_>, object: &str, key: &str) {
    f.at("name").subdomain(object);
    if f.at("key").filled(key) {
        f.at("key").texts(key, config_key(key));
    }
}

fn file_key(f: &mut Faults<'_>, from: &FileKeySelector) {
    if f.at("key").filled(&from.key) {
        f.at("key").texts(&from.key, environment_variable(&from.key));
    }
    f.at("volumeName").filled_label(&from.volume_name);
    if f.at("path").filled(&from.path) {
        f.at("path").no_backsteps(&from.path);
    }
}

/// Checks the objects whose keys become variables of a container.
pub fn sources(f: &mut Faults<'_>, sources: &[EnvFromSource]) {
    let mut list = f.at("envFrom");
    for (place, from) in sources.iter().enumerate() {
        let mut item = list.index(place);
        if !from.prefix.is_empty() {
            item.at("prefix")
                .texts(&from.prefix, environment_variable(&from.prefix));
        }
        let map = from.config_map_ref.as_ref().map(|map| &map.local_object_reference.name);
        let secret = from
            .secret_ref
            .as_ref()
            .map(|secret| &secret.local_object_reference.name);
        item.some("configMapRef", map, |f, name| named_prefix(&mut f.at("name"), name));
        item.some("secretRef", secret, |f, name| named_prefix(&mut f.at("name"), name));
        match (map, secret) {
            (None, None) => list.invalid("", "must specify one of: `configMapRef` or `secretRef`"),
            (Some(_), Some(_)) => list.invalid("", MANY),
            _ => {}
        }
    }
}

/// A name that is checked as the start of one.
fn named_prefix(f: &mut Faults<'_>, name: &str) {
    if f.filled(name) {
        f.texts(name, names::check(NameRule::DnsSubdomain, name, NamePart::Prefix));
    }
}
