//! Tests of pruning: what reading by the table of a schema keeps, drops and fills in.

use crate::apply::misfit;
use crate::budget::Budget;
use crate::json;
use crate::reflect::Desc;
use crate::reflect::object::Gvk;
use crate::structural::{Compile, JsonSchema, compile};
use crate::{decode::DecodeError, defaults};

fn table(schema: &str) -> Desc {
    let schema = JsonSchema::parse(schema.as_bytes()).unwrap();
    compile(&Compile {
        gvk: Gvk::new("stable.example.com", "v1", "CronTab"),
        schema: Some(&schema),
        preserve_unknown_fields: false,
    })
    .unwrap()
}

/// The object of `spec`, read by a schema with that property, and the unknown fields.
fn read(spec_schema: &str, spec: &str) -> Result<(String, Vec<String>), DecodeError> {
    let desc = table(&format!(r#"{{"type":"object","properties":{{"spec":{spec_schema}}}}}"#));
    let mut object = desc.new_object();
    let problems = json::read(format!(r#"{{"spec":{spec}}}"#).as_bytes(), object.as_reflect_mut())?;
    defaults::apply(object.as_reflect_mut());
    let mut out = Vec::new();
    json::write(object.as_reflect(), &mut out);
    let text = String::from_utf8(out).unwrap();
    let text = text.replace(r#""metadata":{},"#, "").replace(r#""metadata":{}"#, "");
    Ok((text, problems.iter().map(ToString::to_string).collect()))
}

#[test]
fn the_name_of_a_kind_is_that_of_its_definition() {
    let desc = table(r#"{"type":"object"}"#);
    assert_eq!(desc.name, "com.example.stable.v1.CronTab");
    assert_eq!(desc.gvk.as_ref().map(|gvk| gvk.kind.as_str()), Some("CronTab"));
    assert!(desc.field("metadata").is_some());
}

#[test]
fn what_is_not_declared_is_dropped_unless_it_is_preserved() {
    let object = r#"{"type":"object","properties":{"a":{"type":"string"}}"#;
    for (schema, spec, kept, unknown) in [
        (
            format!("{object}}}"),
            r#"{"a":"x","b":1}"#,
            r#"{"spec":{"a":"x"}}"#,
            vec!["spec.b"],
        ),
        (
            format!(r#"{object},"x-kubernetes-preserve-unknown-fields":true}}"#),
            r#"{"a":"x","b":{"c":[{"d":null}]}}"#,
            r#"{"spec":{"a":"x","b":{"c":[{"d":null}]}}}"#,
            vec![],
        ),
        (
            r#"{"type":"object"}"#.to_owned(),
            r#"{"a":{"b":1}}"#,
            r#"{"spec":{}}"#,
            vec!["spec.a"],
        ),
        (
            r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#.to_owned(),
            r#"{"a":{"b":1}}"#,
            r#"{"spec":{"a":{"b":1}}}"#,
            vec![],
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"integer"}}"#.to_owned(),
            r#"{"a":1,"b":2.5}"#,
            r#"{"spec":{"a":1,"b":2.5}}"#,
            vec![],
        ),
        (
            r#"{"type":"object","additionalProperties":true}"#.to_owned(),
            r#"{"a":1,"b":{"c":1}}"#,
            r#"{"spec":{"a":1,"b":{}}}"#,
            vec!["spec.b.c"],
        ),
        (
            format!(r#"{{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{object}}}}}"#),
            r#"[{"a":"x","b":1}]"#,
            r#"{"spec":[{"a":"x","b":1}]}"#,
            vec![],
        ),
        // In alphabetical order, what stands in metadata at last.
        (
            r#"{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true}}}"#
                .to_owned(),
            r#"{"e":{"metadata":{"x":1}},"z":1,"a":{"b":1}}"#,
            r#"{"spec":{"e":{}}}"#,
            vec!["spec.a", "spec.z", "spec.e.metadata.x"],
        ),
        // Nothing is known of an object where none is declared.
        (
            r#"{"type":"string"}"#.to_owned(),
            r#"{"a":{"b":1},"c":1}"#,
            r#"{"spec":{}}"#,
            vec!["spec.a", "spec.c"],
        ),
        (
            r#"{"type":"array","items":{"type":"string"}}"#.to_owned(),
            r#"{"a":1}"#,
            r#"{"spec":{}}"#,
            vec!["spec.a"],
        ),
        (
            format!("{object}}}"),
            r#"[[{"a":1}],1]"#,
            r#"{"spec":[[{}],1]}"#,
            vec!["spec[0][0].a"],
        ),
        (
            r#"{"x-kubernetes-int-or-string":true}"#.to_owned(),
            r#"{"a":{"b":1},"c":1}"#,
            r#"{"spec":{}}"#,
            vec!["spec.a", "spec.c"],
        ),
        (
            r#"{"x-kubernetes-int-or-string":true}"#.to_owned(),
            r#"[1,{"a":1},"b"]"#,
            r#"{"spec":[1,{},"b"]}"#,
            vec!["spec[1].a"],
        ),
        (
            r#"{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true}"#.to_owned(),
            r#"{"a":1}"#,
            r#"{"spec":{"a":1}}"#,
            vec![],
        ),
        (
            r#"{"x-kubernetes-int-or-string":true}"#.to_owned(),
            r#""50%""#,
            r#"{"spec":"50%"}"#,
            vec![],
        ),
    ] {
        let unknown: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        assert_eq!(read(&schema, spec), Ok((kept.to_owned(), unknown)), "{schema}");
    }
}

#[test]
fn a_null_that_is_no_value_is_none() {
    for (schema, spec, kept) in [
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","nullable":true}}}"#,
            r#"{"a":null,"b":null}"#,
            r#"{"spec":{"b":null}}"#,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string","default":"x"}}}"#,
            r#"{"a":null}"#,
            r#"{"spec":{"a":"x"}}"#,
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"a":null,"b":""}"#,
            r#"{"spec":{"b":""}}"#,
        ),
        (
            r#"{"type":"array","items":{"type":"string"}}"#,
            r#"["a",null]"#,
            r#"{"spec":["a",null]}"#,
        ),
        (
            r#"{"type":"array","items":{"type":"string","default":"x"}}"#,
            r#"["a",null]"#,
            r#"{"spec":["a","x"]}"#,
        ),
        (
            r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#,
            r#"{"a":null}"#,
            r#"{"spec":{"a":null}}"#,
        ),
    ] {
        assert_eq!(read(schema, spec), Ok((kept.to_owned(), vec![])), "{schema}");
    }
}

#[test]
fn defaults_are_pruned_and_fill_what_they_bring() {
    let schema = r#"{"type":"object","default":{"a":{},"z":1},"properties":{
        "a":{"type":"object","properties":{"b":{"type":"integer","default":5}}},
        "c":{"type":"object","properties":{"d":{"type":"integer","default":6}}}}}"#;
    let desc = table(&format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#));
    let mut object = desc.new_object();
    defaults::apply(object.as_reflect_mut());
    let mut out = Vec::new();
    json::write(object.as_reflect(), &mut out);
    assert_eq!(String::from_utf8_lossy(&out), r#"{"metadata":{},"spec":{"a":{"b":5}}}"#);
}

#[test]
fn an_embedded_resource_has_metadata() {
    let schema = r#"{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object"}}}"#;
    let spec = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","foo":1,"creationTimestamp":null},
        "spec":{"a":1},"other":{"b":2}}"#;
    let kept = r#"{"spec":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"other":{"b":2},"spec":{}}}"#;
    let unknown = ["spec.spec.a", "spec.metadata.foo"].map(|path| format!("unknown field \"{path}\""));
    let (text, problems) = read(schema, spec).unwrap();
    assert_eq!(text, kept);
    assert_eq!(problems, unknown);
}

#[test]
fn schemas_are_bounded_and_refused_with_a_reason() {
    let deep = format!("{}{}", r#"{"items":"#.repeat(300), "}".repeat(300));
    let found = JsonSchema::parse(deep.as_bytes()).unwrap_err().to_string();
    assert!(found.starts_with("schemas nest deeper"), "{found}");
    for (text, why) in [
        (r#"{"type":1}"#, "type: the value has a wrong type"),
        (r#"{"properties":[]}"#, "properties: the value has a wrong type"),
        (r#"{"maxLength":1.5}"#, "maxLength: the value has a wrong type"),
        ("{", "unexpected end of JSON input"),
    ] {
        assert_eq!(JsonSchema::parse(text.as_bytes()).unwrap_err().to_string(), why);
    }
}

/// What a schema that has changed since says of what was stored, as kube-apiserver v1.36 puts it.
#[test]
fn what_does_not_fit_can_not_be_applied_to() {
    let keyed = r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"],"items":{
        "type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}"#;
    let set = r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#;
    for (schema, spec, why) in [
        (
            r#"{"type":"array","items":{"type":"string"}}"#,
            "5",
            "expected list, got &{5}",
        ),
        (
            r#"{"type":"string"}"#,
            "5",
            "expected string, got &value.valueUnstructured{Value:5}",
        ),
        (r#"{"type":"boolean"}"#, r#""x""#, "expected boolean, got &{x}"),
        (
            r#"{"type":"integer"}"#,
            r#""x""#,
            "expected numeric (int or float), got string",
        ),
        (r#"{"type":"integer"}"#, "1.5", ""),
        (
            r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
            "[1]",
            "expected map, got &{[1]}",
        ),
        (keyed, r#"[{"a":"x"},{"a":"x"}]"#, ""),
        (
            keyed,
            "[{},5]",
            r#"element 0: associative list with keys has an element that omits all key fields ["a" "b"] (and doesn't "#,
        ),
        (
            keyed,
            r#"[{"a":"x"},5]"#,
            "element 1: associative list with keys may not have non-map elements",
        ),
        (set, r#"["a","a"]"#, ""),
        (
            set,
            "[null]",
            "element 0: associative list without keys has an element that's an explicit null",
        ),
    ] {
        let desc = table(&format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#));
        let mut object = desc.new_object();
        json::read(format!(r#"{{"spec":{spec}}}"#).as_bytes(), object.as_reflect_mut()).unwrap();
        let found = misfit(&*object).unwrap_or_default();
        match why {
            "" => assert_eq!(found, "", "{spec}"),
            why => assert!(found.starts_with(&format!(".spec: {why}")), "{spec}: {found}"),
        }
    }
}

#[test]
fn defaults_come_to_no_more_than_a_request_may() {
    let long = "x".repeat(1 << 10);
    let schema = format!(
        r#"{{"type":"array","items":{{"type":"object","properties":{{
        "a":{{"type":"string","default":"{long}"}}}}}}}}"#
    );
    let desc = table(&format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#));
    for (items, fits) in [(10_000, true), (30_000, false)] {
        let mut object = desc.new_object();
        let spec = format!(r#"{{"spec":[{}{{}}]}}"#, "{},".repeat(items));
        json::read(spec.as_bytes(), object.as_reflect_mut()).unwrap();
        assert_eq!(
            defaults::apply_within(object.as_reflect_mut(), &Budget::of_request()),
            fits
        );
    }
}
