//! Rules of many expressions over values of every type: whether a definition may have them, and what they say of
//! objects that are made and changed.

use serde_json::{Value, json};

use super::super::expressions::expression;
use super::super::random::Random;
use super::DEFINITIONS;

/// Definitions of one case, each with rules of its own.
const RULED: usize = 12;
/// Objects that each of them is asked about.
const OBJECTS: usize = 3;

/// What stands in expressions over objects of a policy, and what may stand there in rules.
const SEEN: [(&str, &[&str]); 34] = [
    ("oldObject == null", &["self.b", "oldSelf.b", "self == oldSelf"]),
    (
        "has(object.data.a)",
        &["has(self.o.a)", "has(self.s)", "has(self.lm[0].v)"],
    ),
    (
        "has(object.data.x)",
        &["has(self.n)", "has(oldSelf.s)", "has(self.any.a)"],
    ),
    ("object.data[?'a']", &["self.m[?'a']", "self.?s"]),
    ("object.data.?x", &["self.?s2", "oldSelf.?s"]),
    ("object.?data.?a", &["self.?o.?a", "self.?n"]),
    ("size(object.data)", &["size(self.m)", "size(self.lm)", "self.i"]),
    (
        "object.metadata.?finalizers.orValue([])",
        &["self.?l.orValue([])", "self.l", "oldSelf.l"],
    ),
    (
        "object.metadata.labels.map(k, k)",
        &["self.m.map(k, k)", "self.lm.map(x, x.k)"],
    ),
    ("object.metadata.labels.t", &["self.m.a", "self.x"]),
    ("namespaceObject.metadata.labels['none']", &["self.m['none']", "self.n"]),
    ("object.metadata.name", &["self.s", "oldSelf.s", "self.lm[0].k"]),
    ("object.metadata.", &["self."]),
    ("object.data.a", &["self.s", "self.o.a", "self.m.a", "oldSelf.s"]),
    ("object.data.x", &["self.s2", "self.l[0]", "self.q"]),
    ("object.none", &["self.x", "self.any"]),
    ("object.immutable", &["self.x", "self.any.a"]),
    ("request.operation", &["self.s"]),
    ("request.userInfo.username", &["self.s2"]),
    ("'abc1'", &["self.s", "'abc1'"]),
    ("'a,b,c'", &["self.s2", "'a,b,c'"]),
    ("42", &["self.i", "self.o.b", "42"]),
    ("1.5", &["self.d", "1.5", "oldSelf.d"]),
    ("[1, 2, 3]", &["self.li", "oldSelf.li", "[1, 2, 3]"]),
    ("[3, 1, 2, 1]", &["self.li", "[3, 1, 2, 1]", "self.set"]),
    ("['a', 'b']", &["self.l", "['a', 'b']"]),
    (
        "['c', 'a', 'a']",
        &["self.l", "self.m.map(k, self.m[k])", "self.lm.map(x, x.k)"],
    ),
    ("{'a': 1, 'b': 2}", &["self.mi", "{'a': 1, 'b': 2}", "oldSelf.mi"]),
    ("{'x': 5}", &["self.mi", "{'x': 5}"]),
    ("duration('1h')", &["self.u", "duration('1h')"]),
    (
        "timestamp('2024-02-29T12:30:45Z')",
        &["self.t", "self.date", "oldSelf.t"],
    ),
    ("b'abc'", &["self.y", "b'abc'"]),
    ("quantity('1')", &["quantity(self.q)", "quantity('1')"]),
    ("authorizer.path('/healthz').check('get').allowed()", &["self.b"]),
];

