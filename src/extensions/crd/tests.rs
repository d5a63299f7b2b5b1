//! Kinds of definition files as CustomResourceDefinitions, and back.

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_machinery::{defaults, json as codec};
use serde_json::json;

use super::*;
use crate::definition::faults_of_new;

/// What is wrong with a definition that a client sends.
fn faults(definition: &serde_json::Value) -> Vec<String> {
    let mut read = CustomResourceDefinition::default();
    codec::read(definition.to_string().as_bytes(), &mut read).unwrap();
    defaults::apply(&mut read);
    faults_of_new(&mut read)
}

#[test]
fn what_is_exported_is_a_good_definition() {
    let mut count = 0;
    for group in keelson_api::SCHEME
        .groups
        .iter()
        .filter(|group| group.name.contains('.'))
    {
        let kinds = group.versions.iter().flat_map(|version| version.kinds);
        for kind in kinds.filter(|kind| !kind.unstored) {
            let name = format!("{}.{}", kind.plural, kind.group);
            let (definition, _) = export(&[&keelson_api::SCHEME], &name).unwrap();
            let mut faults = faults(&definition);
            // A group of Kubernetes itself.
            faults.retain(|fault| !fault.starts_with("metadata.annotations[api-approved.kubernetes.io]"));
            assert_eq!(faults, Vec::<String>::new(), "{name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn kinds_are_named_by_their_names() {
    let of = |name: &str| export(&[&keelson_api::SCHEME], name).map(|(definition, _)| definition);
    let lease = of("Lease").unwrap();
    assert_eq!(lease, of("leases.coordination.k8s.io").unwrap());
    assert_eq!(lease["spec"]["names"]["listKind"], "LeaseList");
    let schema = &lease["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["metadata"]["type"], "object");
    assert_eq!(
        schema["properties"]["spec"]["properties"]["renewTime"]["format"],
        "date-time"
    );
    assert_eq!(of("pods"), Err(ExportError::NoDomain("Pod".to_owned(), String::new())));
    assert_eq!(of("Nothing"), Err(ExportError::Unknown("Nothing".to_owned())));
    assert!(matches!(of("events"), Err(ExportError::Ambiguous(..))));
}

#[test]
fn what_is_imported_is_a_good_definition_file() {
    let schema = json!({"type": "object", "description": "A thing.\n\nOf some size.", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "description": "How large."},
            "clusterIP": {"type": "string", "format": "ipv4"},
            "color": {"type": "string", "enum": ["Red", "Green"], "default": "Red"},
            "pattern": {"type": "string", "pattern": "^\"a\\.b$", "maxLength": 9},
            "since": {"type": "string", "format": "date-time"},
            "amount": {"x-kubernetes-int-or-string": true, "pattern": "KMGTPE"},
            "port": {"x-kubernetes-int-or-string": true},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
            "words": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            "parts": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "share": {"type": "number", "maximum": 1.5}},
                    "x-kubernetes-validations": [{"rule": "self.share > 0.0", "message": "no \"share\""}]}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "enum": ["a"]}},
            "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "a-b": {"type": "boolean", "nullable": true},
            "a_b": {"type": "boolean"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}});
    let version = |name: &str, stored: bool| {
        json!({"name": name, "served": stored, "storage": stored, "schema": {"openAPIV3Schema": schema},
            "deprecated": !stored, "selectableFields": [{"jsonPath": ".spec.color"}],
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}},
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {
        "group": "my-shop.example.com", "scope": "Cluster",
        "names": {"plural": "widgets", "singular": "wid", "kind": "Widget", "listKind": "Widgets", "shortNames": ["wd"]},
        "versions": [version("v1", true), version("v1beta1", false)]}});
    let (files, lost) = import(&definition).unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "my-shop.example.com/v1beta1/widget.proto",
            "my-shop.example.com/v1/widget.proto"
        ]
    );
    let told: Vec<&String> = lost.iter().filter(|line| line.starts_with("v1 ")).collect();
    assert_eq!(
        told,
        [
            "v1 .spec.any: only objects are taken, and nothing in them is looked at",
            "v1 .spec.matrix[]: lists of lists and of maps"
        ]
    );
    let folder = tempfile::tempdir().unwrap();
    for file in &files {
        let path = folder.path().join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.text).unwrap();
    }
    let notes = keelson_codegen::record(folder.path());
    assert!(notes.is_ok(), "{}\n{}", notes.unwrap_err(), files[1].text);
    let text = &files[1].text;
    for line in [
        "package com.example.my_shop.v1;",
        "// A thing.\n//\n// Of some size.\nmessage Widget {",
        "optional int32 size = 1 [(keelson.field) = {required: true, minimum: 1}];",
        "optional string cluster_ip = 2 [json_name = \"clusterIP\", (keelson.field) = {format: \"ipv4\"}];",
        "repeated WidgetSpecParts parts = 11",
        "optional bool a_b = 13 [json_name = \"a-b\", (keelson.field) = {nullable: true}];",
        "optional bool a_b_2 = 14 [json_name = \"a_b\"];",
        "no_age: true",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_is_no_definition_is_refused() {
    assert_eq!(import(&json!({"kind": "Pod"})), Err(ImportError::NoDefinition));
    let none = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    assert_eq!(import(&none), Err(ImportError::Missing("versions")));
}
