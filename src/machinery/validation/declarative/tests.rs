mod across_fields;

use std::collections::BTreeMap;

use super::*;
use crate::Message;

#[derive(Clone, Default, Message)]
#[message(name = "test.Widget")]
struct Widget {
    #[field(json = "spec", has_rules)]
    spec: Spec,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Spec")]
struct Spec {
    #[field(json = "size", has_rules, minimum = 1, maximum = 10)]
    size: i32,
    #[field(
        json = "weight",
        has_rules,
        minimum = 0,
        exclusive_minimum,
        maximum = 1,
        exclusive_maximum
    )]
    weight: Option<f64>,
    #[field(json = "step", has_rules, multiple_of = 5)]
    step: i64,
    #[field(json = "color", has_rules, required, enum("red", "blue"), max_length = 4)]
    color: String,
    #[field(json = "code", has_rules, min_length = 2, pattern = "^[a-z]+$")]
    code: Option<String>,
    #[field(json = "ip", has_rules, format = "ipv4")]
    ip: String,
    #[field(json = "owner", has_rules, immutable)]
    owner: String,
    #[field(json = "tags", list = "set", has_rules, max_items = 3, item_enum("a", "b"))]
    tags: Vec<String>,
    #[field(json = "ports", list = "map", keys("port", "protocol"), has_rules)]
    ports: Vec<Port>,
    #[field(json = "limits", has_rules, max_properties = 1)]
    limits: BTreeMap<String, String>,
    #[field(json = "parts", has_rules)]
    parts: BTreeMap<String, Port>,
    #[field(json = "needed", has_rules, required)]
    needed: Option<Box<Port>>,
    #[field(json = "phase", unchecked, required, immutable, enum("New"))]
    phase: String,
    #[field(json = "modes", unchecked, max_items = 1, item_enum("a"))]
    modes: Vec<String>,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Port")]
struct Port {
    #[field(json = "port", required, has_rules)]
    port: i32,
    #[field(json = "protocol")]
    protocol: String,
    #[field(json = "host", immutable, has_rules, format = "dns-label")]
    host: String,
}

fn good() -> Widget {
    let spec = Spec {
        color: "red".into(),
        needed: Some(Box::default()),
        ..Spec::default()
    };
    Widget { spec }
}

fn check(edit: impl FnOnce(&mut Spec)) -> Vec<String> {
    let mut widget = good();
    edit(&mut widget.spec);
    texts(validate(&widget, None, &Path::root()))
}