/// A case of definitions with such rules, and objects of each.
pub(in super::super) fn case(random: &mut Random, name: &str) -> Value {
    let mut steps = Vec::new();
    for number in 0..RULED {
        let rules = (0..1 + random.below(2)).map(|_| rule(random)).collect();
        steps.push(
            json!({"method": "POST", "path": DEFINITIONS, "body": definition(number, rules, random),
            "sortBy": {"details.causes": ["field", "reason", "message"]},
            "only": ["kind", "reason", "message", "details.causes"]}),
        );
    }
    // It is served when those before it are.
    steps.push(
        json!({"method": "POST", "path": DEFINITIONS, "body": definition(RULED, Vec::new(), random),
        "compare": "none"}),
    );
    steps.push(
        json!({"path": format!("/apis/{{uniq}}.example.com/v1/t{RULED}s"), "compare": "none",
        "until": {"status": 200}, "within": 6}),
    );
    steps.push(json!({"sleep": 0.5}));
    for number in 0..RULED {
        ask(random, number, &mut steps);
    }
    let cleanup: Vec<Value> = (0..=RULED)
        .map(|number| json!({"path": format!("{DEFINITIONS}/t{number}s.{{uniq}}.example.com")}))
        .collect();
    json!({"name": name, "about": "generated", "steps": super::numbered(steps), "cleanup": cleanup})
}

/// Makes objects of a definition and changes them.
fn ask(random: &mut Random, number: usize, steps: &mut Vec<Value>) {
    let path = format!("/apis/{{uniq}}.example.com/v1/namespaces/{{ns}}/t{number}s");
    let object = |name: &str, spec: Value| {
        json!({"apiVersion": "{uniq}.example.com/v1", "kind": format!("T{number}"),
            "metadata": {"name": name}, "spec": spec})
    };
    let mut step = |mut step: Value| {
        step["sortBy"] = json!({"details.causes": ["field", "reason", "message"]});
        step["ignore"] = json!(["metadata"]);
        steps.push(step);
    };
    for place in 0..OBJECTS {
        let object = object(&format!("n{place}"), spec(random));
        step(json!({"method": "POST", "path": path, "body": object}));
        let mut patch = spec(random);
        let names: Vec<String> = patch
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            // Most stays as it is.
            if !random.once_in(4) {
                patch.as_object_mut().map(|members| members.remove(&name));
            } else if random.once_in(4) {
                patch[&name] = Value::Null;
            }
        }
        step(
            json!({"method": "PATCH", "path": format!("{path}/n{place}"), "body": {"spec": patch},
            "headers": {"Content-Type": "application/merge-patch+json"}}),
        );
    }
}

fn rule(random: &mut Random) -> Value {
    let letter = random.pick(&['b', 'b', 'b', 'b', 'b', 'i', 's']);
    let depth = 1 + random.below(3);
    let made = expression(random, letter, depth);
    let mut text = seen(random, &made);
    if letter != 'b' {
        text = format!("[{text}].size() == {}", random.below(2));
    }
    let mut rule = json!({"rule": text});
    if random.once_in(4) {
        let depth = 1 + random.below(2);
        let made = expression(random, 's', depth);
        rule["messageExpression"] = json!(seen(random, &made));
    }
    if random.once_in(6) {
        rule["optionalOldSelf"] = json!(true);
        rule["rule"] = json!(text.replace("oldSelf.", "oldSelf.value().") + " || oldSelf.hasValue()");
    }
    if random.once_in(4) {
        let paths = [
            ".s", ".o.a", ".m['a']", ".l", ".lm", ".zz", ".n", ".any.x", ".o['a']", ".m.b",
        ];
        rule["fieldPath"] = json!(random.pick(&paths));
    }
    if random.once_in(5) {
        let reasons = ["FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];
        rule["reason"] = json!(random.pick(&reasons));
    }
    rule
}

/// The same over the values of a custom object.
fn seen(random: &mut Random, expression: &str) -> String {
    let mut text = expression.to_owned();
    for (part, instead) in SEEN {
        while let Some(at) = text.find(part) {
            let chosen = random.pick(instead);
            // What stays is not found again.
            let chosen = chosen.replace(part, "\u{1}");
            text.replace_range(at..at + part.len(), &chosen);
        }
        text = text.replace('\u{1}', part);
    }
    text
}

fn definition(number: usize, rules: Vec<Value>, random: &mut Random) -> Value {
    let mut spec = schema();
    if random.once_in(4) {
        for unbounded in ["l", "m", "s"] {
            for limit in ["maxItems", "maxProperties", "maxLength"] {
                spec["properties"][unbounded]
                    .as_object_mut()
                    .map(|own| own.remove(limit));
            }
        }
    }
    if !rules.is_empty() {
        spec["x-kubernetes-validations"] = rules.into();
    }
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("t{number}s.{{uniq}}.example.com")},
        "spec": {"group": "{uniq}.example.com", "scope": "Namespaced",
            "names": {"plural": format!("t{number}s"), "kind": format!("T{number}")}, "versions": [version]}})
}

