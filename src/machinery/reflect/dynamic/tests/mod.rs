//! A struct and its dynamic twin do the same, but for the order of keys and for what Go tells apart in a tree of maps:
//! absent, null and zero.

mod owners;
mod random;
mod rules;
mod values;

use super::twin;
use super::{DynamicMessage, DynamicObject};
use crate::json::{self, sorted};
use crate::reflect::budget::Budget;
use crate::reflect::{Desc, Reflect};
use crate::sample::{FULL, Widget};
use crate::{copy, defaults, equality, patch, yaml};

/// The twin of the sample that has one of everything.
pub(super) fn widget() -> Desc {
    twin::of(Widget::message_desc(), 4).unwrap()
}

pub(super) fn read(desc: &Desc, text: &str) -> Box<dyn Reflect> {
    let mut message = desc.new_message();
    json::read(text.as_bytes(), &mut *message).unwrap();
    message
}

pub(super) fn typed(text: &str) -> Widget {
    let mut widget = Widget::default();
    json::read(text.as_bytes(), &mut widget).unwrap();
    widget
}

/// As JSON, without the type.
pub(super) fn text(message: &dyn Reflect) -> String {
    let mut out = Vec::new();
    json::write(message, &mut out);
    String::from_utf8(out).unwrap()
}

/// As a tree of maps.
pub(super) fn tree(message: &dyn Reflect) -> String {
    String::from_utf8(sorted(text(message).as_bytes())).unwrap()
}

fn object(text: &str) -> DynamicObject {
    let mut object = DynamicObject::new(widget());
    json::read(text.as_bytes(), &mut object).unwrap();
    object
}

#[test]
fn json_is_read_and_written_in_the_order_of_keys() {
    let written = json::to_vec(&object(FULL));
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(&sorted(FULL.as_bytes()))
    );
    // Over what it holds, again.
    let mut again = object(FULL);
    json::read(&written, &mut again).unwrap();
    assert_eq!(json::to_vec(&again), written);
}

#[test]
fn a_strict_decoder_objects_to_the_same() {
    let documents = [
        r#"{"apiVersion":"v1","kind":"x","kind":"y","nope":1,"spec":{"size":1,"size":2,"foo":{"a":1}}}"#,
        r#"{"spec":{"parts":[{"name":"a","nope":1},{"args":[],"args":["x"]}],"selector":{"a":"1","a":"2"}}}"#,
        r#"{"spec":{"path":"a","path":"b","local":{"x":1},"claims":[{"kind":"Claim","apiVersion":"v1","y":2}]}}"#,
        r#"{"metadata":{"name":"x","name":"y","foo":1,"labels":{"a":"","a":""}}}"#,
    ];
    for document in documents {
        let strict = |message: &mut dyn Reflect| {
            let problems = json::read_within(document.as_bytes(), message, &Budget::of_request()).unwrap();
            let mut problems = problems.iter().map(ToString::to_string).collect::<Vec<_>>();
            // They are told in another order.
            problems.sort();
            problems
        };
        let found = strict(&mut Widget::default());
        assert!(!found.is_empty());
        assert_eq!(strict(&mut *widget().new_message()), found, "{document}");
    }
}

