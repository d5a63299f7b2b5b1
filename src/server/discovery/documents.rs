//! The documents of discovery as JSON, in the forms and key orders of kube-apiserver.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelson_machinery::object::api_version;
use keelson_machinery::scheme::{KindDesc, Names, SubresourceDesc};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Served, ServedGroup, ServedKind, ServedVersion};

/// `/api`: APIVersions. `address` is where clients outside the cluster reach the server, `host:port`.
pub(super) fn api_versions(served: &Served, address: &str) -> Value {
    let versions: Vec<&str> = served
        .group("")
        .into_iter()
        .flat_map(|g| &g.versions)
        .map(|v| v.version.as_str())
        .collect();
    // The legacy group's documents have no apiVersion.
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`: APIGroupList.
pub(super) fn api_group_list(served: &Served) -> Value {
    let groups: Vec<Value> = named_groups(served).map(|g| Value::Object(group_members(g))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`: APIGroup.
pub(super) fn api_group(group: &ServedGroup) -> Value {
    let mut out = Map::new();
    out.insert("kind".into(), "APIGroup".into());
    out.insert("apiVersion".into(), "v1".into());
    out.extend(group_members(group));
    Value::Object(out)
}

/// `/api/v1` and `/apis/<group>/<version>`: APIResourceList.
pub(super) fn api_resource_list(group: &str, version: &ServedVersion) -> Value {
    let mut out = Map::new();
    out.insert("kind".into(), "APIResourceList".into());
    if !group.is_empty() {
        out.insert("apiVersion".into(), "v1".into());
    }
    out.insert("groupVersion".into(), api_version(group, &version.version).into());
    let mut resources: Vec<(String, Value)> = Vec::new();
    for kind in &version.kinds {
        resources.push((kind.plural.to_string(), resource(kind)));
        for sub in &kind.subresources {
            let name = format!("{}/{}", kind.plural, sub.name);
            let value = subresource(kind, sub, &name);
            resources.push((name, value));
        }
    }
    // Those of custom resources come as their definitions have them.
    if !version.kinds.iter().all(ServedKind::is_custom) {
        resources.sort_by(|a, b| a.0.cmp(&b.0));
    }
    out.insert(
        "resources".into(),
        resources.into_iter().map(|(_, value)| value).collect(),
    );
    Value::Object(out)
}

/// The paths of discovery, for the list at `/`.
pub(super) fn paths(served: &Served) -> Vec<String> {
    let mut paths = Vec::new();
    for group in &served.groups {
        let base = if group.name.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{}", group.name)
        };
        paths.extend(group.versions.iter().map(|v| format!("{base}/{}", v.version)));
        paths.push(base);
    }
    if named_groups(served).next().is_some() {
        paths.extend(["/apis".to_owned(), "/apis/".to_owned()]);
    }
    paths.sort();
    paths
}

fn named_groups(served: &Served) -> impl Iterator<Item = &ServedGroup> {
    let groups = served.groups.iter().map(AsRef::as_ref);
    groups.filter(|group: &&ServedGroup| !group.name.is_empty())
}

fn group_members(group: &ServedGroup) -> Map<String, Value> {
    let mut out = Map::new();
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|v| json!({"groupVersion": api_version(&group.name, &v.version), "version": v.version.as_str()}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    out.insert("name".into(), group.name.as_str().into());
    out.insert("versions".into(), versions.into());
    out.insert("preferredVersion".into(), preferred);
    out
}

fn resource(kind: &ServedKind) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), kind.plural.as_str().into());
    out.insert("singularName".into(), kind.singular.as_str().into());
    out.insert("namespaced".into(), kind.namespaced.into());
    out.insert("kind".into(), kind.kind.as_str().into());
    out.insert("verbs".into(), json!(verbs(kind, &kind.verbs)));
    insert_names(&mut out, kind);
    if !kind.unstored {
        let (group, version) = &kind.storage_version;
        let hash = storage_version_hash(group, version, &kind.kind);
        out.insert("storageVersionHash".into(), hash.into());
    }
    Value::Object(out)
}

