use super::*;
use crate::fieldset::FieldSet;
use crate::json;
use crate::managedfields::VersionError;
use crate::reflect::object::Object;
use crate::reflect::time::Time;
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

fn text(widget: &Widget) -> String {
    let mut out = Vec::new();
    json::write(&widget.spec, &mut out);
    String::from_utf8(out).unwrap()
}

/// An object and its owners.
#[derive(Default)]
struct Shared {
    object: Widget,
    managed: Managed,
    /// Whether the last apply was known to change nothing before it ran.
    settled: bool,
}

impl Shared {
    fn apply(&mut self, manager: &str, spec: &str, force: bool) -> Result<bool, Vec<String>> {
        let body = format!(r#"{{"apiVersion":"example.com/v1","kind":"Widget","spec":{spec}}}"#);
        let mut applied = Widget::default();
        let document = read_document(body.as_bytes(), &mut applied).unwrap();
        assert_eq!(document.unfit, None);
        let apply = Apply {
            writer: &Writer {
                manager: manager.into(),
                api_version: "example.com/v1".into(),
                subresource: String::new(),
                now: Some(Time::from_unix(9, 0)),
            },
            live: &self.object,
            applied: &applied,
            document: &document,
            force,
            ignored: &FieldSet::of_fields(&["status"]),
            versions: &One,
        };
        let (mut managed, mut target) = (self.managed.clone(), self.object.clone());
        let entries = managed.clone().write();
        self.settled = apply.is_noop(&entries);
        let outcome = apply.run(&mut managed, &mut target);
        if self.settled {
            assert_eq!(outcome, Ok(false));
            assert!(crate::managedfields::same_but_times(&managed.clone().write(), &entries));
            assert_eq!(text(&target), text(&self.object));
        }
        match outcome {
            Ok(changed) => {
                self.managed = managed;
                self.object = target;
                Ok(changed)
            }
            Err(ApplyError::Conflicts(conflicts)) => Err(conflicts
                .iter()
                .flat_map(|c| c.paths().into_iter().map(move |p| format!("{} {p}", c.owner)))
                .collect()),
            Err(ApplyError::Convert(why)) => panic!("{why}"),
        }
    }

    fn owns(&self, manager: &str) -> String {
        let mut out = Vec::new();
        let owner = self.managed.owners().iter().find(|o| o.manager == manager);
        owner.map_or(&FieldSet::EMPTY, |o| o.fields()).write(&mut out);
        String::from_utf8(out).unwrap()
    }
}

#[test]
fn two_writers_share() {
    let mut shared = Shared::default();
    assert_eq!(
        shared.apply("a", r#"{"size":1,"selector":{"x":"1","y":"1"}}"#, false),
        Ok(true)
    );
    assert_eq!(
        shared.apply("a", r#"{"size":1,"selector":{"x":"1","y":"1"}}"#, false),
        Ok(false)
    );
    assert!(shared.settled);
    assert_eq!(shared.apply("b", r#"{"selector":{"x":"1"}}"#, false), Ok(false));
    assert!(!shared.settled, "it is said for the first time");
    assert_eq!(shared.owns("b"), r#"{"f:spec":{"f:selector":{"f:x":{}}}}"#);
    assert_eq!(
        shared.apply("b", r#"{"selector":{"x":"2"},"size":2}"#, false),
        Err(vec![r#""a" .spec.size"#.into(), r#""a" .spec.selector.x"#.into()])
    );
    // What two own goes when both have given it up.
    assert_eq!(shared.apply("a", r#"{"size":1}"#, false), Ok(true));
    assert_eq!(
        text(&shared.object),
        r#"{"size":1,"name":"","parts":null,"selector":{"x":"1"},"port":0,"tags":null}"#
            .replace(r#""size":1,"name":"""#, r#""name":"","size":1"#)
    );
    assert_eq!(shared.apply("b", r#"{}"#, false), Ok(true));
    assert!(shared.object.spec.selector.is_empty());
    assert_eq!(shared.apply("b", r#"{"size":2}"#, true), Ok(true));
    assert_eq!((shared.owns("a").as_str(), shared.object.spec.size), ("{}", 2));
}

#[test]
fn null_zero_and_empty_are_said() {
    let mut shared = Shared::default();
    shared
        .apply(
            "a",
            r#"{"replicas":null,"size":0,"child":{},"selector":{},"limits":{"cpu":null}}"#,
            false,
        )
        .unwrap();
    assert_eq!(
        shared.owns("a"),
        r#"{"f:spec":{"f:child":{},"f:limits":{"f:cpu":{}},"f:replicas":{},"f:selector":{},"f:size":{}}}"#
    );
    assert!(shared.object.spec.child.is_some());
    // A message without content goes with its owner.
    shared.apply("a", r#"{"child":{"size":3}}"#, false).unwrap();
    assert_eq!(shared.owns("a"), r#"{"f:spec":{"f:child":{"f:size":{}}}}"#);
    shared.apply("a", r#"{}"#, false).unwrap();
    assert!(shared.object.spec.child.is_none());
}

#[test]
fn other_texts_of_a_value_differ() {
    let mut shared = Shared::default();
    assert_eq!(shared.apply("a", r#"{"limits":{"cpu":"1000m"}}"#, false), Ok(true));
    assert_eq!(shared.apply("b", r#"{"limits":{"cpu":"1"}}"#, false), Ok(false));
    let conflicts = shared.apply("b", r#"{"limits":{"cpu":"1000m"}}"#, false).unwrap_err();
    assert_eq!(conflicts, [r#""a" .spec.limits.cpu"#]);
}

#[test]
fn what_was_there_before() {
    let mut shared = Shared {
        object: widget(r#"{"spec":{"size":1,"path":"/x"},"status":{"ready":true}}"#),
        ..Shared::default()
    };
    let conflicts = shared.apply("a", r#"{"size":2}"#, false).unwrap_err();
    assert_eq!(conflicts, [r#""before-first-apply" using example.com/v1 .spec.size"#]);
    assert_eq!(shared.apply("a", r#"{"size":2}"#, true), Ok(true));
    assert_eq!(shared.owns("before-first-apply"), r#"{"f:spec":{"f:path":{}}}"#);
    // Inlined fields are fields like others.
    assert_eq!(shared.apply("a", r#"{"path":"/x","size":2}"#, false), Ok(false));
    assert_eq!(shared.apply("a", r#"{"path":"/y"}"#, true), Ok(true));
    assert_eq!(shared.object.spec.source.path.as_deref(), Some("/y"));
    assert_eq!(shared.object.spec.size, 0);
}

#[test]
fn documents_that_do_not_fit() {
    for (spec, problem) in [
        (r#"{"nope":1}"#, ".spec.nope: field not declared in schema"),
        (
            r#"{"size":"x"}"#,
            ".spec.size: expected numeric (int or float), got string",
        ),
        (
            r#"{"selector":{"a":1}}"#,
            ".spec.selector.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (r#"{"parts":3}"#, ".spec.parts: expected list, got &{3}"),
        (
            r#"{"parts":[{"args":[1]}]}"#,
            ".spec.parts[0].args[0]: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            r#"{"child":{"enabled":"x","limits":[]}}"#,
            "errors:\n  .spec.child.enabled: expected boolean, got &{x}\n  .spec.child.limits: expected map, got &{[]}",
        ),
    ] {
        let body = format!(r#"{{"spec":{spec}}}"#);
        let found = read_document(body.as_bytes(), &mut Widget::default());
        assert_eq!(found.unwrap_err(), DocumentError::Schema(problem.into()));
    }
    let twice = read_document(br#"{"spec":{"size":1,"size":2}}"#, &mut Widget::default());
    assert_eq!(twice.unwrap_err(), DocumentError::Duplicate);
}

#[test]
fn numbers_of_other_forms() {
    let read = |spec: &str| {
        let mut widget = Widget::default();
        let body = format!(r#"{{"spec":{spec}}}"#);
        (read_document(body.as_bytes(), &mut widget).unwrap().unfit, widget)
    };
    assert_eq!(read(r#"{"replicas":3.0,"size":7}"#).1.spec.replicas, Some(3));
    assert_eq!(read(r#"{"replicas":3000000000}"#).1.spec.replicas, Some(-1_294_967_296));
    assert_eq!(
        read(r#"{"replicas":3.5}"#).0.unwrap(),
        "cannot convert float64 to int32"
    );
    assert_eq!(
        read(r#"{"port":true}"#).0.unwrap(),
        "json: cannot unmarshal bool into Go value of type int32"
    );
}
