use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::json;
use crate::meta::v1::ObjectMeta;
use crate::meta::v1::OwnerReference;

/// ObjectMeta has one list of each kind: finalizers merge as scalars, ownerReferences by uid.
fn patched(document: &str, patch: &str) -> Result<String, u16> {
    let desc = ObjectMeta::message_desc();
    match apply(document.as_bytes(), patch.as_bytes(), desc, true) {
        Ok((out, _)) => Ok(String::from_utf8(out).unwrap()),
        Err(error) => Err(error.code),
    }
}

#[test]
fn patches_and_directives() {
    for line in include_str!("../testdata/strategic.tsv")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let [document, patch, expected] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(patched(document, patch).as_deref(), Ok(expected), "{document} {patch}");
    }
}

#[test]
fn bad_directives_are_errors_in_the_words_of_the_api() {
    let table = include_str!("../testdata/strategic_errors.tsv");
    for line in table.lines().filter(|l| !l.starts_with('#')) {
        let [document, patch, code, message] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let desc = ObjectMeta::message_desc();
        let error = apply(document.as_bytes(), patch.as_bytes(), desc, true).unwrap_err();
        assert_eq!(
            (
                error.code.to_string().as_str(),
                error.message.replace('\n', "\\n").as_str()
            ),
            (code, message),
            "{patch}"
        );
    }
}

#[test]
fn repeated_keys_are_reported() {
    let desc = ObjectMeta::message_desc();
    let (out, problems) = apply(b"{}", br#"{"labels":{"a":"1","a":"2"}}"#, desc, true).unwrap();
    assert_eq!(out, br#"{"labels":{"a":"2"}}"#);
    assert_eq!(problems, [r#"duplicate field "labels.a""#]);
}

#[test]
fn patches_are_shown_as_go_prints_them_without_what_was_worked_off() {
    for (document, patch, want) in [
        (
            r#"{}"#,
            r#"{"a":null,"b":{"c":null,"d":[1.5,null,"x y"]}}"#,
            "map[a:<nil> b:map[d:[1.5 <nil> x y]]]",
        ),
        (
            r#"{"labels":{"a":"b"},"ownerReferences":[{"uid":"1"}]}"#,
            r#"{"labels":{"$retainKeys":["a"],"a":null},"ownerReferences":[{"$retainKeys":[],"uid":"1"},{"uid":"2","x":null}],"$setElementOrder/o":[],"o":[]}"#,
            "map[labels:map[a:<nil>] ownerReferences:[map[uid:1] map[uid:2 x:<nil>]]]",
        ),
        (
            r#"{}"#,
            r#"{"n":[1e6,123456789,1e-5,true]}"#,
            "map[n:[1e+06 123456789 1e-05 true]]",
        ),
    ] {
        assert_eq!(
            shown(patch.as_bytes(), document.as_bytes(), ObjectMeta::message_desc()),
            want
        );
    }
}

#[test]
fn depth_costs_no_stack() {
    let desc = ObjectMeta::message_desc();
    let deep = format!("{}1{}", "{\"a\":".repeat(9_000), "}".repeat(9_000));
    for document in ["{}", deep.as_str()] {
        let (out, _) = apply(document.as_bytes(), deep.as_bytes(), desc, true).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), deep);
    }
    let list = format!("{{\"a\":{}{}}}", "[".repeat(9_000), "]".repeat(9_000));
    assert!(apply(b"{}", list.as_bytes(), desc, true).is_ok());
    shown(deep.as_bytes(), b"{}", desc);
}

#[test]
fn patches_between_two_objects() {
    for line in include_str!("../testdata/strategic_diff.tsv").lines() {
        let [original, modified, patch] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let desc = ObjectMeta::message_desc();
        let got = diff(original.as_bytes(), modified.as_bytes(), desc).unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), patch, "{original} {modified}");
        assert_eq!(patched(original, patch).as_deref(), Ok(modified));
    }
}

/// The text of metadata with lists of each kind, without repeated elements.
fn metadata() -> impl Strategy<Value = String> {
    let texts = prop::collection::btree_map("[a-d]", "[a-c$\"]{0,2}", 0..4);
    let finalizers = prop::sample::subsequence(vec!["a/b", "c", "d/e", "f"], 0..=4).prop_shuffle();
    let owner = ("[a-c]", prop::option::of(any::<bool>()), "[a-c]{0,1}");
    let owners = prop::collection::btree_map("[0-4]", owner, 0..5).prop_map(|owners| owners.into_iter().collect());
    let owners = Strategy::prop_shuffle(owners);
    (texts.clone(), texts, finalizers, owners, prop::option::of(0..3i64)).prop_map(
        |(labels, annotations, finalizers, owners, grace): (BTreeMap<_, _>, BTreeMap<_, _>, _, Vec<_>, _)| {
            text(&ObjectMeta {
                labels,
                annotations,
                finalizers: finalizers.into_iter().map(str::to_owned).collect(),
                owner_references: owners
                    .into_iter()
                    .map(|(uid, (name, controller, kind))| OwnerReference {
                        uid,
                        name,
                        kind,
                        controller,
                        ..Default::default()
                    })
                    .collect(),
                deletion_grace_period_seconds: grace,
                ..Default::default()
            })
        },
    )
}

fn text(meta: &ObjectMeta) -> String {
    let mut out = Vec::new();
    json::write(meta, &mut out);
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_between_two_objects_makes_one_of_the_other(a in metadata(), b in metadata()) {
        let patch = diff(a.as_bytes(), b.as_bytes(), ObjectMeta::message_desc()).unwrap();
        let (result, _) = apply(a.as_bytes(), &patch, ObjectMeta::message_desc(), true).unwrap();
        let mut read = ObjectMeta::default();
        json::read(&result, &mut read).unwrap();
        let patch = String::from_utf8(patch).unwrap();
        prop_assert_eq!(text(&read), b.as_str(), "{}", patch);
        prop_assert_eq!(a == b, patch == "{}");
    }
}
