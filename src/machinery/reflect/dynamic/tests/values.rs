//! Values of dynamic messages that a struct can't hold: any value, whatever is declared, and what is no field.

use std::sync::Arc;

use super::super::twin;
use super::{read, text, widget};
use crate::decode::DecodeError;
use crate::json;
use crate::reflect::{Desc, FieldDesc, Flags, ListType, MessageDesc, Names, Ref, Type, Unknown, Value, member};
use crate::sample::Part;

fn element(ty: Type) -> Ref<FieldDesc> {
    Ref::Shared(Arc::new(FieldDesc::shared("", ty, Flags::NONE)))
}

/// A message as a schema might declare it, which keeps what it does not declare.
fn crontab() -> Desc {
    let fields = vec![
        FieldDesc::shared("cronSpec", Type::String, Flags::REQUIRED),
        FieldDesc::shared("replicas", Type::Int64, Flags::NONE),
        FieldDesc::shared("weight", Type::Double, Flags::NULLABLE),
        FieldDesc::shared("tags", Type::List(element(Type::String)), Flags::NONE).with_list(ListType::Set),
        FieldDesc::shared(
            "matrix",
            Type::List(element(Type::List(element(Type::Int64)))),
            Flags::NONE,
        ),
        FieldDesc::shared("labels", Type::Map(element(Type::String)), Flags::NONE),
        FieldDesc::shared("template", Type::Any, Flags::NONE),
        FieldDesc::shared(
            "parts",
            Type::List(element(Type::Message(twin::of(Part::message_desc(), 1).unwrap()))),
            Flags::NONE,
        ),
    ];
    MessageDesc::shared("com.example.v1.CronTab", None, fields, Unknown::Kept).unwrap()
}

#[test]
fn every_value_stays_as_it_came() {
    let desc = crontab();
    for document in [
        r#"{"cronSpec":5,"labels":["a"],"matrix":{},"replicas":"x","tags":{},"weight":true}"#,
        r#"{"cronSpec":null,"matrix":[[1,2.5,null],"x",[["deep"]]],"replicas":1.5,"tags":[null,1,"a"],"weight":1}"#,
        r#"{"labels":{"a":1,"b":null,"c":{}},"parts":[{"args":"x","name":[]},5,null],"template":null}"#,
        r#"{"replicas":9223372036854775807,"template":{"a":{"b":[{},[],"",0,-0.5,1e-7,1e+21]}},"weight":12345678901234}"#,
        r#"{"aFirst":{"x":[1]},"cronSpec":"* *","template":"t","zLast":null,"ü\"\n":"<>"}"#,
    ] {
        let message = read(&desc, document);
        let shown = document.replace("<>", "\\u003c\\u003e");
        assert_eq!(text(&*message), shown);
        assert_eq!(text(&*read(&desc, &text(&*message))), shown);
        assert_eq!(text(&*message.clone_message()), shown);
    }
}

