//! Rules that look at more than one field: unions, what others require, CEL rules, checks of types.

use std::sync::Arc;

use super::*;
use crate::reflect::dynamic::DynamicMessage;
use crate::reflect::time::Time;
use crate::reflect::{Compiled, MessageDesc, MessageRules, Name, Ref, Type, Unknown, ValidationRule};

#[derive(Clone, Default, Message)]
#[message(name = "test.Engine")]
#[union(discriminator = "type", members("electric=Electric", "combustion=Combustion"))]
#[union(members("left", "right", "gear"))]
struct Engine {
    #[field(json = "type")]
    kind: String,
    #[field(json = "electric")]
    electric: Option<Box<Port>>,
    #[field(json = "combustion")]
    combustion: Option<Box<Port>>,
    #[field(json = "left")]
    left: String,
    #[field(json = "right")]
    right: String,
    #[field(json = "gear")]
    gear: Option<i32>,
    #[field(json = "note", required_when = "type=Combustion", has_rules)]
    note: String,
    #[field(json = "labels", has_rules, key_format = "label-key", item_format = "label-value")]
    labels: BTreeMap<String, String>,
    #[field(json = "ports", has_rules, item_format = "port")]
    ports: Vec<i32>,
    #[field(json = "address", has_rules, format = "k8s-ip")]
    address: String,
}

fn texts(errors: ErrorList) -> Vec<String> {
    let mut texts = super::texts(errors);
    texts.sort();
    texts
}

fn engine() -> Engine {
    Engine {
        kind: "Electric".into(),
        electric: Some(Box::default()),
        gear: Some(0),
        ..Engine::default()
    }
}

fn faults(new: &Engine, old: Option<&Engine>) -> Vec<String> {
    let old = old.map(|old| old as &dyn Reflect);
    let mut texts = texts(validate(new, old, &Path::root()));
    texts.retain(|text| !text.starts_with("electric."));
    texts
}

#[test]
fn one_member_of_a_union_is_there() {
    assert!(faults(&engine(), None).is_empty());
    let mut other = engine();
    other.kind = "Combustion".into();
    other.left = "a".into();
    assert_eq!(
        faults(&other, None),
        [
            "<nil>: Invalid value: \"{left, gear}\": must specify exactly one of: `left`, `right`, `gear`",
            "combustion: Invalid value: \"\": must be specified when `type` is \"Combustion\"",
            "electric: Invalid value: \"\": may only be specified when `type` is \"Electric\"",
            "note: Required value",
        ]
    );
    let mut none = engine();
    none.gear = None;
    assert_eq!(
        faults(&none, None),
        ["<nil>: Invalid value: \"\": must specify one of: `left`, `right`, `gear`"]
    );
    assert!(faults(&none, Some(&none)).is_empty(), "what was stored so stays");
    assert_eq!(faults(&none, Some(&engine())).len(), 1);
}

#[test]
fn keys_and_items_have_formats() {
    let mut new = engine();
    new.labels = [("a/b/c".to_owned(), "x".to_owned()), ("ok".to_owned(), "-".to_owned())].into();
    new.ports = vec![1, 0, 65536];
    new.address = "1.2.3".into();
    let found = faults(&new, None);
    let starts = [
        "address: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        "labels[a/b/c]: Invalid value: \"a/b/c\": a valid label key must",
        "labels[ok]: Invalid value: \"-\": a valid label must",
        "ports[1]: Invalid value: 0: must be between 1 and 65535, inclusive",
        "ports[2]: Invalid value: 65536: must be between 1 and 65535, inclusive",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (text, start) in found.iter().zip(starts) {
        assert!(text.starts_with(start), "{text}");
    }
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Window")]
#[validation(rule = "self.low <= self.high", message = "upside down", field_path = ".high")]
#[validation(rule = "self.low >= oldSelf.low", reason = "FieldValueForbidden")]
#[validation(
    rule = "!oldSelf.hasValue() || self.high <= oldSelf.value().high * 2",
    message_expression = "'grown to ' + string(self.high)",
    optional_old_self
)]
struct Window {
    #[field(json = "low", always)]
    low: i32,
    #[field(json = "high")]
    high: i64,
    #[field(json = "namespace", has_validations)]
    #[validation(rule = "self.startsWith('w')")]
    namespace: String,
    #[field(json = "at", has_validations)]
    #[validation(
        rule = "self.getFullYear() > 2000",
        reason = "FieldValueRequired",
        message = "of this age"
    )]
    at: Time,
    #[field(json = "parts", list = "map", keys("name"), has_validations)]
    #[validation(rule = "self.all(p, p.low < 10)")]
    parts: Vec<Pane>,
}

#[derive(Clone, Default, Message)]
#[message(name = "test.Pane")]
#[validation(rule = "self.low == oldSelf.low", message = "panes stay")]
struct Pane {
    #[field(json = "name")]
    name: String,
    #[field(json = "low", always)]
    low: i32,
}

fn window() -> Window {
    Window {
        low: 1,
        high: 4,
        namespace: "w".into(),
        at: Time::parse("2026-01-01T00:00:00Z").unwrap(),
        parts: ["a", "b"]
            .map(|name| Pane {
                name: name.into(),
                low: 1,
            })
            .into(),
    }
}

