use super::*;
use crate::reflect::time::Time;

fn path() -> Path {
    Path::new("metadata")
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: name.into(),
        namespace: "default".into(),
        ..ObjectMeta::default()
    }
}

fn texts(errors: ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn create(meta: &ObjectMeta) -> Vec<String> {
    texts(validate_object_meta(meta, true, NameRule::DnsSubdomain, &path()))
}

fn owner(name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: name.into(),
        uid: "u".into(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}

#[test]
fn good_metadata_passes() {
    assert!(create(&meta("a")).is_empty());
    let cluster = ObjectMeta {
        name: "a".into(),
        ..ObjectMeta::default()
    };
    assert!(validate_object_meta(&cluster, false, NameRule::DnsSubdomain, &path()).is_empty());
}

#[test]
fn names_and_namespaces_are_checked() {
    let unnamed = ObjectMeta::default();
    assert_eq!(
        create(&unnamed),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value"
        ]
    );
    let generated = ObjectMeta {
        generate_name: "A_".into(),
        ..meta("A_x")
    };
    let fields: Vec<_> = validate_object_meta(&generated, true, NameRule::DnsLabel, &path())
        .iter()
        .map(|e| e.field.clone())
        .collect();
    assert_eq!(fields, ["metadata.generateName", "metadata.name"]);
    assert_eq!(
        texts(validate_object_meta(&meta("a"), false, NameRule::DnsLabel, &path())),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
    let negative = ObjectMeta {
        generation: -1,
        ..meta("a")
    };
    assert_eq!(
        create(&negative),
        ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]
    );
}

#[test]
fn owners_are_complete_and_one_of_them_controls() {
    let event = OwnerReference {
        kind: "Event".into(),
        controller: None,
        ..owner("e")
    };
    let broken = OwnerReference {
        api_version: "a/b/c".into(),
        ..OwnerReference::default()
    };
    let bad = ObjectMeta {
        owner_references: vec![owner("a"), owner("b"), event, broken],
        ..meta("a")
    };
    let texts = create(&bad);
    let ends = [
        "Only one reference can have Controller set to true. Found \"true\" in references for Pod/a and Pod/b",
        "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\
         \"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner",
        "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
        "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
        "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
        "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
    ];
    assert_eq!(texts.len(), ends.len(), "{texts:#?}");
    for (text, end) in texts.iter().zip(ends) {
        assert!(text.ends_with(end), "{text}\n{end}");
    }
    assert!(texts[0].starts_with("metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\","));
}

#[test]
fn finalizers_and_managed_fields_are_checked() {
    let entry = ManagedFieldsEntry {
        manager: "a\u{7}".into(),
        operation: "Guess".into(),
        fields_type: "FieldsV2".into(),
        subresource: "s".repeat(257),
        ..ManagedFieldsEntry::default()
    };
    let bad = ObjectMeta {
        finalizers: vec!["orphan".into(), "foregroundDeletion".into()],
        managed_fields: vec![entry],
        ..meta("a")
    };
    assert_eq!(
        create(&bad),
        [
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
             foregroundDeletion cannot be both set",
            "metadata.managedFields[0].operation: Invalid value: \"Guess\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"FieldsV2\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ]
    );
}

#[test]
fn identity_does_not_change_on_update() {
    let old = ObjectMeta {
        uid: "u".into(),
        resource_version: "1".into(),
        generation: 2,
        creation_timestamp: Time::from_unix(0, 0),
        finalizers: vec!["a.b/c".into()],
        ..meta("a")
    };
    assert!(validate_object_meta_update(&old.clone(), &old, &path()).is_empty());
    let new = ObjectMeta {
        generation: 1,
        deletion_timestamp: Some(Time::from_unix(60, 0)),
        ..meta("b")
    };
    assert_eq!(
        texts(validate_object_meta_update(&new, &old, &path())),
        [
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.uid: Invalid value: \"\": field is immutable",
            "metadata.creationTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionTimestamp: Invalid value: \"1970-01-01T00:01:00Z\": field is immutable",
        ]
    );
    let deleting = ObjectMeta {
        deletion_timestamp: Some(Time::from_unix(60, 0)),
        ..old
    };
    let more = ObjectMeta {
        finalizers: vec!["x.y/z".into(), "a.b/c".into(), "d.e/f".into()],
        ..deleting.clone()
    };
    assert_eq!(
        texts(validate_object_meta_update(&more, &deleting, &path())),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
          finalizers []string{\"d.e/f\", \"x.y/z\"}"
        ]
    );
}
