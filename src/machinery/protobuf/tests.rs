use proptest::prelude::*;

use super::*;
use crate::decode::DecodeError;
use crate::json;
use crate::meta::v1::ListMeta;
use crate::reflect::Reflect;
use crate::reflect::budget::Budget;
use crate::sample::{FULL, Part, Widget, WidgetSpec};
use crate::wire;

fn full() -> Widget {
    let mut widget = Widget::default();
    json::read(FULL.as_bytes(), &mut widget).unwrap();
    widget
}

fn body_of(message: &dyn crate::reflect::Reflect) -> Vec<u8> {
    let mut out = Vec::new();
    write_message(message, &mut out);
    out
}

#[test]
fn everything_comes_back() {
    let bytes = encode(&full());
    let envelope = decode_envelope(&bytes).unwrap();
    assert_eq!(
        (envelope.api_version.as_ref(), envelope.kind.as_ref()),
        ("example.com/v1", "Widget")
    );
    let mut widget = Widget::default();
    read_message(envelope.raw, &mut widget).unwrap();
    assert_eq!(String::from_utf8(json::to_vec(&widget)).unwrap(), FULL);
    assert_eq!(body_of(&widget), envelope.raw);
}

#[test]
fn what_a_body_becomes_is_bounded() {
    type New = fn() -> Box<dyn Reflect>;
    let new: [(&str, usize, New); 2] = [
        ("args", 90_000, || Box::<Part>::default()),
        ("parts", 20_000, || Box::<WidgetSpec>::default()),
    ];
    for (name, few, new) in new {
        let number = new().desc().field(name).unwrap().1.number;
        for (count, fits) in [(few, true), (140_000, false)] {
            let mut body = Vec::new();
            (0..count).for_each(|_| wire::write_bytes_field(number, b"", &mut body));
            let found = read_message_within(&body, &mut *new(), &Budget::of_request());
            assert_eq!(found.is_ok(), fits, "{name}");
            assert!(fits || found == Err(DecodeError::TooLarge), "{name}");
            assert_eq!(read_message(&body, &mut *new()), Ok(()));
        }
    }
}

#[test]
fn a_field_is_found_without_the_others() {
    let widget = full();
    let body = body_of(&widget);
    let (_, metadata) = widget.desc().field("metadata").unwrap();
    assert_eq!(field(&body, metadata.number), Some(&*body_of(&widget.metadata)));
    assert_eq!(field(&body, 99), None);
    let twice = [&body[..], &body[..]].concat();
    assert_eq!(field(&twice, metadata.number), None, "there are two");
    // What is broken is not passed over.
    assert_eq!(field(&body[..body.len() - 1], metadata.number), None);
}

#[test]
fn a_mask_keeps_what_it_names_and_nothing_else() {
    let widget = full();
    let body = body_of(&widget);
    let read = |mask: &Mask| {
        let mut part = Widget::default();
        read_masked(&body, &mut part, mask).unwrap();
        part
    };
    let mut expected = Widget::default();
    expected.metadata.name = widget.metadata.name.clone();
    expected.spec.replicas = widget.spec.replicas;
    expected.spec.parts = widget.spec.parts.iter().map(|p| part_named(&p.name)).collect();
    expected.status = widget.status.clone();
    let paths = [
        "metadata.name",
        "spec.replicas",
        "spec.parts.name",
        "status",
        "status.ready",
    ];
    let part = read(&Mask::only(widget.desc(), &paths).unwrap());
    assert!(crate::reflect::equality::equal(&part, &expected));

    let mut expected = widget.clone();
    for part in &mut expected.spec.parts {
        part.args = Vec::new();
    }
    let part = read(&Mask::without(widget.desc(), "spec.parts.args"));
    assert!(crate::reflect::equality::equal(&part, &expected));
    assert!(crate::reflect::equality::equal(
        &read(&Mask::without(widget.desc(), "spec.none")),
        &widget
    ));
    for path in ["spec.none", "spec.name.x", "status.x"] {
        let refused = Mask::only(widget.desc(), &["status", path]);
        assert_eq!(refused.err(), Some(path));
    }
}

fn part_named(name: &str) -> Part {
    Part {
        name: name.to_owned(),
        ..Part::default()
    }
}

#[test]
fn a_string_is_set_as_by_reading_and_writing() {
    let mut metadata = full().metadata;
    let desc = crate::meta::v1::ObjectMeta::message_desc();
    let (_, version) = desc.field("resourceVersion").unwrap();
    let without = body_of(&metadata);
    let set = |body: &[u8]| with_string(body, desc, version.number, "12");
    metadata.resource_version = "12".into();
    let with = body_of(&metadata);
    assert_eq!(set(&without).as_ref(), Some(&with));
    assert_eq!(set(&with).as_ref(), Some(&with));
    let mut alone = Vec::new();
    write_tag_bytes(version.number, b"12", &mut alone);
    assert_eq!(set(b"").as_ref(), Some(&alone), "there was none");
    // Unknown fields would be dropped, others put in order.
    let mut unknown = without.clone();
    write_tag_bytes(1000, b"x", &mut unknown);
    assert_eq!(set(&unknown), None);
    assert_eq!(set(&[&with[..], &alone[..]].concat()), None);
    assert_eq!(set(&with[..with.len() - 1]), None);
}

#[test]
fn what_is_zero_and_what_is_absent() {
    // A plain string and list, and one that is there twice.
    let part = Part {
        name: "n".into(),
        args: vec![String::new(), "b".into()],
        ..Default::default()
    };
    assert_eq!(body_of(&part), b"\x0a\x01n\x12\x00\x1a\x00\x1a\x01b");
    // Plain scalars and messages are written, in the order of numbers; what is optional or empty is not.
    let want = b"\x0a\x00\x10\x00\x21\0\0\0\0\0\0\0\0\x52\x00\x5a\x06\x08\x00\x10\x00\x1a\x00";
    assert_eq!(body_of(&WidgetSpec::default()), want);
    // A zero in an option is there.
    let spec = WidgetSpec {
        replicas: Some(0),
        ..Default::default()
    };
    assert_eq!(body_of(&spec).len(), want.len() + 2);
}

