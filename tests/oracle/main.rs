//! The oracle: what kube-apiserver says of questions that are derived from the definitions, and what this server says
//! of the same: which writes need a right beside the one to their verb (`decisions.rs`), which for what they name
//! (`references.rs`), what becomes of a field that is changed (`keepers.rs`), and what is answered to mutated requests
//! (`differences`).
//!
//! The answers of kube-apiserver are in `tests/data/oracle`. The same program records them:
//! `RECORD=https://HOST:PORT TOKEN=… cargo test --test oracle` asks that server, with the token of a member of
//! system:masters there, and writes down what it says of the resources that it serves. First one with
//! `--runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true`, then one with the settings that are
//! usual.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod admission;
mod changes;
mod decisions;
mod differences;
mod keepers;
mod references;
mod samples;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;

use server::Server;

/// Runs what needs a server's tasks beside it.
fn run(what: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, what);
}

/// Compares what a server says, by name, with what kube-apiserver said, or writes it down. What is pending has a line
/// of its own, as this server says it now, and behind a `#` why.
fn compare(
    server: &Server,
    found: &BTreeMap<String, String>,
    (table, pending, head): (&str, &str, &str),
    least: usize,
) {
    let path = samples::data(table);
    let mut kept = lines(&path);
    if server.is_recorded() {
        kept.extend(found.clone());
        let text = kept
            .iter()
            .fold(head.to_owned(), |text, (name, line)| text + name + ": " + line + "\n");
        std::fs::write(&path, text).unwrap();
        return;
    }
    let pending = lines(&samples::data(pending));
    let mut wrong = String::new();
    for name in kept.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let known = pending
            .get(name)
            .map(|line| line.split(" #").next().unwrap_or_default().trim());
        match (kept.get(name), found.get(name)) {
            (Some(theirs), Some(ours)) if theirs == ours && known.is_some() => {
                wrong += &format!("{name}: is as recorded, and still pending\n");
            }
            (Some(theirs), Some(ours)) if theirs == ours || known == Some(ours.as_str()) => {}
            (Some(theirs), Some(ours)) => wrong += &format!("{name}\n   ours: {ours}\n theirs: {theirs}\n"),
            (Some(_), None) => wrong += &format!("{name}: recorded, and there is no such thing any longer\n"),
            (None, _) => wrong += &format!("{name}: has not been recorded\n"),
        }
    }
    assert!(found.len() >= least, "{}", found.len());
    assert!(wrong.is_empty(), "{wrong}");
}

/// `name: line`, but for comments.
fn lines(path: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let (name, line) = line.split_once(':').unwrap();
        (name.to_owned(), line.trim().to_owned())
    })
    .collect()
}
