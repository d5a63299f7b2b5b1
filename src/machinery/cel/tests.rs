//! Expressions, their values and their mistakes.

use serde_json::json;

use super::*;

fn compile(source: &str) -> Result<Program, String> {
    let request = Type::object(
        "kubernetes.Request",
        [("user", Type::String), ("groups", Type::list(Type::String))],
    );
    Environment::new()
        .variable("request", request)
        .variable("object", Type::Dyn)
        .variable("claims", Type::map(Type::String, Type::Dyn))
        .compile(source)
        .map_err(|error| error.to_string())
}

fn evaluate(source: &str) -> Result<String, String> {
    let request = json!({"user": "alice", "groups": ["a", "b"]});
    let object = json!({"n": 3, "f": 1.5, "list": [1, 2, 3], "map": {"a": "b"}, "nothing": null, "text": "héllo"});
    let claims = json!({"sub": "x", "roles": ["r1", "r2"], "admin": true});
    let program = compile(source).map_err(|error| format!("compile: {error}"))?;
    let bindings = [
        ("request", Value::from(&request)),
        ("object", Value::from(&object)),
        ("claims", Value::from(&claims)),
    ];
    let evaluated = program
        .evaluate(&bindings, CALL_LIMIT)
        .map_err(|fault| fault.to_string())?;
    Ok(format!("{:?}", evaluated.value))
}

