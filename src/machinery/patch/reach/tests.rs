use std::collections::BTreeMap;

use super::*;
use crate::meta::v1::ManagedFieldsEntry;
use crate::patch::{merge, strategic};
use crate::reflect::quantity::Quantity;
use crate::reflect::raw::RawJson;
use crate::reflect::time::Time;

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(
    name = "io.example.api.v1.Shop",
    group = "example.com",
    version = "v1",
    kind = "Shop",
    object
)]
struct Shop {
    #[field(json = "metadata", number = 1)]
    metadata: ObjectMeta,
    #[field(json = "spec", number = 2)]
    spec: ShopSpec,
    #[field(json = "status", number = 3, omit_zero)]
    status: ShopStatus,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.ShopSpec")]
struct ShopSpec {
    #[field(json = "replicas", number = 1)]
    replicas: Option<i32>,
    #[field(json = "name", number = 2, always)]
    name: String,
    #[field(
        json = "goods",
        number = 3,
        always,
        list = "map",
        keys("name"),
        patch("merge"),
        merge_key = "name"
    )]
    goods: Vec<Good>,
    #[field(json = "limits", number = 4)]
    limits: BTreeMap<String, Quantity>,
    #[field(json = "hours", number = 5)]
    hours: Option<Box<Hours>>,
    #[field(json = "strategy", number = 6, patch("replace"))]
    strategy: Hours,
    #[field(json = "owner", number = 7, inline)]
    owner: Owner,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Good")]
struct Good {
    #[field(json = "name", number = 1, always)]
    name: String,
    #[field(json = "price", number = 2)]
    price: i64,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Hours")]
struct Hours {
    #[field(json = "open", number = 1)]
    open: i32,
    #[field(json = "close", number = 2)]
    close: Option<i32>,
    #[field(json = "days", number = 3)]
    days: Vec<String>,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Owner")]
struct Owner {
    #[field(json = "person", number = 1)]
    person: String,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.ShopStatus")]
struct ShopStatus {
    #[field(json = "phase", number = 1)]
    phase: String,
    #[field(json = "since", number = 2)]
    since: Option<Time>,
    #[field(json = "hours", number = 3)]
    hours: Option<Box<Hours>>,
}

const SHOP: &str = r#"{"kind":"Shop","apiVersion":"example.com/v1","metadata":{"name":"s","labels":{"a":"1","b":"2"},
    "managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
    "spec":{"replicas":2,"name":"x","goods":[{"name":"tea","price":3},{"name":"rice"}],"limits":{"cpu":"100m"},
    "hours":{"open":8,"close":18,"days":["mo","tu"]},"strategy":{"open":1,"close":2},"person":"ann"},
    "status":{"phase":"Open","since":"2024-01-02T03:04:05Z"}}"#;

fn shop() -> Shop {
    let mut shop = Shop::default();
    json::read(SHOP.as_bytes(), &mut shop).unwrap();
    shop
}

fn patched(document: &[u8], patch: &str, strategic: bool) -> Vec<u8> {
    let outcome = match strategic {
        true => strategic::apply(document, patch.as_bytes(), Shop::message_desc(), true),
        false => merge::apply(document, patch.as_bytes(), true),
    };
    outcome.unwrap().0
}

fn read(text: &[u8], shop: &mut Shop, strategic: bool) -> String {
    match strategic {
        true => json::restore(text, shop),
        false => json::read(text, shop),
    }
    .unwrap();
    String::from_utf8(json::to_vec(shop)).unwrap()
}

const PATCHES: [&str; 17] = [
    r#"{"status":{"phase":"Closed"}}"#,
    r#"{"status":{"phase":null,"hours":{"open":1,"close":null}}}"#,
    r#"{"status":null}"#,
    r#"{"metadata":{"labels":{"a":null,"c":"3"}}}"#,
    r#"{"metadata":{"annotations":{"x":"y"},"finalizers":["a/b"]},"spec":{"replicas":0}}"#,
    r#"{"metadata":{"managedFields":[]}}"#,
    r#"{"spec":{"replicas":null,"name":null}}"#,
    r#"{"spec":{"goods":[{"name":"rice","price":9},{"name":"salt"}]}}"#,
    r#"{"spec":{"goods":null}}"#,
    r#"{"spec":{"limits":{"cpu":"2","memory":"1Gi"}}}"#,
    r#"{"spec":{"hours":{"close":null,"days":["we"]}}}"#,
    r#"{"spec":{"hours":null,"strategy":{"open":5}}}"#,
    r#"{"spec":{"strategy":{"close":null}}}"#,
    r#"{"spec":{"person":"bob"}}"#,
    r#"{"spec":{}}"#,
    r#"{"spec":{"hours":{"$patch":"replace","open":3}}}"#,
    r#" { } "#,
];

#[test]
fn a_part_is_patched_as_the_whole_is() {
    for patch in PATCHES {
        for strategic in [false, true] {
            if patch.contains('$') && !strategic {
                continue;
            }
            for stored in [shop(), Shop::default()] {
                let whole = patched(&json::to_vec(&stored), patch, strategic);
                let expected = read(&whole, &mut Shop::default(), strategic);
                let reach = Reach::of(&stored, patch.as_bytes()).unwrap();
                let part = patched(&reach.document, patch, strategic);
                let mut object = stored.clone();
                reach.clear(&mut object);
                assert_eq!(read(&part, &mut object, strategic), expected, "{patch}");
            }
        }
    }
}

#[test]
fn a_part_is_what_the_patch_says() {
    let reached = |patch: &str| Reach::of(&shop(), patch.as_bytes()).map(|r| String::from_utf8(r.document).unwrap());
    let is = |patch: &str, document: &str| assert_eq!(reached(patch).as_deref(), Some(document), "{patch}");
    is(r#"{"status":{"phase":"x"}}"#, r#"{"status":{"phase":"Open"}}"#);
    is(
        r#"{"spec":{"hours":{"open":1},"replicas":1}}"#,
        r#"{"spec":{"hours":{"open":8},"replicas":2}}"#,
    );
    is(
        r#"{"spec":{"strategy":{"open":1}}}"#,
        r#"{"spec":{"strategy":{"open":1,"close":2}}}"#,
    );
    // Whatever is no plain change of fields is a change of all around them.
    for patch in [
        r#"{"kind":"Shop","status":{}}"#,
        r#"{"unknown":1}"#,
        r#"{"status":{},"status":null}"#,
        r#"{"$patch":"delete"}"#,
        "[]",
        "null",
        "{",
    ] {
        assert!(reached(patch).is_none(), "{patch}");
    }
    let whole = reached(r#"{"spec":{"person":"bob"}}"#).unwrap();
    assert!(
        whole.contains(r#""goods":[{"name":"tea","price":3}"#) && !whole.contains("status"),
        "{whole}"
    );
}

#[test]
fn raw_json_and_written_empty_lists_are_patched_whole() {
    let of = |object: &dyn Kind| Reach::of(object, br#"{"metadata":{"labels":{"a":"b"}}}"#).is_some();
    assert!(of(&shop()));
    let widget = crate::sample::Widget::default();
    assert!(!of(&widget), "it has raw JSON");
    // The sets of fields in metadata are no hindrance.
    let mut shop = shop();
    shop.metadata.managed_fields = vec![ManagedFieldsEntry {
        fields_v1: Some(RawJson::from(br#"{"f:a":{}}"#.to_vec())),
        ..ManagedFieldsEntry::default()
    }];
    assert!(of(&shop));
}
