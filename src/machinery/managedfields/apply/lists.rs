//! Tests of lists whose items have owners, and laws that hold for all documents.

use proptest::prelude::*;

use super::*;
use crate::json;
use crate::managedfields::{VersionError, Versions, Writer};
use crate::reflect::object::Object;
use crate::reflect::time::Time;

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Shop")]
struct Shop {
    #[field(json = "ports", number = 1, list = "map", keys("port", "protocol"))]
    ports: Vec<Port>,
    #[field(json = "tags", number = 2, list = "set")]
    tags: Vec<String>,
    #[field(json = "args", number = 3)]
    args: Vec<String>,
    #[field(json = "labels", number = 4)]
    labels: std::collections::BTreeMap<String, String>,
    #[field(json = "owner", number = 5)]
    owner: Option<Box<Owner>>,
    #[field(json = "guards", number = 6, list = "map", keys("name"))]
    guards: Vec<Guard>,
}

/// What it is known by stands in a part that JSON does not show.
#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Guard")]
struct Guard {
    #[field(json = "person", number = 1, inline)]
    person: Owner,
    #[field(json = "shift", number = 2)]
    shift: i32,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Port")]
struct Port {
    #[field(json = "port", number = 1, always)]
    port: i32,
    #[field(json = "protocol", number = 2, default = "\"TCP\"")]
    protocol: String,
    #[field(json = "name", number = 3)]
    name: String,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Owner")]
struct Owner {
    #[field(json = "name", number = 1)]
    name: String,
    #[field(json = "team", number = 2)]
    team: Option<String>,
}

struct One;

impl Versions for One {
    fn knows(&self, api_version: &str) -> bool {
        api_version == "v1"
    }
    fn convert(&self, _: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!("there is no {version}")))
    }
}

/// Applies by force. Returns whether something changed.
fn apply(shop: &mut Shop, managed: &mut Managed, manager: &str, document: &str) -> bool {
    let mut applied = Shop::default();
    let document = read_document(document.as_bytes(), &mut applied).unwrap();
    let live = shop.clone();
    let apply = Apply {
        writer: &Writer {
            manager: manager.into(),
            api_version: "v1".into(),
            subresource: String::new(),
            now: Some(Time::from_unix(1, 0)),
        },
        live: &live,
        applied: &applied,
        document: &document,
        force: true,
        ignored: &FieldSet::EMPTY,
        versions: &One,
    };
    apply.run(managed, shop).unwrap()
}

fn text(shop: &Shop) -> String {
    let mut out = Vec::new();
    json::write(shop, &mut out);
    String::from_utf8(out).unwrap()
}

fn owned(managed: &Managed) -> Vec<String> {
    let entries = managed.clone().write().into_iter();
    let lines = entries.map(|e| format!("{} {}", e.manager, String::from_utf8_lossy(&e.fields_v1.unwrap().0)));
    lines.collect()
}

