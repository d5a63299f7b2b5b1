use proptest::prelude::*;

use super::*;
use crate::decode::{DecodeError, TypeMeta};
use crate::meta::v1::ObjectMeta;
use crate::reflect::Reflect;
use crate::reflect::budget::Budget;
use crate::sample::{FULL, Part, Widget, WidgetSpec};

fn json_of(widget: &Widget) -> String {
    String::from_utf8(to_vec(widget)).unwrap()
}

fn spec_of(json: &str) -> Result<(WidgetSpec, Vec<String>), DecodeError> {
    let mut spec = WidgetSpec::default();
    let problems = read(json.as_bytes(), &mut spec)?;
    Ok((spec, problems.iter().map(ToString::to_string).collect()))
}

#[test]
fn everything_comes_back() {
    let mut widget = Widget::default();
    assert_eq!(read(FULL.as_bytes(), &mut widget), Ok(vec![]));
    assert_eq!(json_of(&widget), FULL);
}

#[test]
fn what_a_document_becomes_is_bounded() {
    let item = |count: usize, item: &str, field: &str| format!("{{\"{field}\":[{}]}}", vec![item; count].join(","));
    let keys = |count: usize| {
        (0..count)
            .map(|n| format!("\"{n}\":\"\""))
            .collect::<Vec<_>>()
            .join(",")
    };
    for (text, fits) in [
        (item(90_000, "\"\"", "args"), true),
        (item(140_000, "\"\"", "args"), false),
        (item(20_000, "{}", "parts"), true),
        (item(140_000, "{}", "parts"), false),
        (item(140_000, "null", "parts"), false),
    ] {
        let shown = &text[..20];
        let budget = Budget::of_request();
        let mut message: Box<dyn Reflect> = match shown.contains("args") {
            true => Box::new(Part::default()),
            false => Box::new(WidgetSpec::default()),
        };
        let found = read_within(text.as_bytes(), &mut *message, &budget);
        assert_eq!(found.is_ok(), fits, "{shown}");
        assert_eq!(budget.is_exhausted(), !fits, "{shown}");
        assert!(fits || found == Err(DecodeError::TooLarge), "{shown}");
        // What is stored is read, however it came there.
        assert!(read(text.as_bytes(), &mut *message).is_ok(), "{shown}");
    }
    for (count, fits) in [(65_000, true), (70_000, false)] {
        let labels = format!("{{\"labels\":{{{}}}}}", keys(count));
        let found = read_within(labels.as_bytes(), &mut ObjectMeta::default(), &Budget::of_request());
        assert_eq!(found.is_ok(), fits, "{count} labels");
    }
    // The rest is not looked at.
    let broken = item(140_000, "{}", "parts").replace("]}", "");
    let found = read_within(broken.as_bytes(), &mut WidgetSpec::default(), &Budget::of_request());
    assert_eq!(found, Err(DecodeError::TooLarge));
}

#[test]
fn empty_object_shows_what_is_always_written() {
    let want = concat!(
        r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{},"#,
        r#""spec":{"name":"","parts":null,"port":0,"tags":null}}"#
    );
    assert_eq!(json_of(&Widget::default()), want);
}

