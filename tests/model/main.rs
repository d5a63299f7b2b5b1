//! The generated model is that of Kubernetes v1.36: every definition with its fields, numbers, presence, order, lists,
//! patches, defaults and enums; every group, version and kind with its names, verbs, subresources and columns.
//!
//! Both sides are written as text in one form (`ours.rs`, `theirs.rs`). Where the facts are at hand the texts must be
//! equal.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test, as it should")]

#[path = "../facts/mod.rs"]
mod facts;
mod ours;
mod theirs;

use std::collections::BTreeMap;

use facts::facts;

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
        // Columns and field labels are not complete yet.
        let complete = |l: &&str| !l.starts_with("column ") && !l.starts_with("selects ");
        let of_kind = |all: &Texts| all.get(name).cloned().unwrap_or_default();
        let text = |all: &Texts| of_kind(all).lines().filter(complete).collect::<Vec<_>>().join("\n");
        let (mine, other) = (text(&ours), text(&theirs));
        if mine != other {
            found.push(difference(name, &mine, &other));
        }
    }
    assert!(ours.len() > 100, "only {} kinds were found", ours.len());
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
