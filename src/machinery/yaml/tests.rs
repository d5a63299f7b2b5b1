use super::*;
use serde_json::Value;

/// Rows `["json", yaml, json, what a strict decoder says or null]`, `["error", yaml, text]` and
/// `["yaml", json, yaml]`, as sigs.k8s.io/yaml answers them.
const CASES: &str = include_str!("cases.json");

fn rows(kind: &str) -> Vec<Vec<Value>> {
    let all: Vec<Vec<Value>> = serde_json::from_str(CASES).unwrap();
    let rows: Vec<_> = all.into_iter().filter(|row| row[0] == kind).collect();
    assert!(!rows.is_empty());
    rows
}

#[test]
fn yaml_to_json() {
    for row in rows("json") {
        let yaml = row[1].as_str().unwrap();
        let (json, problems) = to_json_strict(yaml.as_bytes()).unwrap_or_else(|e| panic!("{yaml}\n{e}"));
        assert_eq!(String::from_utf8(json).unwrap(), row[2].as_str().unwrap(), "{yaml}");
        assert_eq!(problems.as_deref(), row[3].as_str(), "{yaml}");
    }
}

#[test]
fn what_is_no_yaml() {
    for row in rows("error") {
        let yaml = row[1].as_str().unwrap();
        let error = to_json(yaml.as_bytes()).expect_err(yaml).to_string();
        assert_eq!(error, row[2].as_str().unwrap(), "{yaml}");
    }
    assert!(to_json(b"\xff").is_err());
}

#[test]
fn json_to_yaml() {
    for row in rows("yaml") {
        let json = row[1].as_str().unwrap();
        let yaml = String::from_utf8(from_json(json.as_bytes()).unwrap()).unwrap();
        assert_eq!(yaml, row[2].as_str().unwrap(), "{json}");
    }
    assert!(from_json(b"{").is_err());
}

#[test]
fn what_is_written_reads_back() {
    for row in rows("yaml") {
        let json: Value = serde_json::from_str(row[1].as_str().unwrap()).unwrap();
        let yaml = from_json(row[1].as_str().unwrap().as_bytes()).unwrap();
        let back: Value = serde_json::from_slice(&to_json(&yaml).unwrap()).unwrap();
        assert_eq!(back, json, "{}", String::from_utf8(yaml).unwrap());
    }
}

#[test]
fn aliases_are_bounded() {
    // Each level ten times the one before.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
    }
    assert_eq!(
        to_json(bomb.as_bytes()).unwrap_err().to_string(),
        "yaml: document contains excessive aliasing"
    );
    // Few aliases of a long text.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 90].join(", "));
    assert!(to_json(long.as_bytes()).unwrap_err().to_string().contains("too large"));
    assert_eq!(
        to_json(b"a: &a [*a]\n").unwrap_err().to_string(),
        "yaml: anchor 'a' value contains itself"
    );
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
        let nested = |depth: usize| format!("{}x{}", open.repeat(depth), close.repeat(depth));
        assert!(to_json(nested(9_999).as_bytes()).is_ok(), "{open}");
        let error = to_json(nested(10_001).as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "yaml: exceeded max depth of 10000", "{open}");
    }
    let mut merges = "a0: &a0 {}\n".to_owned();
    for n in 1..2_000 {
        merges.push_str(&format!("a{n}: &a{n} {{<<: *a{}}}\n", n - 1));
    }
    assert!(to_json(merges.as_bytes()).is_err());
    assert!(from_json(format!("{}1{}", "[".repeat(2000), "]".repeat(2000)).as_bytes()).is_err());
}
