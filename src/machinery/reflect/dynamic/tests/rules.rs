//! Declarative validation, selectors, columns and expressions over twins.

use std::sync::Arc;

use super::super::{DynamicObject, twin};
use super::{read, typed, widget};
use crate::field::Path;
use crate::json;
use crate::jsonpath::{JsonPath, lookup_text, scalar_text};
use crate::reflect::object::Object;
use crate::reflect::{Desc, FieldDesc, Flags, ListType, MessageDesc, Names, Ref, Reflect, Rules, Type, Unknown};
use crate::sample::FULL;
use crate::scheme::ColumnDesc;
use crate::table::{CellFunctions, Descriptions, Row, TableColumns};
use crate::validation::declarative::validate;

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "test.Job")]
struct Job {
    #[field(json = "size", has_rules, minimum = 1, maximum = 10)]
    size: Option<i32>,
    #[field(json = "step", has_rules, multiple_of = 5)]
    step: Option<i64>,
    #[field(json = "color", has_rules, required, enum("red", "blue"), max_length = 4)]
    color: Option<String>,
    #[field(json = "code", has_rules, min_length = 2, pattern = "^[a-z]+$")]
    code: Option<String>,
    #[field(json = "ip", has_rules, format = "ipv4")]
    ip: Option<String>,
    #[field(json = "owner", has_rules, immutable)]
    owner: Option<String>,
    #[field(json = "tags", list = "set", has_rules, max_items = 3, item_enum("a", "b"))]
    tags: Vec<String>,
    #[field(json = "ports", list = "map", keys("port", "protocol"), has_rules)]
    ports: Vec<Port>,
    #[field(json = "limits", has_rules, max_properties = 1)]
    limits: std::collections::BTreeMap<String, String>,
    #[field(json = "needed", has_rules, required)]
    needed: Option<Box<Port>>,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "test.Port")]
struct Port {
    #[field(json = "port", required, has_rules)]
    port: Option<i32>,
    #[field(json = "protocol")]
    protocol: String,
    #[field(json = "host", immutable, has_rules, format = "dns-label")]
    host: Option<String>,
}

