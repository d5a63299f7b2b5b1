//! The storage layout of kube-apiserver: its keys, its envelope, its versions.

mod facts;

use facts::facts;
use keelson::api::SCHEME;
use keelson_machinery::protobuf;
use keelson_machinery::scheme::KindDesc;

fn stored_kinds() -> Vec<&'static KindDesc> {
    let kinds = SCHEME.groups.iter().flat_map(|g| g.versions).flat_map(|v| v.kinds);
    kinds
        .filter(|k| k.storage && k.message.name.starts_with("io.k8s."))
        .collect()
}

#[test]
fn keys_and_versions_are_those_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let text = std::fs::read(facts.join("storage.json")).unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let rows = rows["resources"].as_array().unwrap();
    let kinds = stored_kinds();
    assert!(kinds.len() >= 16, "{}", kinds.len());
    for kind in kinds {
        let row = rows
            .iter()
            .find(|r| r["group"] == kind.group.as_str() && r["resource"] == kind.plural.as_str() && r["stored"] == true)
            .unwrap_or_else(|| panic!("{} is not stored there", kind.plural));
        let parts = if kind.namespaced {
            "{namespace}/{name}"
        } else {
            "{name}"
        };
        let key = format!("/registry/{}/{parts}", kind.storage_path);
        assert_eq!(row["keyTemplate"], key.as_str());
        let version = keelson_machinery::object::api_version(&kind.group, &kind.version);
        assert_eq!(row["apiVersion"], version.as_str(), "{key}");
        let encoding = if kind.stored_as_json { "json" } else { "k8s\\0 protobuf" };
        assert_eq!(row["encoding"], encoding, "{key}");
    }
}

#[test]
fn every_kind_is_stored_in_the_envelope() {
    for kind in stored_kinds().into_iter().filter(|k| !k.stored_as_json) {
        let bytes = protobuf::encode(&*kind.new_object());
        assert!(bytes.starts_with(b"k8s\0"), "{}", kind.kind);
        let envelope = protobuf::decode_envelope(&bytes).unwrap();
        assert_eq!(envelope.kind, kind.kind.as_str());
        let version = keelson_machinery::object::api_version(&kind.group, &kind.version);
        assert_eq!(envelope.api_version, version);
        // Encoding and content type are empty, and written all the same: fields 3 and 4 of length 0.
        assert!(bytes.ends_with(&[0x1a, 0, 0x22, 0]), "{}", kind.kind);
    }
}