#[test]
fn numbers_as_go_prints_them() {
    for (number, want) in [
        (0.1, "0.1"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.25e-7, "1.25e-7"),
        (0.000001, "0.000001"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ] {
        let spec = WidgetSpec {
            ratio: number,
            ..Default::default()
        };
        let mut out = Vec::new();
        write(&spec, &mut out);
        let want = format!("{{\"name\":\"\",\"ratio\":{want},\"parts\":null,\"port\":0,\"tags\":null}}");
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}

#[test]
fn order_and_white_space_do_not_matter() {
    let (spec, problems) =
        spec_of(" {\t\"size\" : 3 ,\n\"path\":\"\\u002fp\", \"name\":\"n\",\r\"n\\u0061me2\":1, \"local\":{}}\n")
            .unwrap();
    assert_eq!(
        (spec.size, spec.name.as_str(), spec.source.path.as_deref()),
        (3, "n", Some("/p"))
    );
    assert!(spec.source.local.is_some());
    assert_eq!(problems, ["unknown field \"name2\""]);
}

#[test]
fn strict_problems_in_order_with_paths() {
    let cases: &[(&str, &[&str])] = &[
        (
            r#"{"foo":1,"Name":"x"}"#,
            &[r#"unknown field "foo""#, r#"unknown field "Name""#],
        ),
        (r#"{"parts":[{},{"x":{"y":1}}]}"#, &[r#"unknown field "parts[1].x""#]),
        (
            r#"{"child":{"child":{"name":"a","name":"b"}}}"#,
            &[r#"duplicate field "child.child.name""#],
        ),
        (r#"{"path":"a","path":"b"}"#, &[r#"duplicate field "path""#]),
        (r#"{"local":{"z":1}}"#, &[r#"unknown field "local.z""#]),
        (
            r#"{"selector":{"a.b":"1","a.b":"2"}}"#,
            &[r#"duplicate field "selector.a.b""#],
        ),
        (
            r#"{"selector":{"a":"1"},"selector":{"a":"2"}}"#,
            &[r#"duplicate field "selector""#],
        ),
        (
            r#"{"kind":"a","kind":"b","apiVersion":"c"}"#,
            &[r#"duplicate field "kind""#],
        ),
        (r#"{"child":{"kind":"a"}}"#, &[r#"unknown field "child.kind""#]),
        (
            r#"{"claims":[{"kind":"x","apiVersion":null,"kind":"y","Kind":"z"}]}"#,
            &[
                r#"duplicate field "claims[0].kind""#,
                r#"unknown field "claims[0].Kind""#,
            ],
        ),
        (r#"{"foo":1,"foo":2}"#, &[r#"unknown field "foo""#]),
        (r#"{"a\"\n":1}"#, &[r#"unknown field "a\"\n""#]),
    ];
    for (json, want) in cases {
        assert_eq!(spec_of(json).unwrap().1, *want, "{json}");
    }
    let many: Vec<String> = (0..200).map(|i| format!("\"f{i}\":0")).collect();
    assert_eq!(spec_of(&format!("{{{}}}", many.join(","))).unwrap().1.len(), 100);
}

#[test]
fn the_last_of_several_wins() {
    let (spec, _) = spec_of(
        r#"{"name":"a","name":"b","parts":[{"name":"x","args":["1"]},{}],"parts":[{"protocol":"P"}],
           "selector":{"a":"1","b":"1"},"selector":{"b":"2"},"child":{"size":1},"child":{"ratio":2}}"#,
    )
    .unwrap();
    assert_eq!(spec.name, "b");
    // As Go does, a repeated list is read over the first one, a repeated message or map adds to it.
    assert_eq!(
        (
            spec.parts.len(),
            spec.parts[0].name.as_str(),
            spec.parts[0].protocol.as_str()
        ),
        (1, "x", "P")
    );
    assert_eq!((spec.selector["a"].as_str(), spec.selector["b"].as_str()), ("1", "2"));
    let child = spec.child.unwrap();
    assert_eq!((child.size, child.ratio), (1, 2.0));
}

#[test]
fn null_empties() {
    let mut spec = spec_of(r#"{"replicas":1,"name":"n","parts":[{}],"tags":{"a":"b"},"child":{"size":2}}"#)
        .unwrap()
        .0;
    let nulls = r#"{"replicas":null,"name":null,"parts":null,"tags":null,"child":null,"port":null,"size":null}"#;
    assert_eq!(read(nulls.as_bytes(), &mut spec), Ok(vec![]));
    assert!(spec.replicas.is_none() && spec.parts.is_empty() && spec.tags.is_empty() && spec.child.is_none());
    assert_eq!(spec.name, "n");
    assert_eq!(read(b"null", &mut spec), Ok(vec![]));
}

#[test]
fn values_of_a_wrong_type() {
    let field = |what: &str, field: &str, go: &str| {
        format!("json: cannot unmarshal {what} into Go struct field {field} of type {go}")
    };
    let cases = [
        (r#"{"replicas":"1"}"#, field("string", "WidgetSpec.replicas", "int32")),
        (
            r#"{"replicas":1.0}"#,
            field("number 1.0", "WidgetSpec.replicas", "int32"),
        ),
        (
            r#"{"replicas":1e1}"#,
            field("number 1e1", "WidgetSpec.replicas", "int32"),
        ),
        (
            r#"{"replicas":2147483648}"#,
            field("number 2147483648", "WidgetSpec.replicas", "int32"),
        ),
        (
            r#"{"size":9223372036854775808}"#,
            field("number 9223372036854775808", "WidgetSpec.size", "int64"),
        ),
        (
            r#"{"ratio":1e999}"#,
            field("number 1e999", "WidgetSpec.ratio", "float64"),
        ),
        (r#"{"enabled":"true"}"#, field("string", "WidgetSpec.enabled", "bool")),
        (r#"{"name":{}}"#, field("object", "WidgetSpec.name", "string")),
        (r#"{"parts":{}}"#, field("object", "WidgetSpec.parts", "[]v1.Part")),
        (r#"{"parts":[1]}"#, field("number", "WidgetSpec.parts", "v1.Part")),
        (
            r#"{"parts":[{"args":[true]}]}"#,
            field("bool", "Part.parts.args", "string"),
        ),
        (
            r#"{"selector":[]}"#,
            field("array", "WidgetSpec.selector", "map[string]string"),
        ),
        (
            r#"{"selector":{"a":1}}"#,
            field("number", "WidgetSpec.selector", "string"),
        ),
        (
            r#"{"child":{"child":[]}}"#,
            field("array", "WidgetSpec.child.child", "v1.WidgetSpec"),
        ),
        (r#"{"path":1}"#, field("number", "WidgetSpec.Source.path", "string")),
        (
            r#"{"local":{"name":1}}"#,
            field("number", "Part.Source.local.name", "string"),
        ),
        (r#"{"data":{"a":1}}"#, field("number", "WidgetSpec.data", "[]uint8")),
        (r#"{"port":true}"#, field("bool", "WidgetSpec.port", "int32")),
        (
            r#"{"claims":[{"kind":1}]}"#,
            field("number", "Claim.claims.TypeMeta.kind", "string"),
        ),
        (
            r#"{"data":{"a":[1,300]}}"#,
            field("number 300", "WidgetSpec.data", "uint8"),
        ),
        (r#"{"port":1.5}"#, field("number 1.5", "WidgetSpec.port", "int32")),
        (
            r#"{"data":{"a":"-_8="}}"#,
            "illegal base64 data at input byte 0".to_owned(),
        ),
        (
            r#"{"limits":{"a":"1K"}}"#,
            "unable to parse quantity's suffix".to_owned(),
        ),
        (r#"{"size":"x","name":1}"#, field("string", "WidgetSpec.size", "int64")),
        (r#"{"size":"x","port":[]}"#, field("array", "WidgetSpec.port", "int32")),
        (
            "3",
            "json: cannot unmarshal number into Go value of type v1.WidgetSpec".to_owned(),
        ),
    ];
    for (json, want) in cases {
        assert_eq!(spec_of(json).err(), Some(DecodeError::Value(want)), "{json}");
    }
}

/// Document, and what restoring it yields: the canonical text, the problems, or `!` and the error.
#[test]
fn restores_what_patches_make() {
    let text = |json: &str| {
        let mut spec = WidgetSpec::default();
        match restore(json.as_bytes(), &mut spec) {
            Ok(problems) if problems.is_empty() => {
                let mut out = Vec::new();
                write(&spec, &mut out);
                String::from_utf8(out).unwrap()
            }
            Ok(problems) => problems.iter().map(|p| p.path.as_str()).collect::<Vec<_>>().join(" "),
            Err(error) => format!("!{error}"),
        }
    };
    let rest =
        |before: &str, after: &str| format!("{{{before}\"name\":\"\"{after},\"parts\":null,\"port\":0,\"tags\":null}}");
    for (json, want) in [
        (r#"{"replicas":1.0}"#, rest(r#""replicas":1,"#, "")),
        (r#"{"replicas":2147483648}"#, rest(r#""replicas":-2147483648,"#, "")),
        (r#"{"replicas":9223372036854775808}"#, rest(r#""replicas":0,"#, "")),
        (r#"{"size":1e3}"#, rest("", r#","size":1000"#)),
        (r#"{"size":1.5}"#, "!cannot convert float64 to int64".into()),
        (r#"{"size":"x"}"#, "!unrecognized type: int64".into()),
        (r#"{"enabled":1}"#, "!unrecognized type: bool".into()),
        (r#"{"name":5}"#, "!cannot convert int64 to string".into()),
        (r#"{"name":5.5}"#, "!unrecognized type: string".into()),
        (r#"{"name":[]}"#, "!unrecognized type: string".into()),
        (r#"{"parts":"x"}"#, "!cannot restore slice from string".into()),
        (r#"{"parts":{}}"#, "!cannot restore slice from map".into()),
        (r#"{"parts":[1]}"#, "!cannot restore struct from: int64".into()),
        (r#"{"child":1.5}"#, "!cannot restore struct from: float64".into()),
        (r#"{"selector":[]}"#, "!cannot restore map from slice".into()),
        (
            r#"{"port":true}"#,
            "!json: cannot unmarshal bool into Go value of type int32".into(),
        ),
        (r#"{"port":1.0}"#, rest("", "").replace("\"port\":0", "\"port\":1")),
        (r#"{"size":"x","port":[]}"#, "!unrecognized type: int64".into()),
        (
            r#"{"z":1,"parts":[{"y":1,"x":{}}],"a":1}"#,
            "a parts[0].x parts[0].y z".into(),
        ),
        (r#"{"kind":1}"#, "!cannot convert int64 to string".into()),
    ] {
        assert_eq!(text(json), want, "{json}");
    }
    let mut spec = WidgetSpec::default();
    restore(br#"{"raw":{"z":1.50,"a":"\u00e9<"}}"#, &mut spec).unwrap();
    assert_eq!(
        spec.raw.unwrap().as_bytes(),
        "{\"a\":\"é\\u003c\",\"z\":1.5}".as_bytes()
    );
}

#[test]
fn types_of_all_of_a_document() {
    let named = |json: &str| {
        type_meta_of_all(json.as_bytes()).map_or_else(|e| format!("!{e}"), |m| format!("{} {}", m.api_version, m.kind))
    };
    for (json, want) in [
        (r#"{"kind":"A","apiVersion":"v1","KIND":"B","\u212aind":"C"}"#, "v1 C"),
        (r#"{"APIVERSION":"v2","apiVer\u017fion":null}"#, "v2 "),
        (
            r#"{"kind":"A","x":}"#,
            "!invalid character '}' looking for beginning of value",
        ),
        (r#"{"kind":"A"}}"#, "!invalid character '}' after top-level value"),
        ("null", " "),
    ] {
        assert_eq!(named(json), want, "{json}");
    }
    let unknown = no_fields(br#"{"kind":"x","a":1,"metadata":{}}"#).unwrap();
    assert_eq!(
        unknown.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [r#"unknown field "a""#, r#"unknown field "metadata""#]
    );
}

#[test]
fn syntax_errors_come_first_and_sound_like_go() {
    let end = "unexpected end of JSON input";
    let cases = [
        ("", end),
        ("{", end),
        (r#"{"a"#, end),
        (r#"{"a":"#, end),
        (r#"{"name":"x""#, end),
        ("}", "invalid character '}' looking for beginning of value"),
        (
            "{a}",
            "invalid character 'a' looking for beginning of object key string",
        ),
        (
            r#"{"name":"x",}"#,
            "invalid character '}' looking for beginning of object key string",
        ),
        (r#"{"name" "x"}"#, "invalid character '\"' after object key"),
        (
            r#"{"name":"x" "y"}"#,
            "invalid character '\"' after object key:value pair",
        ),
        (
            r#"{"tags":{"a":"b";}}"#,
            "invalid character ';' after object key:value pair",
        ),
        (r#"{"parts":[{} {}]}"#, "invalid character '{' after array element"),
        (
            r#"{"parts":[,]}"#,
            "invalid character ',' looking for beginning of value",
        ),
        (
            r#"{"zzz":[1,]}"#,
            "invalid character ']' looking for beginning of value",
        ),
        (r#"{"size":01}"#, "invalid character '1' after object key:value pair"),
        (r#"{"size":-}"#, "invalid character '}' in numeric literal"),
        (
            r#"{"size":1.}"#,
            "invalid character '}' after decimal point in numeric literal",
        ),
        (
            r#"{"size":1ex}"#,
            "invalid character 'x' in exponent of numeric literal",
        ),
        (
            r#"{"enabled":tru}"#,
            "invalid character '}' in literal true (expecting 'e')",
        ),
        (r#"{"name":"\x"}"#, "invalid character 'x' in string escape code"),
        (
            r#"{"name":"\u12g4"}"#,
            "invalid character 'g' in \\u hexadecimal character escape",
        ),
        ("{\"name\":\"a\nb\"}", "invalid character '\\n' in string literal"),
        ("{}x", "invalid character 'x' after top-level value"),
        (
            "{\"zzz\":\u{1}}",
            "invalid character '\\x01' looking for beginning of value",
        ),
        (
            r#"{"size":"x","name":}"#,
            "invalid character '}' looking for beginning of value",
        ),
        (
            r#"{"port":[],"name":}"#,
            "invalid character '}' looking for beginning of value",
        ),
    ];
    for (json, want) in cases {
        match spec_of(json) {
            Err(DecodeError::Syntax { message, .. }) => assert_eq!(message, want, "{json}"),
            other => panic!("{json}: {:?}", other.map(|o| o.1)),
        }
    }
    // What is passed over unread is checked alike.
    for (json, _) in cases {
        assert_eq!(validate(json.as_bytes()).err(), spec_of(json).err());
    }
}

#[test]
fn depth_is_bounded() {
    let unknown = format!("{{\"x\":{}1{}}}", "[".repeat(9_999), "]".repeat(9_999));
    assert!(spec_of(&unknown).is_ok());
    let unknown = format!("{{\"x\":{}", "[{\"a\":".repeat(6_000));
    assert!(
        spec_of(&unknown)
            .err()
            .unwrap()
            .to_string()
            .ends_with("exceeded max depth")
    );
    let known = "{\"child\":".repeat(100_000);
    assert!(
        spec_of(&known)
            .err()
            .unwrap()
            .to_string()
            .ends_with("exceeded max depth")
    );
}

#[test]
fn type_of_a_document() {
    let meta = |v: &str, k: &str| {
        Ok(TypeMeta {
            api_version: v.to_owned(),
            kind: k.to_owned(),
        })
    };
    let cases = [
        (r#"{"apiVersion":"v1","kind":"Pod","x":"#, meta("v1", "Pod")),
        (r#"{"spec":{"kind":"no","a":[1,2]},"kind":"Pod"}"#, meta("", "Pod")),
        (r#"{"kind":null}"#, meta("", "")),
        ("{}", meta("", "")),
        ("null", meta("", "")),
    ];
    for (json, want) in cases {
        assert_eq!(type_meta(json.as_bytes()), want);
    }
    let text = |json: &str| type_meta(json.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        text(r#"{"kind":1}"#),
        "json: cannot unmarshal number into Go struct field .kind of type string"
    );
    assert!(text("[]").starts_with("json: cannot unmarshal array into Go value of type struct {"));
    assert_eq!(
        text("{\"a\":tru"),
        "invalid character ' ' in literal true (expecting 'e')"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &mut Widget::default());
        let _ = type_meta(&bytes);
    }

    #[test]
    fn mutated_documents_are_safe_and_stable(at in 0..FULL.len(), len in 0..8usize, with in "[\\x00-\\x7f]{0,4}") {
        let mut json = FULL.as_bytes().to_vec();
        json.splice(at..(at + len).min(FULL.len()), with.bytes());
        let mut widget = Widget::default();
        let result = read(&json, &mut widget);
        match &result {
            Err(DecodeError::Syntax { .. }) => prop_assert_eq!(validate(&json).err(), result.clone().err()),
            _ => prop_assert_eq!(validate(&json), Ok(())),
        }
        // What was read can be read again from what is written.
        if result.is_err() {
            return Ok(());
        }
        let shown = to_vec(&widget);
        let mut again = Widget::default();
        prop_assert_eq!(read(&shown, &mut again), Ok(vec![]));
        prop_assert_eq!(to_vec(&again), shown);
    }
}