/// What is wrong with a change from `old` to `new`, sorted: the two differ in the order of their fields.
fn problems(desc: &Desc, new: &str, old: Option<&str>) -> Vec<String> {
    let new = read(desc, new);
    let old = old.map(|old| read(desc, old));
    let errors = validate(&*new, old.as_deref(), &Path::root());
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn rules_are_enforced_alike() {
    let (of_struct, of_twin) = (
        Ref::Static(Job::message_desc()),
        twin::of(Job::message_desc(), 2).unwrap(),
    );
    let mut found = 0;
    for (new, old) in [
        (r#"{"color":"red","needed":{"port":1}}"#, None),
        (r#"{}"#, None),
        (
            r#"{"color":"green","size":11,"step":7,"code":"A","ip":"x","needed":{"host":"-"}}"#,
            None,
        ),
        (
            r#"{"color":"red","size":0,"tags":["a","a","c","b"],"limits":{"a":"1","b":"2"}}"#,
            None,
        ),
        (
            r#"{"color":"red","needed":{"port":1},"ports":[{"port":1,"protocol":"T"},{"port":1,"protocol":"T"},{}]}"#,
            None,
        ),
        (
            r#"{"color":"red","needed":{"port":1,"host":"b"},"owner":"x","ports":[{"port":2},{"port":1,"host":"n"}]}"#,
            Some(
                r#"{"color":"red","needed":{"port":1,"host":"a"},"owner":"y","ports":[{"port":1,"host":"o"},{"port":2}]}"#,
            ),
        ),
    ] {
        let expected = problems(&of_struct, new, old);
        assert_eq!(problems(&of_twin, new, old), expected, "{new}");
        found += expected.len();
    }
    assert!(found > 20, "{found}");
}

fn element(ty: Type, rules: Rules) -> Ref<FieldDesc> {
    let field = FieldDesc::shared("", ty, Flags::NONE);
    Ref::Shared(Arc::new(field.with_rules(Ref::Shared(Arc::new(rules)))))
}

#[test]
fn values_of_another_type_and_items_are_checked() {
    let short = Rules {
        max_length: Some(2),
        ..Rules::NONE
    };
    let odd = Rules {
        multiple_of: Some(2.0),
        ..Rules::NONE
    };
    let inner = MessageDesc::shared(
        "x.Inner",
        None,
        vec![FieldDesc::shared("on", Type::Bool, Flags::REQUIRED)],
        Unknown::Kept,
    )
    .unwrap();
    let fields = vec![
        FieldDesc::shared("count", Type::Int64, Flags::NONE),
        FieldDesc::shared("ratio", Type::Double, Flags::NULLABLE),
        FieldDesc::shared("words", Type::List(element(Type::String, short)), Flags::NONE),
        FieldDesc::shared(
            "rows",
            Type::List(element(Type::List(element(Type::Int64, odd)), Rules::NONE)),
            Flags::NONE,
        ),
        FieldDesc::shared(
            "named",
            Type::Map(element(Type::Message(inner), Rules::NONE)),
            Flags::NONE,
        ),
        FieldDesc::shared("any", Type::Any, Flags::NONE),
    ];
    let desc = MessageDesc::shared("x.Outer", None, fields, Unknown::Dropped).unwrap();
    let document = r#"{"count":"1","ratio":null,"words":["ok","long",3],"rows":[[2,3],4],
        "named":{"a":{"on":true,"more":1},"b":{"on":1},"c":{},"d":[]},"any":[null,{"x":1}]}"#;
    assert_eq!(
        problems(&desc, document, None),
        [
            r#"count: Invalid value: "string": count in body must be of type integer: "string""#,
            r#"named[b].on: Invalid value: "integer": named[b].on in body must be of type boolean: "integer""#,
            r#"named[c].on: Required value"#,
            r#"named[d]: Invalid value: "array": named[d] in body must be of type object: "array""#,
            r#"rows[0][1]: Invalid value: 3: must be a multiple of 2"#,
            r#"rows[1]: Invalid value: "integer": rows[1] in body must be of type array: "integer""#,
            r#"words[1]: Too long: may not be more than 2 bytes"#,
            r#"words[2]: Invalid value: "integer": words[2] in body must be of type string: "integer""#,
        ]
    );
    assert_eq!(
        problems(&desc, r#"{"count":null,"ratio":1,"rows":[[2.0]]}"#, None),
        [r#"count: Invalid value: "null": count in body must be of type integer: "null""#]
    );
}

#[test]
fn items_with_a_key_are_correlated_at_any_width() {
    let port = |n: usize| format!(r#"{{"port":{n},"host":"h"}}"#);
    let list = |from: usize, to: usize| (from..to).map(port).collect::<Vec<_>>().join(",");
    let document = |ports: String| format!(r#"{{"color":"red","needed":{{"port":1}},"ports":[{ports}]}}"#);
    let desc = twin::of(Job::message_desc(), 2).unwrap();
    let old = document(list(0, 40));
    let moved = document(format!("{},{}", list(1, 40), port(0).replace("\"h\"", "\"i\"")));
    assert_eq!(problems(&desc, &moved, Some(&old)).len(), 1);
}

#[test]
fn selectors_and_paths_find_the_same() {
    let (full, twin) = (typed(FULL), read(&widget(), FULL));
    for path in [
        "metadata.name",
        "metadata.labels.a",
        "spec.name",
        "spec.size",
        "spec.enabled",
        "spec.selector.k",
        "spec.path",
        "spec.local.name",
        "spec.port",
        "spec.child.port",
        "spec.timeout",
        "status.ready",
        "status.seen",
        "spec.nope",
    ] {
        assert_eq!(lookup_text(&*twin, path), lookup_text(&full, path), "{path}");
    }
    // Of a tree of maps nothing is known that is not there.
    assert_eq!(lookup_text(&*twin, "spec.child.size"), "");
    for path in [
        ".spec.parts[*].name",
        ".spec.parts[?(@.name==\"p\")].args[0]",
        ".spec.limits.cpu",
        ".metadata.name",
    ] {
        let path = JsonPath::parse(path).unwrap();
        let texts = |message: &dyn Reflect| -> Vec<String> {
            let found = path.find(message);
            found
                .into_iter()
                .filter_map(scalar_text)
                .map(|text| text.into_owned())
                .collect()
        };
        assert_eq!(texts(&*twin), texts(&full));
    }
}

#[test]
fn columns_show_the_same() {
    let column = |name: &'static str, ty: &'static str, path: &'static str| ColumnDesc {
        name: name.into(),
        ty: ty.into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
        path: path.into(),
        function: "".into(),
        hidden: false,
    };
    // Some of a client's own.
    let described: Vec<ColumnDesc> = vec![
        column("Size", "integer", ".spec.size"),
        column("Ratio", "number", ".spec.ratio"),
        column("Ready", "boolean", ".status.ready"),
        column("Seen", "date", ".status.seen"),
        column("Parts", "string", ".spec.parts[*].name"),
        column("Raw", "string", ".spec.limits"),
        column("None", "string", ".spec.nope"),
    ];
    let columns = TableColumns::new(
        "Widget",
        &described,
        &CellFunctions::default(),
        &Descriptions::default(),
    )
    .unwrap();
    let mut twin = DynamicObject::new(widget());
    json::read(FULL.as_bytes(), &mut twin).unwrap();
    let full = typed(FULL);
    let cells = |object: &dyn Object| columns.cells(&Row::of(object)).collect::<Vec<_>>();
    assert_eq!(cells(&twin), cells(&full));
}

#[test]
fn a_list_of_keys_may_be_as_long_as_a_client_likes() {
    let names: Vec<String> = (0..30).map(|n| format!("key{n}")).collect();
    let item = names
        .iter()
        .map(|name| FieldDesc::shared(name.as_str(), Type::Int64, Flags::NONE))
        .collect();
    let item = MessageDesc::shared("x.Item", None, item, Unknown::Dropped).unwrap();
    let mut list = FieldDesc::shared(
        "items",
        Type::List(element(Type::Message(item), Rules::NONE)),
        Flags::NONE,
    );
    list.list = ListType::Map;
    list.details = Ref::Shared(Arc::new(crate::reflect::Details {
        map_keys: names.iter().map(String::as_str).collect::<Names>(),
        ..crate::reflect::Details::NONE
    }));
    let desc = MessageDesc::shared("x.List", None, vec![list], Unknown::Dropped).unwrap();
    let one: Vec<String> = names.iter().map(|name| format!("\"{name}\":1")).collect();
    let document = format!(r#"{{"items":[{{{0}}},{{{0}}}]}}"#, one.join(","));
    let found = problems(&desc, &document, None);
    assert!(
        found.len() == 1 && found[0].starts_with("items[1]: Duplicate value"),
        "{found:?}"
    );
}

#[test]
fn expressions_see_a_twin_as_they_see_a_struct() {
    use crate::cel::{Environment, Type, Value};
    let (full, twin) = (typed(FULL), read(&widget(), FULL));
    let environment = Environment::new().variable("object", Type::Dyn);
    for expression in [
        "object.kind == 'Widget' && object.apiVersion == 'example.com/v1'",
        "object.spec.replicas == 0 && object.spec.size == -9",
        "has(object.spec.path) && !has(object.spec.nope) && has(object.spec.enabled)",
        "object.spec.parts.exists(p, p.name == 'p' && p.args.size() == 2)",
        "object.spec.limits.all(k, k in ['cpu', 'memory']) && object.metadata.labels.a == 'b'",
        "object.spec.port == 'http' && object.spec.local.name.matches('^l$')",
    ] {
        let program = environment.compile(expression).unwrap();
        for message in [&full as &dyn Reflect, &*twin] {
            let outcome = program
                .evaluate(&[("object", Value::object(message))], 100_000)
                .unwrap();
            assert_eq!(outcome.value.as_bool(), Some(true), "{expression}");
        }
    }
}
