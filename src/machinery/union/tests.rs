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
