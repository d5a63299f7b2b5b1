use std::collections::BTreeMap;

use super::*;
use crate::Message;
use crate::reflect::time::Time;

#[derive(Clone, Default, Message)]
#[message(name = "test.Root")]
struct Root {
    #[field(json = "labels")]
    labels: BTreeMap<String, String>,
    #[field(json = "spec")]
    spec: Spec,
    #[field(json = "status")]
    status: Option<Box<Status>>,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Spec")]
struct Spec {
    #[field(json = "replicas")]
    replicas: Option<i32>,
    #[field(json = "paused")]
    paused: bool,
    #[field(json = "count", always)]
    count: i64,
    #[field(json = "inline", inline)]
    inline: Inline,
    #[field(json = "list")]
    list: Vec<String>,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Inline")]
struct Inline {
    #[field(json = "node")]
    node: String,
    #[field(json = "size")]
    size: i32,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Status")]
struct Status {
    #[field(json = "conditions")]
    conditions: Vec<Condition>,
    #[field(json = "started", omit_zero)]
    started: Time,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Condition")]
struct Condition {
    #[field(json = "type")]
    r#type: String,
    #[field(json = "status")]
    status: String,
    #[field(json = "weight")]
    weight: i32,
}

fn condition(ty: &str, status: &str, weight: i32) -> Condition {
    Condition {
        r#type: ty.into(),
        status: status.into(),
        weight,
    }
}

fn root() -> Root {
    let inline = Inline {
        node: "n1".into(),
        size: 3,
    };
    let status = Status {
        conditions: vec![condition("Ready", "True", 1), condition("Live", "False", 5)],
        started: Time::from_unix(0, 0),
    };
    Root {
        labels: [
            ("a.b/c".to_owned(), "x".to_owned()),
            ("app".to_owned(), "web".to_owned()),
        ]
        .into(),
        spec: Spec {
            replicas: Some(0),
            inline,
            list: vec!["p".into(), "q".into()],
            ..Spec::default()
        },
        status: Some(Box::new(status)),
    }
}

fn texts(path: &str, root: &Root) -> Vec<String> {
    let found = JsonPath::parse(path).unwrap().find(root);
    found
        .into_iter()
        .map(|v| scalar_text(v).map_or("…".to_owned(), Cow::into_owned))
        .collect()
}

#[test]
fn paths_lead_to_values() {
    let root = root();
    let cases: &[(&str, &[&str])] = &[
        (".spec.replicas", &["0"]),
        ("spec.replicas", &["0"]),
        ("{.spec.replicas}", &["0"]),
        ("$.spec.replicas", &["0"]),
        (".spec.count", &["0"]),
        (".spec.paused", &[]),
        (".spec.node", &["n1"]),
        (".spec.nothing", &[]),
        (".spec", &["…"]),
        (".labels.app", &["web"]),
        (".labels['a.b/c']", &["x"]),
        (".labels.a\\.b/c", &["x"]),
        (".labels.*", &["x", "web"]),
        (".spec.list[0]", &["p"]),
        (".spec.list[1,0]", &["q", "p"]),
        (".spec.list[0,0:2]", &["p", "p", "q"]),
        (".labels['app', 'a.b/c','none']", &["web", "x"]),
        ("..status", &["…", "True", "False"]),
        ("..conditions[0].type", &["Ready"]),
        (".status..weight", &["1", "5"]),
        (".status.conditions[1].*", &["Live", "False", "5"]),
        ("..none", &[]),
        (".spec.list[-1]", &["q"]),
        (".spec.list[2]", &[]),
        (".spec.list[-3]", &[]),
        (".spec.list[*]", &["p", "q"]),
        (".spec.list[-1:]", &["q"]),
        (".spec.list[:]", &["p", "q"]),
        (".spec.list[0:1]", &["p"]),
        (".spec.list[0:-1]", &["p"]),
        (".spec.list[::2]", &["p"]),
        (".spec.list[1:1]", &[]),
        (".spec.list[1:0]", &[]),
        (".spec.list[:3]", &[]),
        (".spec.list[-3:]", &[]),
        (".spec.list[::0]", &[]),
        (r#".status.conditions[?(@.type=="Ready")].status"#, &["True"]),
        (".status.conditions[?(@.type=='Live')].status", &["False"]),
        (".status.conditions[?(@.type != 'Live')].status", &["True"]),
        (".status.conditions[?(@.weight > 1)].type", &["Live"]),
        (".status.conditions[?(@.weight<=1)].type", &["Ready"]),
        (".status.conditions[?(@.weight)].type", &["Ready", "Live"]),
        (".status.conditions[?(@.gone)].type", &[]),
        (".status.conditions[*].type", &["Ready", "Live"]),
        (".status.started", &["1970-01-01T00:00:00Z"]),
    ];
    for (path, expected) in cases {
        assert_eq!(texts(path, &root), *expected, "{path}");
    }
    assert!(texts(".status.started", &Root::default()).is_empty());
}

#[test]
fn broken_paths_are_refused() {
    for (path, error) in [
        (".a[", "the path ends too early"),
        (".a[x]", "unexpected \"x\" at byte 3 of the path"),
        (".a['b", "the path ends too early"),
        (".a]", "unexpected \"]\" at byte 2 of the path"),
        (".a...b", "unexpected \".\" at byte 4 of the path"),
        (".a[1,]", "unexpected \"]\" at byte 5 of the path"),
        (".a[?(@.b==c)]", "unexpected \"c\" at byte 10 of the path"),
        (".a[?(b)]", "unexpected \"b\" at byte 5 of the path"),
        (".a[1", "the path ends too early"),
    ] {
        assert_eq!(JsonPath::parse(path).unwrap_err().to_string(), error, "{path}");
    }
    assert!(JsonPath::parse(&".a".repeat(MAX_STEPS)).is_ok());
    assert_eq!(JsonPath::parse(&".a".repeat(MAX_STEPS + 1)), Err(PathError::TooLong));
}

#[test]
fn descending_again_and_again_is_bounded() {
    let root = root();
    let found = JsonPath::parse(&"..*".repeat(MAX_STEPS / 2)).unwrap().find(&root);
    assert!(found.len() <= MAX_VALUES);
    let found = JsonPath::parse("..[0]").unwrap().find(&root);
    assert_eq!(found.len(), 2);
    let many = JsonPath::parse(&format!("{}.type", "..[*,*,*,*,*,*,*,*]".repeat(3)));
    assert!(many.unwrap().find(&root).len() < 2 * MAX_VALUES);
}

#[test]
fn numbers_are_written_where_a_path_leads() {
    let mut root = Root::default();
    JsonPath::parse(".spec.replicas")
        .unwrap()
        .set_int32(&mut root, 4)
        .unwrap();
    JsonPath::parse(".spec.size").unwrap().set_int32(&mut root, 5).unwrap();
    JsonPath::parse(".spec.count").unwrap().set_int32(&mut root, 6).unwrap();
    assert_eq!(
        (root.spec.replicas, root.spec.inline.size, root.spec.count),
        (Some(4), 5, 6)
    );
    for path in [
        ".spec.paused",
        ".spec",
        ".spec.list[0]",
        ".spec.gone",
        ".labels.app",
        ".",
    ] {
        let result = JsonPath::parse(path).unwrap().set_int32(&mut root, 1);
        assert_eq!(result, Err(PathError::NotWritable), "{path}");
    }
}

#[test]
fn field_selectors_see_text() {
    let full = root();
    for (path, text) in [
        ("spec.node", "n1"),
        ("spec.replicas", "0"),
        ("spec.paused", "false"),
        ("spec.size", "3"),
        ("labels.a.b/c", "x"),
        ("spec", ""),
        ("spec.gone", ""),
        ("spec.node.x", ""),
    ] {
        assert_eq!(lookup_text(&full, path), text, "{path}");
    }
    let empty = Root::default();
    for (path, text) in [
        ("spec.node", ""),
        ("spec.replicas", "0"),
        ("status.started", ""),
        ("spec.size", "0"),
        ("labels.x", ""),
    ] {
        assert_eq!(lookup_text(&empty, path), text, "{path}");
    }
}
