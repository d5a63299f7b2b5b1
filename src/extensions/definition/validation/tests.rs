use super::*;
use crate::definition::tests::{lines, read};

const GOOD: &str = r#"{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#;

#[test]
fn faults_are_told_where_they_are() {
    assert_eq!(lines(&create(&read(GOOD))), "");
    for (from, to, told) in [
        (
            r#""name":"widgets.example.com""#,
            r#""name":"other.example.com""#,
            r#"metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group"#,
        ),
        (
            r#""group":"example.com""#,
            r#""group":"example""#,
            "metadata.name: Invalid value: \"widgets.example.com\": must be spec.names.plural+\".\"+spec.group\n\
             spec.group: Invalid value: \"example\": should be a domain with at least one dot",
        ),
        (
            "Namespaced",
            "Universe",
            r#"spec.scope: Unsupported value: "Universe": supported values: "Cluster", "Namespaced""#,
        ),
        (
            r#""kind":"Widget""#,
            r#""kind":"Widget","listKind":"Widget""#,
            r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#,
        ),
        (
            r#""storage":true"#,
            r#""storage":true,"subresources":{"scale":{"specReplicasPath":".status.a","statusReplicasPath":".status.a"}}"#,
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.a": should be a json path under .spec"#,
        ),
        (
            r#""storage":true"#,
            r#""storage":true,"additionalPrinterColumns":[{"name":"A","type":"float","jsonPath":".a"}]"#,
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "float": must be one of boolean,date,integer,number,string"#,
        ),
        (
            r#""storage":true"#,
            r#""storage":true,"deprecationWarning":"a""#,
            r#"spec.versions[0].deprecationWarning: Invalid value: "a": can only be set for deprecated versions"#,
        ),
        (
            r#","schema":{"openAPIV3Schema":{"type":"object"}}"#,
            "",
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (
            r#""scope""#,
            r#""preserveUnknownFields":true,"scope""#,
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
        (
            r#""scope""#,
            r#""conversion":{"strategy":"None","webhook":{"conversionReviewVersions":["v1"]}},"scope""#,
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ),
        (
            r#""scope""#,
            r#""conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v2"],
            "clientConfig":{"url":"https://a"}}},"scope""#,
            r#"spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1"#,
        ),
    ] {
        let text = GOOD.replace(['\n'], "").replacen(from, to, 1);
        assert_eq!(lines(&create(&read(&text))), told);
    }
}

#[test]
fn what_was_stored_stays_a_version() {
    let mut definition = read(GOOD);
    definition.status.stored_versions = vec!["v0".to_owned(), "v1".to_owned()];
    let told = lines(&create(&definition));
    assert!(
        told.starts_with(r#"status.storedVersions[0]: Invalid value: "v0": missing from spec.versions; v0 was"#),
        "{told}"
    );
    definition.status.stored_versions = vec!["v2".to_owned()];
    let told = lines(&create(&definition));
    assert!(
        told.contains(r#"Invalid value: ["v2"]: must have the storage version v1"#),
        "{told}"
    );
    definition.status.stored_versions = vec!["v1".to_owned()];
    definition.spec.versions.push(definition.spec.versions[0].clone());
    let told = lines(&create(&definition));
    assert!(
        told.contains(r#"Invalid value: ["v1"]: must have the storage version v1"#),
        "{told}"
    );
}

#[test]
fn a_change_is_not_asked_for_what_was_not_there() {
    let mut old = read(GOOD);
    old.spec.versions[0].schema = None;
    assert_eq!(
        lines(&update(&old, &old)),
        "spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned"
    );
    old.spec.preserve_unknown_fields = true;
    assert_eq!(lines(&update(&old, &old)), "");
    let mut protected = read(&GOOD.replace("example.com", "a.k8s.io"));
    assert!(lines(&create(&protected)).contains("protected groups must have approval annotation"));
    assert_eq!(lines(&update(&protected, &protected)), "");
    let old = protected.clone();
    let annotations = &mut protected.metadata.annotations;
    annotations.insert(approval::ANNOTATION.to_owned(), "bad value".to_owned());
    assert!(lines(&update(&protected, &old)).contains("Invalid value: \"bad value\""));
}

#[test]
fn names_of_the_resource_stay() {
    let definition = |spec: &str, established: &str| {
        read(&format!(
            r#"{{"spec":{spec},"status":{{"conditions":[{{"type":"Established","status":"{established}"}}]}}}}"#
        ))
    };
    let spec = r#"{"group":"g.a","scope":"Cluster","names":{"plural":"p","kind":"K"}}"#;
    for (from, to, before, after) in [
        ("g.a", "h.a", "spec.group", "spec.group"),
        ("\"p\"", "\"q\"", "spec.names.plural", "spec.names.plural"),
        ("\"K\"", "\"L\"", "", "spec.names.kind"),
        ("Cluster", "Namespaced", "", "spec.scope"),
    ] {
        for (established, expected) in [("False", before), ("True", after)] {
            let (old, new) = (
                definition(spec, established),
                definition(&spec.replace(from, to), established),
            );
            let found = lines(&update(&new, &old));
            let kept = found.lines().find(|line| line.ends_with(IMMUTABLE)).unwrap_or_default();
            assert_eq!(kept.split(": ").next().unwrap(), expected, "{to} {established}");
        }
    }
}