#[test]
fn rules_in_cel_are_evaluated() {
    compile(Window::message_desc()).unwrap();
    assert_eq!(texts(validate(&window(), None, &Path::root())), [""; 0]);
    let mut bad = window();
    bad.low = 9;
    bad.namespace = "x".into();
    bad.at = Time::parse("1999-01-01T00:00:00Z").unwrap();
    bad.parts[1].low = 10;
    assert_eq!(
        texts(validate(&bad, None, &Path::new("spec"))),
        [
            "spec.at: Required value: of this age",
            "spec.high: Invalid value: upside down",
            "spec.namespace: Invalid value: \"x\": failed rule: self.startsWith('w')",
            "spec.parts: Invalid value: failed rule: self.all(p, p.low < 10)",
        ]
    );
    let mut changed = window();
    changed.low = 0;
    changed.high = 9;
    changed.parts.reverse();
    changed.parts[0].low = 2;
    assert_eq!(
        texts(validate(&changed, Some(&window()), &Path::new("spec"))),
        [
            "spec.parts[0]: Invalid value: panes stay",
            "spec: Forbidden: failed rule: self.low >= oldSelf.low",
            "spec: Invalid value: grown to 9",
        ]
    );
}

fn rule(text: &str) -> ValidationRule {
    let empty = Name::new_static("");
    ValidationRule {
        rule: text.into(),
        message: empty.clone(),
        message_expression: empty.clone(),
        reason: empty.clone(),
        field_path: empty,
        optional_old_self: false,
        compiled: Compiled::not_yet(),
    }
}

fn dynamic(rules: &[&str], fields: Vec<FieldDesc>) -> crate::reflect::Desc {
    let rules = MessageRules {
        validations: rules.iter().map(|text| rule(text)).collect::<Vec<_>>().into(),
        ..MessageRules::NONE
    };
    MessageDesc::shared_with_rules("x.Y", None, fields, Unknown::Kept, Ref::Shared(Arc::new(rules))).unwrap()
}

#[test]
fn rules_of_types_that_come_at_run_time_are_the_same() {
    let field = |name, ty| FieldDesc::shared(name, ty, Flags::NONE);
    let fields = || {
        vec![
            field("n", Type::Int64),
            field("x-y", Type::Any),
            field("words", Type::List(Ref::Shared(Arc::new(field("", Type::String))))),
        ]
    };
    let desc = dynamic(
        &[
            "self.n > 1",
            "has(self.x__dash__y)",
            "self.words.all(w, self.words.all(v, self.words.all(u, self.words.all(t, t + u + v + w != ''))))",
            "self.n < 100",
        ],
        fields(),
    );
    compile(&desc).unwrap();
    let read = |json: &str| {
        let mut message = DynamicMessage::new(desc.clone());
        crate::json::read(json.as_bytes(), &mut message).unwrap();
        message
    };
    let found = |json: &str| texts(validate(&read(json), None, &Path::new("spec")));
    assert_eq!(found(r#"{"n":2,"x-y":1,"words":["a"]}"#), [""; 0]);
    assert_eq!(
        found(r#"{"n":1,"words":["a"]}"#),
        [
            "spec: Invalid value: failed rule: has(self.x__dash__y)",
            "spec: Invalid value: failed rule: self.n > 1",
        ]
    );
    let missing = found(r#"{"x-y":1,"words":["a"]}"#);
    assert_eq!(
        missing[0],
        "spec: Invalid value: \"object\": no such key: n evaluating rule: self.n < 100"
    );
    let words: Vec<String> = (0..100).map(|n| format!("{n:?}")).collect();
    let long = found(&format!("{{\"n\":200,\"x-y\":1,\"words\":{words:?}}}"));
    assert_eq!(
        long.len(),
        1,
        "nothing is looked at behind what cost too much: {long:?}"
    );
    assert!(long[0].contains("no further validation rules will be run due to call cost exceeds limit"));
    let blocked = found(r#"{"n":"a"}"#);
    assert_eq!(blocked.len(), 2, "{blocked:?}");
    assert!(
        blocked
            .iter()
            .any(|text| text.contains("some validation rules were not checked"))
    );
}

#[test]
fn rules_that_do_not_compile_are_named() {
    let cases = [
        ("self.m > 1", "undefined field 'm'"),
        ("self.n + 1", "must evaluate to a bool"),
        ("self.n >", "Syntax error"),
        ("other", "undeclared reference to 'other'"),
    ];
    for (text, wrong) in cases {
        let desc = dynamic(&[text], vec![FieldDesc::shared("n", Type::Int64, Flags::NONE)]);
        let error = compile(&desc).unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("x.Y"), "{error}");
    }
}

#[test]
fn code_checks_a_type_wherever_it_stands() {
    fn check(new: &Port, old: Option<&Port>, place: &Place<'_>, errors: &mut ErrorList) {
        if new.port == 13 {
            let path = Place::Field(place, "port").path();
            errors.push(FieldError::invalid(
                &path,
                new.port,
                format!("was {:?}", old.map(|old| old.port)),
            ));
        }
    }
    let mut checks = TypeChecks::default();
    checks.add::<Port>(check);
    let port = |n| Port {
        port: n,
        protocol: n.to_string(),
        ..Port::default()
    };
    let (mut new, mut old) = (good(), good());
    old.spec.ports = vec![port(12), port(13)];
    new.spec.ports = vec![port(13), port(12)];
    new.spec.parts = [("a".to_owned(), port(13))].into();
    assert_eq!(
        texts(validate_with(&new, Some(&old), &Path::root(), &checks)),
        [
            "spec.parts[a].port: Invalid value: 13: was None",
            "spec.ports[0].port: Invalid value: 13: was Some(13)",
        ]
    );
    // Also where no rule of the definition leads.
    let status = Status {
        selector: Some(Box::new(port(13))),
        ..Status::default()
    };
    assert_eq!(texts(validate_with(&status, None, &Path::root(), &checks)).len(), 1);
    assert!(validate(&status, None, &Path::root()).is_empty());
}
