//! Promises of a trusted server, the attacks that it stands, and the tests that hold each: `tests/data/promises.txt`
//! has them all, `tests/data/uncovered-promises.txt` says what is missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

use std::path::Path;

/// A promise, and its tests: a file and a function in it.
struct Promise<'a> {
    name: &'a str,
    tests: Vec<(&'a str, &'a str)>,
}

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn promises(text: &str) -> Vec<Promise<'_>> {
    let mut all: Vec<Promise<'_>> = Vec::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with(['#', '=']) {
            continue;
        }
        match line.strip_prefix("    ") {
            None => all.push(Promise {
                name: line,
                tests: Vec::new(),
            }),
            Some(test) => {
                let test = test.split_once(' ').unwrap_or_else(|| panic!("no test: {line}"));
                all.last_mut().expect("a promise comes first").tests.push(test);
            }
        }
    }
    all
}

/// The promise that a line of the uncovered ones is about, and what it lacks.
fn uncovered<'a>(line: &'a str, all: &[Promise<'_>]) -> (&'a str, &'a str) {
    let of = |promise: &Promise<'_>| line.strip_prefix(promise.name)?.strip_prefix(": ");
    let found = all.iter().find_map(|promise| Some((promise, of(promise)?)));
    let (promise, reason) = found.unwrap_or_else(|| panic!("nobody promises this: {line}"));
    assert!(!reason.trim().is_empty(), "no reason: {line}");
    (&line[..promise.name.len()], reason)
}

/// Whether the file has the function, and it is a test, one of the cases that several tests run, or part of a program
/// that is run by command.
fn has_test(file: &str, test: &str) -> bool {
    let text = read(file);
    let Some(at) = text.find(&format!("fn {test}(")) else {
        return false;
    };
    let before: Vec<&str> = text[..at].lines().rev().take(4).collect();
    let cases = (file.ends_with("/tests/cases.rs") || file.contains("/tests/cases/"))
        && read("src/storage/tests/contract.rs").contains(&format!("    {test},"));
    before
        .iter()
        .any(|line| line.contains("test]") || line.contains("::test("))
        || cases
        || file.starts_with("tests/history/src/")
}

#[test]
fn every_promise_has_tests_or_says_what_is_missing() {
    let (text, list) = (
        read("tests/data/promises.txt"),
        read("tests/data/uncovered-promises.txt"),
    );
    let all = promises(&text);
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let missing: Vec<&str> = lines.map(|line| uncovered(line, &all).0).collect();
    let mut wrong = Vec::new();
    for Promise { name, tests } in &all {
        let lines = missing.iter().filter(|line| *line == name).count();
        if lines > 1 || lines == 0 && tests.is_empty() || all.iter().filter(|other| other.name == *name).count() > 1 {
            wrong.push(format!("{name:?} has {lines} lines and {} tests", tests.len()));
        }
        for (file, test) in tests {
            if !has_test(file, test) {
                wrong.push(format!("{name:?}: there is no test {test} in {file}"));
            }
        }
    }
    assert!(all.len() > 70, "{} promises", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