fn schema() -> Value {
    let text = |most: usize| json!({"type": "string", "maxLength": most});
    let format = |format: &str| json!({"type": "string", "format": format, "maxLength": 40});
    let list = |items: Value| json!({"type": "array", "maxItems": 5, "items": items});
    let map = |values: Value| json!({"type": "object", "maxProperties": 5, "additionalProperties": values});
    let integer = || json!({"type": "integer"});
    let mut keyed = list(json!({"type": "object", "required": ["k"], "properties": {"k": text(9), "v": integer()}}));
    keyed["x-kubernetes-list-type"] = json!("map");
    keyed["x-kubernetes-list-map-keys"] = json!(["k"]);
    let mut set = list(integer());
    set["x-kubernetes-list-type"] = json!("set");
    json!({"type": "object", "properties": {
        "s": text(20), "s2": text(30), "q": text(10), "n": {"type": "string", "maxLength": 9, "nullable": true},
        "i": integer(), "b": {"type": "boolean"}, "d": {"type": "number"},
        "l": list(text(10)), "li": list(integer()), "m": map(text(10)), "mi": map(integer()), "lm": keyed,
        "set": set, "o": {"type": "object", "properties": {"a": text(10), "b": integer()}},
        "x": {"x-kubernetes-int-or-string": true}, "t": format("date-time"), "date": format("date"),
        "u": format("duration"), "y": format("byte"),
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": integer()}}}})
}

/// Values of all fields, or of most.
fn spec(random: &mut Random) -> Value {
    let text = |random: &mut Random| json!(random.pick(&["a", "ab", "", "abc1", "1", "10.0.0.1", "true", "100m", "é"]));
    let number = |random: &mut Random| json!(random.pick(&[0_i64, 1, 2, 3, -1, 7, i64::MAX]));
    let list = |random: &mut Random, one: &dyn Fn(&mut Random) -> Value| {
        (0..random.below(4)).map(|_| one(random)).collect::<Vec<Value>>()
    };
    let keyed = ["a", "b", "c"]
        .iter()
        .filter(|_| !random.once_in(2))
        .copied()
        .collect::<Vec<_>>();
    let keyed: Vec<Value> = keyed.iter().map(|key| json!({"k": key, "v": number(random)})).collect();
    let mut spec = json!({
        "s": text(random), "s2": text(random), "q": random.pick(&["1", "500m", "x"]), "n": text(random),
        "i": number(random), "b": random.once_in(2), "d": random.pick(&[0.0, 1.5, -2.25, 3.0, 1e10]),
        "l": list(random, &text), "li": list(random, &number), "lm": keyed,
        "m": {"a": text(random), "b": text(random)}, "mi": {"a": number(random), "x": number(random)},
        "set": random.pick(&[&[1, 2][..], &[], &[3]]), "o": {"a": text(random), "b": number(random)},
        "x": random.pick(&["5", "10%"]), "t": random.pick(&["2024-02-29T12:30:45Z", "2020-01-01T00:00:00.5+01:00"]),
        "date": random.pick(&["2024-02-29", "1970-01-01"]), "u": random.pick(&["1h", "90s", "1.5s"]),
        "y": random.pick(&["YQ==", "", "YWJj"]), "any": {"a": number(random), "z": [text(random)]}});
    if random.once_in(2) {
        spec["x"] = number(random);
    }
    let names: Vec<String> = spec
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        if random.once_in(10) {
            spec.as_object_mut().map(|members| members.remove(&name));
        }
    }
    spec
}