#[test]
fn items_come_and_go_with_their_owners() {
    let (mut shop, mut managed) = Default::default();
    apply(
        &mut shop,
        &mut managed,
        "a",
        r#"{"ports":[{"port":80,"name":"web"},{"port":53,"protocol":"UDP"}],"tags":["x","y"]}"#,
    );
    assert_eq!(
        owned(&managed),
        [
            r#"a {"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}},"f:tags":{"v:\"x\"":{},"v:\"y\"":{}}}"#
        ]
    );
    apply(
        &mut shop,
        &mut managed,
        "b",
        r#"{"ports":[{"port":443},{"port":80,"protocol":"TCP"}],"tags":["z","y"]}"#,
    );
    assert_eq!(
        text(&shop),
        r#"{"ports":[{"port":443},{"port":80,"protocol":"TCP","name":"web"},{"port":53,"protocol":"UDP"}],"tags":["x","z","y"]}"#
    );
    apply(&mut shop, &mut managed, "a", r#"{"tags":["y"]}"#);
    assert_eq!(
        text(&shop),
        r#"{"ports":[{"port":443},{"port":80,"protocol":"TCP"}],"tags":["z","y"]}"#
    );
    apply(&mut shop, &mut managed, "b", "{}");
    assert_eq!(text(&shop), r#"{"tags":["y"]}"#);
}

#[test]
fn items_are_known_by_inlined_keys() {
    let (mut shop, mut managed) = Default::default();
    apply(
        &mut shop,
        &mut managed,
        "a",
        r#"{"guards":[{"name":"n","shift":1},{"name":"m"}]}"#,
    );
    apply(
        &mut shop,
        &mut managed,
        "b",
        r#"{"guards":[{"name":"m","shift":2},{"name":"o"}]}"#,
    );
    assert_eq!(
        text(&shop),
        r#"{"guards":[{"name":"n","shift":1},{"name":"m","shift":2},{"name":"o"}]}"#
    );
    assert_eq!(
        owned(&managed),
        [
            r#"a {"f:guards":{"k:{\"name\":\"m\"}":{".":{},"f:name":{}},"k:{\"name\":\"n\"}":{".":{},"f:name":{},"f:shift":{}}}}"#,
            r#"b {"f:guards":{"k:{\"name\":\"m\"}":{".":{},"f:name":{},"f:shift":{}},"k:{\"name\":\"o\"}":{".":{},"f:name":{}}}}"#
        ]
    );
}

#[test]
fn an_empty_message_keeps_its_owner() {
    let (mut shop, mut managed) = Default::default();
    apply(&mut shop, &mut managed, "a", r#"{"owner":{}}"#);
    apply(&mut shop, &mut managed, "b", r#"{"owner":{"team":"t"}}"#);
    apply(&mut shop, &mut managed, "b", "{}");
    assert_eq!(owned(&managed), [r#"a {"f:owner":{}}"#]);
    // Of a message that nobody else has nothing is left.
    apply(&mut shop, &mut managed, "a", "{}");
    apply(&mut shop, &mut managed, "b", r#"{"owner":{"team":"t"}}"#);
    apply(&mut shop, &mut managed, "b", "{}");
    assert_eq!((text(&shop), owned(&managed).len()), ("{}".to_owned(), 0));
}

#[test]
fn lists_that_do_not_fit() {
    for (document, problem) in [
        (r#"{"tags":["a","a"]}"#, r#".tags: duplicate entries for key [="a"]"#),
        (
            r#"{"tags":[null]}"#,
            ".tags: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            r#"{"ports":[{"port":1},{"port":1,"protocol":"TCP"}]}"#,
            r#".ports: duplicate entries for key [port=1,protocol="TCP"]"#,
        ),
        (
            r#"{"ports":[{"port":1,"nope":2}]}"#,
            r#".ports[port=1,protocol="TCP"].nope: field not declared in schema"#,
        ),
        (
            r#"{"ports":[null]}"#,
            ".ports: element 0: associative list with keys may not have a null element",
        ),
        (
            r#"{"ports":["x"]}"#,
            ".ports: element 0: associative list with keys may not have non-map elements",
        ),
    ] {
        let found = read_document(document.as_bytes(), &mut Shop::default());
        assert_eq!(found.unwrap_err(), DocumentError::Schema(problem.into()));
    }
}

/// What follows the first that there is no room for is not even looked at.
#[test]
fn a_document_makes_no_more_than_a_request_may() {
    let many = |open: &str, one: &dyn Fn(usize) -> String, close: &str| {
        let all: Vec<String> = (0..200_000).map(one).collect();
        format!("{open}{}{close}", all.join(","))
    };
    for document in [
        many(r#"{"ports":["#, &|_| "{}".to_owned(), "]}"),
        many(r#"{"tags":["#, &|n| n.to_string(), "]}"),
        many("{", &|n| format!("\"unknown-{n}\":1"), "}"),
        many(r#"{"labels":{"#, &|n| format!("\"{n}\":\"\""), "}}"),
    ] {
        let found = read_document(document.as_bytes(), &mut Shop::default());
        assert_eq!(found.unwrap_err(), DocumentError::TooLarge, "{}", &document[..40]);
    }
}

/// A document of some of the fields.
fn document() -> impl Strategy<Value = String> {
    let ports = prop::sample::subsequence(
        vec![
            r#"{"port":1,"name":"a"}"#,
            r#"{"port":1,"protocol":"UDP"}"#,
            r#"{"port":2}"#,
            r#"{"port":3,"name":"c"}"#,
        ],
        0..4,
    );
    let tags = prop::sample::subsequence(vec![r#""x""#, r#""y""#, r#""z""#], 0..3);
    let labels = prop::sample::subsequence(vec![r#""k":"1""#, r#""l":"2""#, r#""m":"3""#], 0..3);
    let owner = prop::sample::select(vec!["{}", r#"{"name":"n"}"#, r#"{"team":"t"}"#, "null"]);
    let args = prop::sample::select(vec!["[]", r#"["a"]"#, r#"["b","a"]"#]);
    let parts = (ports.prop_shuffle(), tags.prop_shuffle(), labels, owner, args);
    (parts, prop::collection::vec(any::<bool>(), 5)).prop_map(|((ports, tags, labels, owner, args), with)| {
        let parts = [
            format!(r#""ports":[{}]"#, ports.join(",")),
            format!(r#""tags":[{}]"#, tags.join(",")),
            format!(r#""labels":{{{}}}"#, labels.join(",")),
            format!(r#""owner":{owner}"#),
            format!(r#""args":{args}"#),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .zip(with)
            .filter(|(_, w)| *w)
            .map(|(p, _)| p)
            .collect();
        format!("{{{}}}", parts.join(","))
    })
}

proptest! {
    #[test]
    fn laws_of_apply(steps in prop::collection::vec((0..3usize, document()), 1..6)) {
        let (mut shop, mut managed) = <(Shop, Managed)>::default();
        for (manager, document) in &steps {
            let manager = ["a", "b", "c"][*manager];
            // An object that lost its last field to an empty one comes back with the second request, as in Kubernetes.
            for _ in 0..2 {
                apply(&mut shop, &mut managed, manager, document);
            }
            // The same again changes nothing, and nobody.
            let (before, owners) = (text(&shop), owned(&managed));
            let said = read_document(document.as_bytes(), &mut Shop::default()).unwrap();
            let changed = apply(&mut shop, &mut managed, manager, document);
            // What is empty and has no content counts as a change each time too.
            prop_assert!(changed || said.restated.is_empty());
            prop_assert!(!changed || !said.restated.is_empty() || !said.hollow.is_empty());
            prop_assert_eq!(&text(&shop), &before);
            prop_assert_eq!(owned(&managed), owners);
            // What was said is so.
            let mut applied = Shop::default();
            let said = read_document(document.as_bytes(), &mut applied).unwrap();
            let mut merged = shop.clone();
            merge(&mut merged, &applied, &said.fields);
            prop_assert!(compare(&shop, &merged).is_empty());
        }
        // When all have given up everything, nothing is left.
        for manager in ["a", "b", "c"] {
            apply(&mut shop, &mut managed, manager, "{}");
        }
        prop_assert_eq!(text(&shop), "{}");
        prop_assert!(managed.is_empty());
    }

    #[test]
    fn comparison_finds_exactly_what_differs(a in document(), b in document()) {
        let read = |text: &str| {
            let mut shop = Shop::default();
            json::read(text.as_bytes(), &mut shop).unwrap();
            shop
        };
        let (a, b) = (read(&a), read(&b));
        prop_assert!(compare(&a, &a).is_empty());
        let (there, back) = (compare(&a, &b), compare(&b, &a));
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.removed, &back.added);
        prop_assert_eq!(&there.modified, &back.modified);
    }
}

#[test]
fn nobody_owns_what_has_items_without_their_key() {
    let made = |text: &str| {
        let mut shop = Shop::default();
        assert_eq!(json::read(text.as_bytes(), &mut shop), Ok(vec![]));
        let nothing = FieldSet::EMPTY;
        let text = super::created::created(&Shop::default(), &shop, &nothing, &nothing);
        String::from_utf8(text.unwrap()).unwrap()
    };
    assert_eq!(made(r#"{"guards":[{"shift":1}],"tags":["a"]}"#), "{}");
    assert!(made(r#"{"guards":[{"name":"a"}],"tags":["a"]}"#).contains("f:tags"));
    // A default stands in for a key, and so does a zero that is written.
    assert!(made(r#"{"ports":[{"port":0}]}"#).contains("f:ports"));
}