#[test]
fn of_a_repeated_member_the_last_one_counts() {
    let twice = read(&widget(), r#"{"spec":{"size":1,"name":"a"},"spec":{"size":2}}"#);
    let once = read(&widget(), r#"{"spec":{"size":2}}"#);
    assert_eq!(text(&*twice), text(&*once));
    // A struct is read again over what it holds.
    assert_eq!(
        typed(r#"{"spec":{"size":1,"name":"a"},"spec":{"size":2}}"#).spec.name,
        "a"
    );
}

#[test]
fn yaml_is_read_and_written() {
    let yaml_text = "spec:\n  replicas: 3\n  name: x\n  parts:\n  - name: p\n    args: [q]\n  selector:\n    k: v\n";
    let document = yaml::to_json(yaml_text.as_bytes()).unwrap();
    let twin = object(std::str::from_utf8(&document).unwrap());
    let written = yaml::from_json(&json::to_vec(&twin)).unwrap();
    let again = yaml::to_json(&written).unwrap();
    assert_eq!(again, json::to_vec(&twin));
    assert!(
        String::from_utf8(written)
            .unwrap()
            .starts_with("apiVersion: example.com/v1\nkind: Widget\n")
    );
}

#[test]
fn defaults_are_the_same() {
    for document in [
        r#"{"spec":{"name":"x","parts":[{"name":"a"},{"name":"b","protocol":"UDP","args":["z"]}],"local":{"name":"l"}}}"#,
        r#"{"spec":{"name":"x","replicas":0,"parts":[{"name":"c"}],"child":{"name":"c","parts":[{"name":"d"}]}}}"#,
    ] {
        let (mut widget_struct, mut twin) = (typed(document), read(&widget(), document));
        assert!(!equality::equal(&typed(&text(&*twin)), &Widget::default()));
        defaults::apply(&mut widget_struct);
        defaults::apply(&mut *twin);
        assert!(
            equality::equal(&typed(&text(&*twin)), &widget_struct),
            "{}",
            text(&*twin)
        );
        assert!(text(&*twin).contains("TCP"));
    }
}

#[test]
fn null_gets_the_default_where_it_is_no_value() {
    let mut twin = read(&widget(), r#"{"spec":{"replicas":null,"enabled":null}}"#);
    assert!(text(&*twin).contains(r#""spec":{"enabled":null,"replicas":null}"#));
    defaults::apply(&mut *twin);
    assert!(text(&*twin).contains(r#""spec":{"enabled":null,"replicas":2}"#));
}

#[test]
fn copies_are_equal_until_they_are_changed() {
    let desc = widget();
    let full = read(&desc, FULL);
    let mut copied = desc.new_message();
    copy::copy_message(&mut *copied, &*full);
    for copied in [copied, full.clone_message()] {
        assert!(equality::equal(&*full, &*copied));
        assert_eq!(text(&*full), text(&*copied));
    }
    // To a struct and back, but for what a struct inlines.
    let mut struct_ = Widget::default();
    let plain = FULL.replace(r#""path":"/x","local":{"name":"l"},"#, "");
    copy::copy_named(&mut struct_, &*read(&desc, &plain));
    assert_eq!(text(&struct_), text(&typed(&plain)));
    let mut back = desc.new_message();
    copy::copy_named(&mut *back, &struct_);
    assert!(equality::equal(&typed(&text(&*back)), &struct_));
    assert!(!text(&*back).contains("ratio\":0"), "{}", text(&*back));
}

#[test]
fn equality_sees_every_difference() {
    let desc = widget();
    let full = read(&desc, FULL);
    for (from, to) in [
        (r#""size":-9"#, r#""size":-8"#),
        (r#""enabled":false"#, r#""enabled":null"#),
        (r#""args":["q",""]"#, r#""args":["q"]"#),
        (r#""selector":{"k":"v"}"#, r#""selector":{}"#),
        (r#""selector":{"k":"v"},"#, ""),
        (r#""c":"""#, r#""d":"""#),
        (r#""port":"http""#, r#""port":80"#),
        (r#"{"y":null}"#, r#"{}"#),
        (r#""timeout":"1m30s""#, r#""timeout":"1m31s""#),
    ] {
        let other = FULL.replacen(from, to, 1);
        assert_ne!(other, FULL, "{from}");
        assert!(!equality::equal(&*full, &*read(&desc, &other)), "{from} {to}");
    }
    // Quantities compare by value; null is not absent.
    let other = read(&desc, &FULL.replace("100m", "0.1"));
    assert!(equality::equal(&*full, &*other));
    let null = read(&desc, r#"{"spec":{"selector":null}}"#);
    assert!(!equality::equal(&*null, &*read(&desc, r#"{"spec":{}}"#)));
}

#[test]
fn patches_make_the_same_of_both() {
    let merges = [
        r#"{"spec":{"replicas":5,"parts":[{"name":"z"}],"raw":{"z":null,"n":1}}}"#,
        r#"{"spec":{"selector":{"k":null,"l":"m"},"path":"/y"},"metadata":{"labels":{"a":"c"}}}"#,
    ];
    let operations = [
        r#"[{"op":"replace","path":"/spec/replicas","value":7},{"op":"add","path":"/spec/parts/-","value":{"name":"n"}}]"#,
        r#"[{"op":"remove","path":"/spec/limits/cpu"},{"op":"test","path":"/spec/port","value":"http"}]"#,
    ];
    let json_patch = |document: &[u8], body: &str| {
        let (patch, _) = patch::json::JsonPatch::decode(body.as_bytes(), true).unwrap();
        patch.apply(document).unwrap()
    };
    let merge = |document: &[u8], body: &str| patch::merge::apply(document, body.as_bytes(), true).unwrap().0;
    let both = |apply: &dyn Fn(&[u8]) -> Vec<u8>| {
        let of_struct = apply(&json::to_vec(&typed(FULL)));
        let of_twin = apply(&json::to_vec(&object(FULL)));
        let [of_struct, of_twin] = [of_struct, of_twin].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(tree(&*read(&widget(), &of_struct)), text(&*read(&widget(), &of_twin)));
    };
    merges.iter().for_each(|body| both(&|document| merge(document, body)));
    operations
        .iter()
        .for_each(|body| both(&|document| json_patch(document, body)));
}

#[test]
fn a_patch_reaches_the_fields_that_it_names() {
    use crate::patch::Reach;
    use crate::reflect::object::Kind;
    let body = br#"{"spec":{"size":3},"metadata":{"labels":{"n":"1"}}}"#;
    let full = object(FULL);
    let reach = Reach::of(&full, body).unwrap();
    let whole = patch::merge::apply(&json::to_vec(&full), body, true).unwrap().0;
    let (part, _) = patch::merge::apply(&reach.document, body, true).unwrap();
    let mut patched = full.clone();
    reach.clear(patched.as_reflect_mut());
    json::read(&part, patched.as_reflect_mut()).unwrap();
    assert_eq!(
        json::to_vec(&patched),
        json::to_vec(&object(std::str::from_utf8(&whole).unwrap()))
    );
    // What is kept beside the fields is no field.
    assert!(Reach::of(&full, br#"{"other":1}"#).is_none());
}

#[test]
fn downcasts_find_the_dynamic_types() {
    use crate::reflect::object::Object;
    let boxed: Box<dyn Object> = widget().new_object();
    assert_eq!(boxed.gvk().to_string(), "example.com/v1, Kind=Widget");
    let spec = boxed.downcast_ref::<DynamicObject>().unwrap().message().value("spec");
    assert!(spec.is_none_or(|value| matches!(value, super::DynamicValue::Absent)));
    assert!(boxed.downcast_ref::<DynamicMessage>().is_none());
}
