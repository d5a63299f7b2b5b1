//! The generated model is that of Kubernetes v1.36: every definition with its fields, numbers, presence, order, lists,
//! patches, defaults and enums; every group, version and kind with its names, verbs, subresources and columns.
//!
//! Both sides are written as text in one form (`ours.rs`, `theirs.rs`). Where the facts are at hand the texts must be
//! equal; where they are not, the digests of ours must be those in `tests/data/model.txt`, which were equal once.
//! `UPDATE=1 cargo test --test model` writes that file anew.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test, as it should")]

#[path = "../facts/mod.rs"]
mod facts;
mod ours;
mod theirs;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use facts::facts;
use sha2::{Digest, Sha256};

/// Name of a definition or kind → its text, one line for each property.
type Texts = BTreeMap<String, String>;

/// Before the number of a field, and before what only OpenAPI says of it; see [`reduced`].
const NUMBER: &str = " #";
const PUBLISHED: &str = "; ";

/// The text without what the facts cannot say.
fn reduced(text: &str, numbered: bool, published: bool) -> String {
    let line = |line: &str| {
        let (number, rest) = line.split_once(PUBLISHED).unwrap_or((line, ""));
        let (go, number) = number.split_once(NUMBER).unwrap_or((number, ""));
        let number = if numbered { number } else { "" };
        format!("{go}{NUMBER}{number}{PUBLISHED}{}\n", if published { rest } else { "" })
    };
    text.lines().map(line).collect()
}

/// What is raw JSON here and has another name in the facts: cells of tables, and the objects of audit events.
const RAW: [(&str, &str); 2] = [
    (
        "array<object>",
        "array<ref:io.k8s.apimachinery.pkg.runtime.RawExtension>",
    ),
    (
        "ref:io.k8s.apimachinery.pkg.runtime.Unknown",
        "ref:io.k8s.apimachinery.pkg.runtime.RawExtension",
    ),
];
/// A type without fields has no row in the facts.
const EMPTY: &str = "io.k8s.apiserver.pkg.apis.apiserver.v1.IdentityConfiguration";

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

/// What differs between the two texts of one thing, line by line.
fn difference(name: &str, ours: &str, theirs: &str) -> String {
    let only = |a: &str, b: &str, mark: &str| {
        let lines = a.lines().filter(|l| !b.lines().any(|m| m == *l));
        lines.fold(String::new(), |out, l| out + mark + l + "\n")
    };
    let (mine, other) = (only(ours, theirs, "   ours: "), only(theirs, ours, " theirs: "));
    if mine.is_empty() && other.is_empty() {
        return format!("{name}: in another order\n   ours: {ours}\n theirs: {theirs}");
    }
    format!("{name}\n{mine}{other}")
}

#[test]
fn definitions_equal_the_facts() {
    let Some(folder) = facts() else { return };
    let (ours, theirs) = (ours::definitions(), theirs::definitions(&folder));
    let mut found = Vec::new();
    for (name, text) in &ours {
        let [numbered, published] = [&theirs.unnumbered, &theirs.unpublished].map(|lacking| !lacking.contains(name));
        let text = reduced(text, numbered, published);
        let other = theirs.all.get(name).map(|t| reduced(t, numbered, published));
        let renamed = |t: String| RAW.iter().fold(t, |t, (theirs, ours)| t.replace(theirs, ours));
        match other.map(renamed) {
            None if name == EMPTY => {}
            Some(other) if other == text => {}
            Some(other) => found.push(difference(name, &text, &other)),
            None => found.push(format!("{name}: unknown to the facts")),
        }
    }
    let published = ours::schemas();
    for name in theirs.served.iter().filter(|n| !published.contains_key(*n)) {
        found.push(format!("{name}: missing"));
    }
    assert!(ours.len() > 700, "only {} definitions were found", ours.len());
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn kinds_equal_the_facts() {
    let Some(folder) = facts() else { return };
    let (ours, theirs) = (ours::kinds(), theirs::kinds(&folder));
    let mut found = Vec::new();
    for name in ours.keys().chain(theirs.keys().filter(|n| !ours.contains_key(*n))) {
        let text = |all: &Texts| all.get(name).cloned().unwrap_or_default();
        let (mine, other) = (text(&ours), text(&theirs));
        if mine != other {
            found.push(difference(name, &mine, &other));
        }
    }
    assert!(ours.len() > 100, "only {} kinds were found", ours.len());
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn digests_are_those_that_equalled_the_facts() {
    let mut text = String::from("# Name and digest of every definition and kind: UPDATE=1 cargo test --test model\n");
    for (name, of) in ours::definitions().iter().chain(&ours::kinds()) {
        writeln!(text, "{name} {}", digest(of)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/model.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<&str> = text.lines().filter(|l| !kept.lines().any(|k| k == *l)).collect();
    assert!(changed.is_empty(), "changed, or new:\n{}", changed.join("\n"));
    assert_eq!(kept.lines().count(), text.lines().count(), "something is gone");
}