fn texts(errors: ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_object_that_keeps_its_rules_passes() {
    assert!(check(|_| {}).is_empty());
    assert!(check(|s| s.size = 10).is_empty());
    assert!(check(|s| s.weight = Some(0.5)).is_empty());
    assert!(check(|s| s.tags = vec!["a".into(), "b".into()]).is_empty());
}

#[test]
fn what_is_published_alone_is_not_checked() {
    let (mut old, mut new) = (good(), good());
    old.spec.phase = "New".into();
    new.spec.phase = "Other".into();
    new.spec.modes = vec!["b".into(), "c".into()];
    assert!(validate(&new, Some(&old), &Path::root()).is_empty());
    assert!(validate(&old, Some(&new), &Path::root()).is_empty());
}

#[test]
fn numbers_have_bounds() {
    assert_eq!(
        check(|s| s.size = -5),
        ["spec.size: Invalid value: -5: must be greater than or equal to 1"]
    );
    assert_eq!(
        check(|s| s.size = 11),
        ["spec.size: Invalid value: 11: must be less than or equal to 10"]
    );
    assert_eq!(
        check(|s| s.weight = Some(0.0)),
        ["spec.weight: Invalid value: 0: must be greater than 0"]
    );
    assert_eq!(
        check(|s| s.weight = Some(1.0)),
        ["spec.weight: Invalid value: 1: must be less than 1"]
    );
    assert_eq!(
        check(|s| s.step = 12),
        ["spec.step: Invalid value: 12: must be a multiple of 5"]
    );
}

#[test]
fn strings_have_values_lengths_patterns_and_formats() {
    assert_eq!(
        check(|s| s.color = "green".into()),
        [
            r#"spec.color: Unsupported value: "green": supported values: "blue", "red""#,
            "spec.color: Too long: may not be more than 4 bytes"
        ]
    );
    assert_eq!(check(|s| s.color = String::new()), ["spec.color: Required value"]);
    assert_eq!(
        check(|s| s.code = Some("A".into())),
        [
            "spec.code: Too short: must be at least 2 characters",
            r#"spec.code: Invalid value: "A": spec.code in body should match '^[a-z]+$'"#
        ]
    );
    assert_eq!(
        check(|s| s.code = Some(String::new())).len(),
        2,
        "an optional string that is set is checked although it is empty"
    );
    assert_eq!(
        check(|s| s.ip = "x".into()),
        [r#"spec.ip: Invalid value: "x": spec.ip in body must be of type ipv4: "x""#]
    );
}

#[test]
fn lists_and_maps_have_sizes_and_unique_elements() {
    assert_eq!(
        check(|s| s.tags = ["a", "a", "c", "b"].map(String::from).to_vec()),
        [
            "spec.tags: Too many: 4: must have at most 3 items",
            r#"spec.tags[1]: Duplicate value: "a""#,
            r#"spec.tags[2]: Unsupported value: "c": supported values: "a", "b""#,
        ]
    );
    let port = |port, protocol: &str| Port {
        port,
        protocol: protocol.into(),
        ..Port::default()
    };
    assert_eq!(
        check(|s| s.ports = vec![port(80, "TCP"), port(80, "UDP"), port(80, "TCP")]),
        [r#"spec.ports[2]: Duplicate value: {"port":80,"protocol":"TCP"}"#]
    );
    assert_eq!(
        check(|s| s.limits = ["a", "b"].map(|k| (k.to_owned(), String::new())).into()),
        ["spec.limits: Too many: 2: must have at most 1 item"]
    );
    let bad = Port {
        host: "A".into(),
        ..Port::default()
    };
    let errors = check(|s| s.parts = [("x".to_owned(), bad)].into());
    assert!(errors[0].starts_with("spec.parts[x].host: Invalid value: \"A\": a lowercase RFC 1123 label"));
}

#[test]
fn required_messages_must_be_there() {
    assert_eq!(check(|s| s.needed = None), ["spec.needed: Required value"]);
}

#[derive(Clone, Default, Message)]
#[message(name = "io.k8s.api.test.v1.Status")]
struct Status {
    #[field(json = "imageID", always, required, has_rules)]
    image_id: String,
    #[field(json = "env", list = "set", has_rules)]
    env: Vec<String>,
    #[field(json = "selector", required, has_rules)]
    selector: Option<Box<Port>>,
}

#[test]
fn types_of_kubernetes_publish_more_than_they_enforce() {
    let status = Status {
        env: vec!["a".into(), "a".into()],
        ..Status::default()
    };
    assert_eq!(
        texts(validate(&status, None, &Path::new("status"))),
        ["status.selector: Required value"]
    );
}

#[test]
fn what_is_immutable_may_be_set_once() {
    let mut old = good();
    let mut new = good();
    new.spec.owner = "b".into();
    assert!(validate(&new, Some(&old), &Path::root()).is_empty(), "it was not set");
    old.spec.owner = "a".into();
    assert_eq!(
        texts(validate(&new, Some(&old), &Path::root())),
        [r#"spec.owner: Invalid value: "b": field is immutable"#]
    );
    new.spec.owner = "a".into();
    let port = |port, host: &str| Port {
        port,
        host: host.into(),
        ..Port::default()
    };
    old.spec.ports = vec![port(1, "a"), port(2, "b")];
    new.spec.ports = vec![port(2, "b"), port(1, "c"), port(3, "d")];
    assert_eq!(
        texts(validate(&new, Some(&old), &Path::root())),
        [r#"spec.ports[1].host: Invalid value: "c": field is immutable"#],
        "elements are told apart by their keys"
    );
}

/// The definition became stricter than what is stored.
#[test]
fn what_was_stored_and_stays_passes() {
    let mut old = good();
    old.spec.size = 11;
    old.spec.color = String::new();
    old.spec.needed = None;
    old.spec.tags = vec!["z".into()];
    old.spec.limits = ["a", "b"].map(|k| (k.to_owned(), String::new())).into();
    let bad = Port {
        host: "A".into(),
        ..Port::default()
    };
    old.spec.parts = [("x".to_owned(), bad.clone())].into();
    let mut new = old.clone();
    new.spec.step = 5;
    assert_eq!(texts(validate(&new, Some(&old), &Path::root())), [""; 0]);
    assert!(validate(&new, None, &Path::root()).len() > 5, "a new object has to fit");

    new.spec.size = 12;
    new.spec.tags.push("a".into());
    new.spec.parts.insert("y".to_owned(), bad);
    let found = texts(validate(&new, Some(&old), &Path::root()));
    let fields: Vec<&str> = found
        .iter()
        .filter_map(|text| text.split_once(": "))
        .map(|(field, _)| field)
        .collect();
    assert_eq!(
        fields,
        ["spec.size", "spec.tags[0]", "spec.parts[y].host"],
        "what changes has to fit"
    );
}
