use proptest::prelude::*;

use super::*;

fn read(json: &str) -> FieldSet {
    FieldSet::read(json.as_bytes()).unwrap()
}

fn show(set: &FieldSet) -> String {
    let mut out = Vec::new();
    set.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn reads_and_writes_what_kube_apiserver_writes() {
    for json in [
        r#"{}"#,
        r#"{"f:data":{".":{},"f:a":{}}}"#,
        r#"{"f:metadata":{"f:finalizers":{"v:\"x.y/a\"":{}},"f:labels":{"f:l":{}}}}"#,
        r#"{"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}"#,
        r#"{"f:env":{"k:{\"name\":\"A\\u003cB\\\"C\\\\D\\u0026'\"}":{".":{},"f:name":{}}}}"#,
        r#"{"f:s":{"v:1":{},"v:2.5":{},"v:\"a\"":{},"v:true":{},"i:0":{}}}"#,
    ] {
        assert_eq!(show(&read(json)), json);
    }
}

#[test]
fn order_and_unknown_keys() {
    let set = read(
        r#"{"i:1":{},"v:\"b\"":{},"x:future":{},"f:b":{"f:z":{},"f:a":{},".":{}},"f:a":{}, "k:{\"b\":1,\"a\":2}":{}}"#,
    );
    assert_eq!(
        show(&set),
        r#"{"f:a":{},"f:b":{".":{},"f:a":{},"f:z":{}},"k:{\"a\":2,\"b\":1}":{},"v:\"b\"":{},"i:1":{}}"#
    );
}

#[test]
fn refuses_what_is_no_set() {
    let deep = format!("{}{}", r#"{"f:a":"#.repeat(300), "}".repeat(300));
    for json in [
        "",
        "[]",
        "3",
        r#"{"f:a":3}"#,
        r#"{"data":{}}"#,
        r#"{"k:3":{}}"#,
        r#"{"v:":{}}"#,
        r#"{"i:x":{}}"#,
        &deep,
    ] {
        assert!(FieldSet::read(json.as_bytes()).is_err(), "{json}");
    }
}

#[test]
fn paths_as_messages_show_them() {
    let set = read(
        r#"{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}},"f:tolerations":{},"f:s":{"v:\"x\"":{},"i:3":{}},"f:p":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}}}}"#,
    );
    let mut lines = Vec::new();
    set.for_each(&mut |path| lines.push(FieldPath(path).to_string()));
    assert_eq!(
        lines,
        [
            ".spec.tolerations",
            ".spec.containers[name=\"c\"]",
            ".spec.containers[name=\"c\"].image",
            ".spec.p[containerPort=80,protocol=\"TCP\"]",
            ".spec.s[=\"x\"]",
            ".spec.s[3]",
        ]
    );
    assert_eq!(set.len(), 6);
}

#[test]
fn recursive_difference_takes_what_is_below() {
    let set = read(r#"{"f:a":{".":{},"f:b":{"f:c":{}}},"f:d":{}}"#);
    let other = read(r#"{"f:a":{"f:b":{}}}"#);
    assert_eq!(
        show(&set.clone().recursive_difference(&other)),
        r#"{"f:a":{},"f:d":{}}"#
    );
    assert_eq!(show(&set.clone().difference(&other)), show(&set));
    assert_eq!(show(&set.leaves()), r#"{"f:a":{"f:b":{"f:c":{}}},"f:d":{}}"#);
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        4 => "[abc]".prop_map(|n| PathElement::Field(n.into())),
        1 => ("[ab]", 0..3i64).prop_map(|(n, v)| PathElement::Key([(Name::from(n), Scalar::Int(v))].into())),
        1 => "[<x\"\\\\é]".prop_map(|v| PathElement::Value(Scalar::Str(v.into()))),
        1 => (0..3i64).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(element(), 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::EMPTY;
        paths.iter().for_each(|p| set.insert(p));
        set
    })
}

proptest! {
    #[test]
    fn text_round_trip(a in set()) {
        prop_assert_eq!(read(&show(&a)), a);
    }

    #[test]
    fn laws_of_sets(a in set(), b in set(), path in prop::collection::vec(element(), 1..4)) {
        let (ina, inb) = (a.has(&path), b.has(&path));
        prop_assert_eq!(a.clone().union(b.clone()).has(&path), ina || inb);
        prop_assert_eq!(a.intersection(&b).has(&path), ina && inb);
        prop_assert_eq!(a.clone().difference(&b).has(&path), ina && !inb);
        let below = (1..=path.len()).any(|n| b.has(&path[..n]));
        prop_assert_eq!(a.clone().recursive_difference(&b).has(&path), ina && !below);
        prop_assert_eq!(a.is_disjoint(&b), a.intersection(&b).is_empty());
        prop_assert_eq!(a.clone().difference(&b).union(a.intersection(&b)), a.clone());
        prop_assert_eq!(a.clone().union(b.clone()), b.union(a));
    }
}
