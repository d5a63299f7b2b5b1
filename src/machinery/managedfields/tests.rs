use super::*;
use crate::fieldset::FieldSet;
use crate::json;
use crate::reflect::Reflect;
use crate::reflect::object::Object;
use crate::sample::Widget;

struct One;

impl Versions for One {
    fn knows(&self, api_version: &str) -> bool {
        api_version == "example.com/v1"
    }
    fn convert(&self, _: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!("there is no {version}")))
    }
}

fn widget(json: &str) -> Widget {
    let mut widget = Widget::default();
    assert_eq!(json::read(json.as_bytes(), &mut widget), Ok(vec![]));
    widget
}

fn writer(name: &str, seconds: i64) -> Writer {
    Writer {
        manager: name.into(),
        api_version: "example.com/v1".into(),
        subresource: String::new(),
        now: Some(Time::from_unix(seconds, 0)),
    }
}

fn update(managed: &mut Managed, old: &str, new: &str, writer: &Writer) {
    let change = Change {
        old: &widget(old),
        new: &widget(new),
        ignored: &FieldSet::of_fields(&["status"]),
        versions: &One,
    };
    track(managed, change, writer).unwrap();
}

fn show(managed: &Managed) -> Vec<String> {
    let lines = managed.clone().write().into_iter().map(|e| {
        let fields = e.fields_v1.unwrap();
        format!("{} {}", e.manager, String::from_utf8_lossy(fields.as_bytes()))
    });
    lines.collect()
}

const A: &str = r#"{"metadata":{"name":"w","labels":{"a":"b"},"generation":3},"spec":{"size":1,"port":0,"selector":{"k":"v"},"limits":{"cpu":"1"}},"status":{"ready":true}}"#;

#[test]
fn a_new_object_belongs_to_its_maker() {
    let mut managed = Managed::default();
    update(&mut managed, "{}", A, &writer("maker", 5));
    assert_eq!(
        show(&managed),
        [
            r#"maker {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:limits":{".":{},"f:cpu":{}},"f:selector":{".":{},"f:k":{}},"f:size":{}}}"#
        ]
    );
    assert_eq!(managed.owners()[0].time, Some(Time::from_unix(5, 0)));
}

#[test]
fn changes_move_fields() {
    let mut managed = Managed::default();
    update(&mut managed, "{}", A, &writer("maker", 5));
    let b = A
        .replace(r#""size":1,"#, r#""size":2,"#)
        .replace(r#""k":"v""#, r#""l":"v""#);
    update(&mut managed, A, &b, &writer("other", 6));
    assert_eq!(
        show(&managed),
        [
            r#"maker {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:limits":{".":{},"f:cpu":{}},"f:selector":{}}}"#,
            r#"other {"f:spec":{"f:selector":{"f:l":{}},"f:size":{}}}"#,
        ]
    );
    // Nothing but what this endpoint ignores.
    let c = b.replace(r#""ready":true"#, r#""ready":false"#);
    update(&mut managed, &b, &c, &writer("third", 7));
    assert_eq!(managed.owners().len(), 2);
}

#[test]
fn old_updates_are_merged() {
    let mut managed = Managed::default();
    let labels = |n: usize| {
        let all: Vec<String> = (0..n).map(|i| format!(r#""l{i:02}":"x""#)).collect();
        format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, all.join(","))
    };
    for i in 0..13 {
        update(
            &mut managed,
            &labels(i),
            &labels(i + 1),
            &writer(&format!("u{i:02}"), i as i64),
        );
    }
    let lines = show(&managed);
    assert_eq!(lines.len(), MAX_UPDATERS);
    assert_eq!(
        lines[0],
        r#"ancient-changes {"f:metadata":{"f:labels":{".":{},"f:l00":{},"f:l01":{},"f:l02":{},"f:l03":{}}}}"#
    );
    assert_eq!(
        managed
            .owners()
            .iter()
            .find(|o| o.manager == "ancient-changes")
            .unwrap()
            .time,
        Some(Time::from_unix(3, 0))
    );
}

#[test]
fn entries_of_other_versions() {
    let entry = |manager: &str, version: &str| ManagedFieldsEntry {
        manager: manager.into(),
        operation: "Update".into(),
        api_version: version.into(),
        fields_type: FIELDS_V1.into(),
        fields_v1: Some(RawJson::from(br#"{"f:spec":{"f:size":{}}}"#.to_vec())),
        ..ManagedFieldsEntry::default()
    };
    let mut managed = Managed::read(&[entry("a", "example.com/v1"), entry("a", "example.com/v9")]).unwrap();
    update(&mut managed, A, A, &writer("b", 1));
    assert_eq!(show(&managed), [r#"a {"f:spec":{"f:size":{}}}"#]);
    for wrong in [entry("a", ""), ManagedFieldsEntry::default()] {
        assert!(Managed::read(&[wrong]).is_err());
    }
}

#[test]
fn an_empty_list_is_a_reset() {
    for (json, reset) in [
        (r#"{"metadata":{"managedFields":[]}}"#, true),
        (
            r#"{"spec":{"metadata":{"managedFields":[]}}, "metadata" : {"name":"w", "managedFields" : [ ] }}"#,
            true,
        ),
        (r#"{"metadata":{"managedFields":null}}"#, false),
        (r#"{"metadata":{},"spec":{"name":"managedFields"}}"#, false),
        (r#"{"spec":{"metadata":{"managedFields":[]}}}"#, false),
    ] {
        let mut widget = Widget::default();
        mark_reset(json.as_bytes(), &mut widget);
        assert_eq!(is_reset(&widget.metadata.managed_fields), reset, "{json}");
    }
}

#[test]
fn reset_and_agents() {
    assert!(is_reset(&[ManagedFieldsEntry::default()]));
    assert!(!is_reset(&[]));
    for (agent, name) in [
        ("kubectl/v1.36.0 (linux/amd64)", "kubectl"),
        ("My Agent (x; y)/1", "My Agent (x; y)"),
        ("", "unknown"),
        ("/1", "unknown"),
        ("a\tb", "ab"),
    ] {
        assert_eq!(manager_of_agent(agent), name);
    }
    assert_eq!(manager_of_agent(&"x".repeat(200)).len(), 128);
}

#[test]
fn how_owners_are_named() {
    let text = |operation, sub| Owner::new("a\"b", operation, "apps/v1", sub).to_string();
    assert_eq!(text(Operation::Apply, ""), r#""a\"b""#);
    assert_eq!(
        text(Operation::Update, "scale"),
        r#""a\"b" with subresource "scale" using apps/v1"#
    );
}