#[test]
fn numbers_are_whole_where_they_are_written_so() {
    let message = read(
        &crontab(),
        r#"{"replicas":1.0,"weight":3,"template":[1e2,18446744073709551615]}"#,
    );
    assert_eq!(
        text(&*message),
        r#"{"replicas":1,"template":[100,18446744073709552000],"weight":3}"#
    );
    let refused = json::read(br#"{"template":1e400}"#, &mut *crontab().new_message());
    assert!(matches!(refused, Err(DecodeError::Value(_))));
}

#[test]
fn structs_within_are_read_as_everywhere() {
    for (document, error) in [
        (
            r#"{"metadata":{"labels":[]}}"#,
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            r#"{"metadata":5}"#,
            "json: cannot unmarshal number into Go value of type v1.ObjectMeta",
        ),
    ] {
        let error_found = json::read(document.as_bytes(), &mut *widget().new_message()).unwrap_err();
        assert_eq!(error_found.to_string(), error);
    }
}

#[test]
fn what_is_no_field_is_kept_or_dropped() {
    let dropped = widget();
    let mut message = dropped.new_message();
    let problems = json::read(br#"{"spec":{"nope":{"a":1}}}"#, &mut *message).unwrap();
    assert_eq!(problems[0].to_string(), r#"unknown field "spec.nope""#);
    assert!(!text(&*message).contains("nope"));

    let mut message = crontab().new_message();
    let problems = json::read(br#"{"nope":{"a":1,"a":2},"nope":[{"b":1,"b":1}]}"#, &mut *message).unwrap();
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            r#"duplicate field "nope.a""#,
            r#"duplicate field "nope""#,
            r#"duplicate field "nope[0].b""#
        ]
    );
    assert_eq!(text(&*message), r#"{"nope":[{"b":1}]}"#);
    let (field, value) = member(&*message, "nope").unwrap();
    assert!(matches!((&field.ty, value), (Type::Any, Value::List(_))));
}

#[test]
fn nesting_is_bounded() {
    let deep = |levels: usize| format!("{{\"template\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    let read = |text: String| json::read(text.as_bytes(), &mut *crontab().new_message());
    assert!(read(deep(150)).is_ok());
    assert!(matches!(read(deep(250)), Err(DecodeError::Syntax { .. })));
}

#[test]
fn a_table_takes_each_name_once_and_inlines_nothing() {
    let field = |name: &str, flags| FieldDesc::shared(name, Type::String, flags);
    let table = |fields| MessageDesc::shared("x", None, fields, Unknown::Dropped);
    let twice = table(vec![
        field("a", Flags::NONE),
        field("b", Flags::NONE),
        field("a", Flags::NONE),
    ]);
    assert_eq!(twice.err().unwrap().to_string(), "a: the field is declared twice");
    let inlined = table(vec![field("a", Flags::INLINE)]);
    assert_eq!(
        inlined.err().unwrap().to_string(),
        "a: fields of dynamic messages are not inlined"
    );
}

fn wide(fields: usize) -> Desc {
    let field = |n: usize| FieldDesc::shared(format!("property{n:04}"), Type::String, Flags::NONE);
    let mut all: Vec<FieldDesc> = (0..fields).map(field).collect();
    all.reverse();
    MessageDesc::shared("com.example.v1.Wide", None, all, Unknown::Dropped).unwrap()
}

#[test]
fn wide_tables_are_searched_by_name() {
    let desc = wide(1000);
    let members: Vec<String> = (0..1000).map(|n| format!("\"property{n:04}\":\"{n}\"")).collect();
    let shuffled: Vec<&str> = (0..1000).map(|n| members[n * 7 % 1000].as_str()).collect();
    let message = read(&desc, &format!("{{{}}}", shuffled.join(",")));
    assert_eq!(text(&*message), format!("{{{}}}", members.join(",")));
    assert!(desc.field("property0999").is_some() && desc.field("property1000").is_none() && desc.field("").is_none());
    // Repeated fields are found behind the first 128 too.
    let twice = format!("{{{},{}}}", members[900], members[900]);
    let problems = json::read(twice.as_bytes(), &mut *desc.new_message()).unwrap();
    assert_eq!(problems.len(), 1);
}

#[test]
fn the_time_of_reading_does_not_grow_with_the_square_of_the_fields() {
    let members: Vec<String> = (0..8000).rev().map(|n| format!("\"property{n:04}\":\"\"")).collect();
    let document = format!("{{{}}}", members.join(","));
    let time = |desc: &Desc| {
        let begin = std::time::Instant::now();
        assert!(
            json::read(document.as_bytes(), &mut *desc.new_message())
                .unwrap()
                .is_empty()
        );
        begin.elapsed()
    };
    // As keys of a map, which are looked up too; the square would be a hundred times that.
    let (fields, keys) = (wide(8000), crontab());
    let fastest = |desc: &Desc| (0..5).map(|_| time(desc)).min().unwrap();
    let (fields, keys) = (fastest(&fields), fastest(&keys));
    assert!(fields < keys * 15, "{fields:?} {keys:?}");
}

/// What a table takes in memory: its fields, their names and indexes.
fn bytes_of(desc: &MessageDesc) -> usize {
    let names: usize = desc
        .fields
        .iter()
        .filter(|f| f.json.is_heap_allocated())
        .map(|f| f.json.len() + 16)
        .sum();
    let indexes = (desc.by_name.len() + desc.by_number.len() + desc.inlined.len()) * size_of::<u16>();
    size_of::<MessageDesc>() + size_of_val(&*desc.fields) + names + indexes
}

#[test]
fn a_table_of_200_fields_takes_at_most_40_kib() {
    let bytes = bytes_of(&wide(200));
    assert!(bytes <= 40 << 10, "{bytes}");
    let long = |n: usize| {
        let field = FieldDesc::shared(format!("aPropertyOfUsualLen{n:03}"), Type::Int64, Flags::NONE);
        let rules = crate::reflect::Rules {
            minimum: Some(0.0),
            enum_values: Names::NONE,
            ..crate::reflect::Rules::NONE
        };
        // Every fourth has a rule.
        if n.is_multiple_of(4) {
            field.with_rules(Ref::Shared(Arc::new(rules)))
        } else {
            field
        }
    };
    let desc = MessageDesc::shared("x", None, (0..200).map(long).collect(), Unknown::Dropped).unwrap();
    let rules = desc.fields.iter().filter(|f| f.has_rules()).count() * (size_of::<crate::reflect::Rules>() + 16);
    assert!(bytes_of(&desc) + rules <= 40 << 10, "{} {rules}", bytes_of(&desc));
}

#[test]
fn ids_are_never_used_again() {
    let ids: Vec<u64> = (0..100).map(|_| wide(1).id.get()).collect();
    let mut sorted = ids.clone();
    sorted.dedup();
    assert_eq!(ids, sorted, "ascending, whatever places in memory are used again");
    let desc = wide(1);
    assert_eq!(desc.id.get(), desc.clone().id.get());
    assert_ne!(Part::message_desc().id.get(), desc.id.get());
}