#[test]
fn long_bodies_move_for_their_length() {
    let mut spec = WidgetSpec::default();
    for len in [0, 100, 127, 128, 300, 20_000, 3_000_000] {
        let name = "x".repeat(len);
        spec.child = Some(Box::new(WidgetSpec {
            name: name.clone(),
            ..Default::default()
        }));
        let mut back = WidgetSpec::default();
        read_message(&body_of(&spec), &mut back).unwrap();
        assert_eq!(back.child.unwrap().name, name);
    }
}

#[test]
fn reads_what_others_write() {
    // An unknown field, numbers packed and not, fields out of order, a field twice.
    let bytes = b"\x20\x01\xfa\x01\x01x\x22\x02\x02\x03\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0a\x01a\x0a\x01b";
    let mut part = Part::default();
    read_message(bytes, &mut part).unwrap();
    assert_eq!(
        (part.name.as_str(), part.numbers.as_slice()),
        ("b", [1, 2, 3, -1].as_slice())
    );
    // Entries of a map without key or value.
    let mut spec = WidgetSpec::default();
    read_message(
        b"\x3a\x03\x12\x01v\x3a\x03\x0a\x01k\x4a\x05\x0a\x01d\x12\x00",
        &mut spec,
    )
    .unwrap();
    assert_eq!((spec.selector[""].as_str(), spec.selector["k"].as_str()), ("v", ""));
    assert!(spec.data["d"].is_empty());
}

#[test]
fn refuses_what_is_broken() {
    let text = |bytes: &[u8]| read_message(bytes, &mut WidgetSpec::default()).unwrap_err().to_string();
    assert_eq!(text(b"\x08\x01"), "proto: wrong wireType = 0 for field Name");
    assert_eq!(text(b"\x0a\x05a"), "unexpected EOF");
    assert_eq!(
        text(b"\x42\x07\x0a\x01m\x12\x02\x08\x01"),
        "proto: wrong wireType = 0 for field String_"
    );
    assert_eq!(text(b"\x62\x03\x0a\x01{"), "unexpected end of JSON input");
    let mut deep = Vec::new();
    for _ in 0..300 {
        let mut outer = Vec::new();
        write_tag_bytes(14, &deep, &mut outer);
        deep = outer;
    }
    assert_eq!(text(&deep), "proto: messages nest too deeply");
    let envelope = |bytes: &[u8]| decode_envelope(bytes).unwrap_err().to_string();
    assert_eq!(envelope(b""), "empty data");
    assert_eq!(envelope(b"k8s\0"), "empty body");
    assert!(envelope(b"{}").ends_with("expected prefix [107 56 115 0]"));
}

#[test]
fn envelope_bytes() {
    let mut out = Vec::new();
    encode_as(&Part::default(), "v1", "Part", &mut out);
    assert_eq!(
        out,
        b"k8s\0\x0a\x0a\x0a\x02v1\x12\x04Part\x12\x04\x0a\x00\x12\x00\x1a\x00\x22\x00"
    );
}

#[test]
fn a_list_from_encoded_items() {
    let meta = body_of(&ListMeta {
        resource_version: "7".into(),
        ..Default::default()
    });
    let items = [body_of(&full()), body_of(&Widget::default())];
    let raw_len = tagged_len(1, meta.len()) + items.iter().map(|i| tagged_len(2, i.len())).sum::<usize>();
    let mut out = Vec::new();
    begin_envelope("example.com/v1", "WidgetList", raw_len, &mut out);
    write_tag_bytes(1, &meta, &mut out);
    for item in &items {
        write_tag_bytes(2, item, &mut out);
    }
    end_envelope(&mut out);
    let envelope = decode_envelope(&out).unwrap();
    assert_eq!((envelope.kind.as_ref(), envelope.raw.len()), ("WidgetList", raw_len));
    let mut fields = wire::Reader::new(envelope.raw);
    assert_eq!(fields.next(), Ok(Some((1, wire::Wire::Bytes(&meta)))));
    assert_eq!(fields.next(), Ok(Some((2, wire::Wire::Bytes(&items[0])))));
    assert_eq!(fields.next(), Ok(Some((2, wire::Wire::Bytes(&items[1])))));
    assert_eq!(fields.next(), Ok(None));
}

#[test]
fn frames_of_a_watch() {
    let mut out = Vec::new();
    write_watch_frame("ADDED", b"abc", &mut out);
    assert_eq!(out, b"\x00\x00\x00\x0e\x0a\x05ADDED\x12\x05\x0a\x03abc");
    assert_eq!(out.len(), 4 + 14);
    let object = vec![0; 70_000];
    out.clear();
    write_watch_frame("MODIFIED", &object, &mut out);
    assert_eq!(
        u32::from_be_bytes([out[0], out[1], out[2], out[3]]) as usize,
        out.len() - 4
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_message(&bytes, &mut Widget::default());
        let _ = decode_envelope(&[b"k8s\0".as_slice(), &bytes].concat());
    }

    #[test]
    fn mutated_documents_are_safe_and_stable(at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let mut bytes = body_of(&full());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let mut widget = Widget::default();
        if read_message(&bytes, &mut widget).is_ok() {
            let shown = body_of(&widget);
            let mut again = Widget::default();
            prop_assert_eq!(read_message(&shown, &mut again), Ok(()));
            prop_assert_eq!(body_of(&again), shown);
        }
    }
}