#[test]
fn expressions_have_values() {
    let text = include_str!("tests/values.txt");
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (source, want) = line.split_once("  ⇒  ").unwrap();
        let got = evaluate(source).unwrap_or_else(|fault| format!("fault: {fault}"));
        // Of a mistake of the text, the first line.
        let got = got.lines().next().unwrap_or_default();
        if got != want.trim() {
            wrong.push(format!("{source}: {got}, want {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What kube-apiserver says of such expressions: first line alone, and all of it once.
#[test]
fn mistakes_are_told_as_kube_apiserver_tells_them() {
    for (source, want) in [
        (
            "1 +",
            "ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', \
             'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ),
        (
            "",
            "ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', \
             'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ),
        ("has(object)", "ERROR: <input>:1:5: invalid argument to has() macro"),
        (
            "a b",
            "ERROR: <input>:1:3: Syntax error: extraneous input 'b' expecting <EOF>",
        ),
        (
            "object.x.all(y.z, true)",
            "ERROR: <input>:1:15: argument must be a simple name",
        ),
        // What nothing is known of is what the first use of it says, whichever that is.
        (
            "[].all(x, x && x == 1)",
            "ERROR: <input>:1:11: expected type 'bool' but found '_var0'",
        ),
        (
            "[].all(x, x == 1 && [x])",
            "ERROR: <input>:1:21: expected type 'bool' but found 'list(_var0)'",
        ),
        (
            "[].foo == 1",
            "ERROR: <input>:1:3: type 'list(_var0)' does not support field selection",
        ),
        (
            "[].map(x, x[0] == 1 && x == 'a').size() == 0",
            "ERROR: <input>:1:26: found no matching overload for '_==_' applied to '(list(int), string)'",
        ),
        (
            "[].all(x, x.size() == 0 && x == 'a')",
            "ERROR: <input>:1:30: found no matching overload for '_==_' applied to '(bytes, string)'",
        ),
        (
            "[].all(x, x - x == 0.0 && x == 1)",
            "ERROR: <input>:1:29: found no matching overload for '_==_' applied to '(double, int)'",
        ),
        (
            "[].all(x, x.isSorted() && x == 1)",
            "ERROR: <input>:1:29: found no matching overload for '_==_' applied to '(list(int), int)'",
        ),
        (
            "1 == 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "foo",
            "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')",
        ),
        (
            "object.x.foo()",
            "ERROR: <input>:1:13: undeclared reference to 'foo' (in container '')",
        ),
        ("request.foo == 1", "ERROR: <input>:1:8: undefined field 'foo'"),
        (
            "'\u{fc}' == '\u{fc}' &&\n'\u{fc}' == '' && -1 == ''",
            "ERROR: <input>:2:17: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "'a'.startsWith(1)",
            "ERROR: <input>:1:15: found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        (
            "[1,2].exists(x, x == 'a')",
            "ERROR: <input>:1:19: found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "size(1) == 1",
            "ERROR: <input>:1:5: found no matching overload for 'size' applied to '(int)'",
        ),
        (
            "[1,'a'].size() == 2",
            "ERROR: <input>:1:4: expected type 'int' but found 'string'",
        ),
        (
            "{'a':1, 2:3}.size()==2",
            "ERROR: <input>:1:9: expected type 'string' but found 'int'",
        ),
        (
            "'a'.foo == 1",
            "ERROR: <input>:1:4: type 'string' does not support field selection",
        ),
        (
            "1.all(x, x)",
            "ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or \
             dynamic)",
        ),
        (
            "[1].exists(x, 1)",
            "ERROR: <input>:1:15: expected type 'bool' but found 'int'",
        ),
        (
            "true ? 1 : 'a'",
            "ERROR: <input>:1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
        ),
        (
            "1 in [1.0]",
            "ERROR: <input>:1:3: found no matching overload for '@in' applied to '(int, list(double))'",
        ),
        (
            "-'a' == ''",
            "ERROR: <input>:1:1: found no matching overload for '-_' applied to '(string)'",
        ),
        (
            "'%s'.format([{'a': 1, ?'b': optional.of(1)}]) == ''",
            "ERROR: <input>:1:40: error during formatting: string clause can only be used on strings, bools, bytes, \
             ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
        ),
        (
            "'%s'.format([[1, [?optional.of(1)]]]) == ''",
            "ERROR: <input>:1:31: error during formatting: string clause can only be used on strings, bools, bytes, \
             ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
        ),
        (
            "'a'.matches('(') == true",
            "ERROR: <input>:1:13: invalid matches argument",
        ),
        (
            "duration('x') == duration('1s')",
            "ERROR: <input>:1:10: invalid duration argument",
        ),
    ] {
        let error = compile(source).err().unwrap_or_default();
        assert_eq!(error.lines().next().unwrap_or_default(), want, "{source}");
    }
    assert_eq!(
        compile("'é…' + foo").err().unwrap(),
        "ERROR: <input>:1:8: undeclared reference to 'foo' (in container '')\n | 'é…' + foo\n | .．．....^"
    );
    assert_eq!(
        compile("object.x.y(z)").err().unwrap(),
        "ERROR: <input>:1:11: undeclared reference to 'y' (in container '')\n | object.x.y(z)\n | ..........^\n\
         ERROR: <input>:1:12: undeclared reference to 'z' (in container '')\n | object.x.y(z)\n | ...........^"
    );
}

#[test]
fn types_have_their_names() {
    for (source, want) in [
        ("1", "int"),
        ("null", "null_type"),
        ("[1].map(x, x)", "list(int)"),
        ("{'a':1}", "map(string, int)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("type(1)", "type(int)"),
        ("string", "type(string)"),
        ("duration('1s')", "google.protobuf.Duration"),
        ("quantity('1')", "kubernetes.Quantity"),
        ("optional.of(1)", "optional_type(int)"),
        ("ip('1.1.1.1')", "net.IP"),
        ("object", "dyn"),
        ("request", "kubernetes.Request"),
        ("request.groups.filter(g, g != 'a')", "list(string)"),
        ("claims.roles", "dyn"),
        ("dyn(1)", "dyn"),
        ("object.?a.b", "optional_type(dyn)"),
    ] {
        assert_eq!(compile(source).unwrap().result_type().to_string(), want, "{source}");
    }
}

/// reliability: expressions that grow are stopped, in their text, their nesting and their cost.
#[test]
fn nothing_runs_away() {
    let long = format!("'{}' == ''", "x".repeat(70_000));
    assert!(compile(&long).err().unwrap().contains("longer than"));
    for source in [
        "(".repeat(30_000),
        "[".repeat(30_000),
        "!".repeat(30_000),
        "{".repeat(30_000),
    ] {
        assert!(compile(&source).is_err());
    }
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(300), close.repeat(300));
    assert!(
        compile(&deep("(", ")"))
            .err()
            .unwrap()
            .contains("recursion limit exceeded")
    );
    let chain = format!("object{} == 1", ".a".repeat(2_000));
    assert!(compile(&chain).err().unwrap().contains("nested deeper than 500 levels"));
    let program = compile(
        "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, \
                           [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, a+b+c+d+e))))).size() > 0",
    );
    let fault = program.unwrap().evaluate(&[], 10_000).err().unwrap();
    assert_eq!(fault.to_string(), "operation cancelled: actual cost limit exceeded");
    let doubling = (0..30).fold("'x'".to_owned(), |inner, _| format!("[{inner}].map(s, s + s)[0]"));
    assert!(compile(&doubling).unwrap().evaluate(&[], 10_000).is_err());
}

#[test]
fn programs_say_what_they_read() {
    let program = compile("request.user == 'a' || has(object.x.y)").unwrap();
    assert!(program.refers_to("request") && program.refers_to("object") && !program.refers_to("claims"));
    assert!(program.selects(&["request", "user"]) && program.selects(&["object", "x"]));
    assert!(!program.selects(&["request", "groups"]));
}

#[test]
fn programs_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>(_: &T) {}
    shareable(&compile("true").unwrap());
    shareable(&Environment::new());
}

#[test]
fn api_objects_are_read_as_their_json() {
    use crate::meta::v1::{ObjectMeta, OwnerReference};
    let mut meta = ObjectMeta {
        name: "a".into(),
        ..ObjectMeta::default()
    };
    meta.labels.insert("app".into(), "web".into());
    meta.owner_references.push(OwnerReference {
        name: "o".into(),
        controller: Some(false),
        ..OwnerReference::default()
    });
    for (source, want) in [
        ("object.name + object.labels.app", "\"aweb\""),
        ("has(object.namespace) || has(object.creationTimestamp)", "false"),
        ("object.ownerReferences[0].controller", "false"),
        (
            "object.ownerReferences.all(o, has(o.controller) && !has(o.blockOwnerDeletion))",
            "true",
        ),
        ("object.labels.exists(k, k == 'app') && 'app' in object.labels", "true"),
    ] {
        let program = compile(source).unwrap();
        let value = program.evaluate(&[("object", Value::object(&meta))], CALL_LIMIT);
        assert_eq!(format!("{:?}", value.unwrap().value), want, "{source}");
    }
}
