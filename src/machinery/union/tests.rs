use super::*;
use keelson_derive::Message;

#[derive(Clone, Default, Debug, Message)]
#[message(name = "com.example.Schema")]
struct Schema {
    #[field(json = "type", number = 1)]
    r#type: String,
    #[field(json = "items", number = 2)]
    items: Option<OrArray<Schema>>,
}

/// JSON in, JSON out.
fn through<T: Leaf + Default>(input: &str) -> String {
    let mut union = T::default();
    union.read_json(input.as_bytes()).unwrap();
    let (mut json, mut body) = (Vec::new(), Vec::new());
    union.write_json(&mut json);
    union.write_protobuf(&mut body);
    let mut back = T::default();
    back.read_protobuf(&body).unwrap();
    if !union.is_zero() && json != b"null" {
        assert!(back.eq_leaf(&union), "{input} is lost in protobuf");
    }
    String::from_utf8(json).unwrap()
}

#[test]
fn forms_are_those_of_kube_apiserver() {
    for (input, shown) in [
        (r#"{"type":"a","more":1}"#, r#"{"type":"a"}"#),
        ("true", "true"),
        ("false", "false"),
        ("{}", "{}"),
    ] {
        assert_eq!(through::<OrBool<Schema>>(input), shown);
    }
    for (input, shown) in [
        (r#"{"type":"a"}"#, r#"{"type":"a"}"#),
        (r#"[{"type":"a"},{}]"#, r#"[{"type":"a"},{}]"#),
        ("[]", "null"),
        ("3", "null"),
    ] {
        assert_eq!(through::<OrArray<Schema>>(input), shown);
    }
    for (input, shown) in [
        (r#"{"type":"a"}"#, r#"{"type":"a"}"#),
        (r#"["a","b"]"#, r#"["a","b"]"#),
        ("[]", "[]"),
        ("3", "[]"),
    ] {
        assert_eq!(through::<OrStringArray<Schema>>(input), shown);
    }
    let error = OrBool::<Schema>::default().read_json(b"3");
    assert_eq!(error, Err("boolean or JSON schema expected".to_owned()));
}

#[test]
fn protobuf_has_the_published_numbers() {
    let bytes = |union: &dyn Leaf| {
        let mut out = Vec::new();
        union.write_protobuf(&mut out);
        out
    };
    let schema = || {
        Box::new(Schema {
            r#type: "a".into(),
            items: None,
        })
    };
    assert_eq!(bytes(&OrBool::<Schema>::Bool(true)), [8, 1]);
    assert_eq!(bytes(&OrBool::Message(schema())), [8, 1, 0x12, 3, 0x0a, 1, b'a']);
    assert_eq!(bytes(&OrArray::Message(schema())), [0x0a, 3, 0x0a, 1, b'a']);
    assert_eq!(bytes(&OrArray::Array(vec![*schema()])), [0x12, 3, 0x0a, 1, b'a']);
    assert_eq!(
        bytes(&OrStringArray::<Schema>::Array(vec!["a".into()])),
        [0x12, 1, b'a']
    );
}

#[test]
fn faults_name_the_whole_path() {
    for (input, at) in [
        (r#"{"items":{"items":{"type":7}}}"#, "items.items.type of type string"),
        (r#"{"items":[{"type":7}]}"#, "items.type of type string"),
        (r#"{"items":[7]}"#, "items of type example.Schema"),
    ] {
        let error = json::read(input.as_bytes(), &mut Schema::default()).unwrap_err();
        let expected = format!("json: cannot unmarshal number into Go struct field Schema.{at}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |levels: usize| {
        format!(
            "{}{}",
            r#"{"items":"#.repeat(levels),
            "{}".to_owned() + &"}".repeat(levels)
        )
    };
    let mut union = OrArray::<Schema>::default();
    union.read_json(deep(50).as_bytes()).unwrap();
    assert!(
        union
            .read_json(deep(5_000).as_bytes())
            .unwrap_err()
            .contains("exceeded max depth")
    );
    // A refusal leaves nothing behind.
    union.read_json(deep(50).as_bytes()).unwrap();

    let mut body = Vec::new();
    for _ in 0..2_000 {
        let mut outer = Vec::new();
        wire::write_bytes_field(1, &body, &mut outer);
        body.clear();
        wire::write_bytes_field(2, &outer, &mut body);
    }
    let mut outer = Vec::new();
    wire::write_bytes_field(1, &body, &mut outer);
    assert!(OrArray::<Schema>::default().read_protobuf(&outer).is_err());
}

#[test]
fn a_wrong_value_deep_inside_is_found_once() {
    for open in [r#"{"items":"#, r#"{"items":[{"items":"#] {
        let close = open.chars().rev().filter_map(|c| match c {
            '{' => Some('}'),
            '[' => Some(']'),
            _ => None,
        });
        let (depth, close) = (40, close.collect::<String>());
        let of = |inner: &str| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
        let mut union = OrArray::<Schema>::default();
        assert_eq!(union.read_json(of(r#"{"type":"a"}"#).as_bytes()), Ok(()));
        let error = union.read_json(of(r#"{"type":1}"#).as_bytes()).unwrap_err();
        assert!(error.contains("number"), "{error}");
    }
}

#[test]
fn what_is_the_same_is_identical() {
    let read = |text: &str| {
        let mut union = OrArray::<Schema>::default();
        union.read_json(text.as_bytes()).unwrap();
        union
    };
    let texts = [
        "null",
        "{}",
        r#"{"type":"a"}"#,
        r#"[{"type":"a"}]"#,
        r#"{"items":{"type":"a"}}"#,
        r#"{"items":null}"#,
    ];
    for (n, a) in texts.iter().enumerate() {
        for (m, b) in texts.iter().enumerate() {
            let same = read(a).is_identical(&read(b));
            assert!(!same || read(a).eq_leaf(&read(b)), "{a} {b}");
            assert!(same || n != m, "{a}");
        }
    }
}
