//! Patches: many operations, large values, values that are copied into themselves, elements that are changed again and
//! again.

use super::{JSON, MAPS, MAX, Run, body_of};

/// Patches of an object that is there: many operations, large values, values that are copied into themselves.
#[test]
fn patches_are_cheap() {
    let mut run = Run::new();
    let base = r#"{"metadata":{"name":"grown"},"data":{"a":"b"}}"#;
    run.request("the object", ("POST", MAPS), JSON, base);
    let one = format!("{MAPS}/grown");
    let patch = |run: &mut Run, name: &str, kind: &str, body: String| {
        run.request(name, ("PATCH", &one), &format!("application/{kind}+json"), body);
    };
    let test = r#"{"op":"test","path":"/metadata/name","value":"grown"},"#;
    let add = r#"{"op":"add","path":"/data/a","value":"c"},"#;
    let copy = r#"{"op":"copy","from":"/metadata","path":"/metadata/annotations"},"#;
    for (name, unit) in [("tests", test), ("additions", add), ("copies", copy)] {
        let all = body_of("[", unit, &format!("{}]", unit.trim_end_matches(',')));
        patch(&mut run, &format!("JSON patch, {name}"), "json-patch", all);
    }
    for (name, count) in [("ten thousand", 10_000), ("a thousand", 1000)] {
        let all = format!("[{}]", vec![add.trim_end_matches(','); count].join(","));
        patch(&mut run, &format!("JSON patch, {name} additions"), "json-patch", all);
    }
    for (name, operation) in [
        ("first", r#"{"op":"add","path":"/data/x/0","value":1}"#),
        ("removed", r#"{"op":"remove","path":"/data/x/0"}"#),
        ("moved", r#"{"op":"move","from":"/data/x/0","path":"/data/x/1"}"#),
    ] {
        let operations = vec![operation; MAX / 5 / operation.len()].join(",");
        let begin = r#"[{"op":"add","path":"/data/x","value":["#;
        let all = body_of(begin, "0,", &format!("0]}},{operations}]"));
        patch(&mut run, &format!("JSON patch, {name} of many"), "json-patch", all);
    }
    let keys = |value: &str| {
        let pairs: Vec<String> = (0..).take(MAX / 24).map(|n| format!("\"key-{n}\":{value}")).collect();
        format!("{{\"data\":{{{}}}}}", pairs.join(","))
    };
    for kind in ["merge-patch", "strategic-merge-patch"] {
        patch(&mut run, &format!("{kind}, many keys"), kind, keys("\"v\""));
        patch(&mut run, &format!("{kind}, many removals"), kind, keys("null"));
        let nested = format!("{}1{}", "{\"a\":".repeat(200_000), "}".repeat(200_000));
        patch(&mut run, &format!("{kind}, nested"), kind, nested);
        let items = body_of(r#"{"data":{"x":["#, "0,", "null]}}");
        patch(&mut run, &format!("{kind}, many items"), kind, items);
        let long = body_of(
            r#"{"data":{""#,
            "k",
            &format!("\":{{{}\"a\":1}}}}}}", "\"a\":1,".repeat(1000)),
        );
        patch(&mut run, &format!("{kind}, repeated below a long key"), kind, long);
    }
    run.finish();
}

/// A strategic merge patch whose elements all name the same one of the object: each goes through what those before it
/// have made.
#[test]
fn patches_that_change_one_element_again_and_again_are_cheap() {
    const TEMPLATES: &str = "/api/v1/namespaces/default/podtemplates";
    let mut run = Run::new();
    let base = r#"{"metadata":{"name":"grown"},"template":{"spec":{"containers":[{"name":"c","image":"i",
        "env":[{"name":"e"}]}]}}}"#;
    run.request("the object", ("POST", TEMPLATES), JSON, base);
    let numbered = |unit: &str| {
        let units: Vec<String> = (0..MAX / (unit.len() + 8))
            .map(|n| unit.replace('#', &n.to_string()))
            .collect();
        format!(r#"{{"template":{{"spec":{{"containers":[{}]}}}}}}"#, units.join(","))
    };
    for (name, unit) in [
        ("members", r##"{"name":"c","x#":1}"##),
        ("items", r##"{"name":"c","env":[{"name":"e#"}]}"##),
        ("the same item", r#"{"name":"c","env":[{"name":"e"}]}"#),
        (
            "orders",
            r##"{"name":"c","$setElementOrder/env":[{"name":"e#"}],"env":[{"name":"e#"}]}"##,
        ),
        ("deletions", r##"{"name":"c","env":[{"name":"e#","$patch":"delete"}]}"##),
    ] {
        let path = format!("{TEMPLATES}/grown");
        let media_type = "application/strategic-merge-patch+json";
        run.request(name, ("PATCH", &path), media_type, numbered(unit));
    }
    run.finish();
}