fn subresource(kind: &ServedKind, sub: &SubresourceDesc, name: &str) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), name.into());
    out.insert("singularName".into(), "".into());
    out.insert("namespaced".into(), kind.namespaced.into());
    let (group, version, body) = body_kind(kind, sub);
    if !version.is_empty() {
        out.insert("group".into(), group.into());
        out.insert("version".into(), version.into());
    }
    out.insert("kind".into(), body.into());
    out.insert("verbs".into(), json!(verbs(kind, &sub.verbs)));
    Value::Object(out)
}

/// Group, version and kind of a subresource's body; group and version are "" where they are the resource's own.
fn body_kind<'k>(kind: &'k KindDesc, sub: &'k SubresourceDesc) -> (&'k str, &'k str, &'k str) {
    if sub.kind.is_empty() {
        ("", "", &kind.kind)
    } else if sub.group == kind.group && sub.version == kind.version {
        ("", "", &sub.kind)
    } else {
        (&sub.group, &sub.version, &sub.kind)
    }
}

fn insert_names(out: &mut Map<String, Value>, kind: &KindDesc) {
    if !kind.short_names.is_empty() {
        out.insert("shortNames".into(), json!(kind.short_names.to_vec()));
    }
    if !kind.categories.is_empty() {
        out.insert("categories".into(), json!(kind.categories.to_vec()));
    }
}

/// Sorted, unless the kind is a custom resource.
fn verbs<'v>(kind: &ServedKind, verbs: &'v Names) -> Vec<&'v str> {
    let mut verbs = verbs.to_vec();
    if !kind.is_custom() {
        verbs.sort_unstable();
    }
    verbs
}

/// A version in aggregated discovery.
pub(super) fn aggregated_version(version: &ServedVersion) -> Value {
    let resources: Vec<Value> = version.kinds.iter().map(aggregated_resource).collect();
    json!({"version": version.version.as_str(), "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(kind: &ServedKind) -> Value {
    let mut out = Map::new();
    out.insert("resource".into(), kind.plural.as_str().into());
    out.insert("responseKind".into(), response_kind(kind, ("", "", &kind.kind)));
    out.insert(
        "scope".into(),
        if kind.namespaced { "Namespaced" } else { "Cluster" }.into(),
    );
    out.insert("singularResource".into(), kind.singular.as_str().into());
    out.insert("verbs".into(), json!(verbs(kind, &kind.verbs)));
    insert_names(&mut out, kind);
    let mut subs: Vec<&SubresourceDesc> = kind.subresources.iter().collect();
    if !kind.is_custom() {
        subs.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if !subs.is_empty() {
        out.insert(
            "subresources".into(),
            subs.into_iter().map(|sub| aggregated_subresource(kind, sub)).collect(),
        );
    }
    Value::Object(out)
}

fn aggregated_subresource(kind: &ServedKind, sub: &SubresourceDesc) -> Value {
    json!({
        "subresource": sub.name.as_str(),
        "responseKind": response_kind(kind, body_kind(kind, sub)),
        "verbs": verbs(kind, &sub.verbs),
    })
}

/// kube-apiserver leaves group and version of built-in kinds empty where they are those of the list.
fn response_kind(of: &ServedKind, (group, version, kind): (&str, &str, &str)) -> Value {
    match version.is_empty() && of.is_custom() {
        true => json!({"group": of.group.as_str(), "version": of.version.as_str(), "kind": kind}),
        false => json!({"group": group, "version": version, "kind": kind}),
    }
}

/// The first eight bytes of SHA-256 over `group/version/Kind` as stored, in base64.
pub(super) fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(&digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_version_hashes_of_kube_apiserver() {
        assert_eq!(storage_version_hash("", "v1", "Pod"), "xPOwRZ+Yhw8=");
        assert_eq!(storage_version_hash("apps", "v1", "Deployment"), "8aSe+NMegvE=");
        assert_eq!(
            storage_version_hash("autoscaling", "v2", "HorizontalPodAutoscaler"),
            "qwQve8ut294="
        );
    }
}
