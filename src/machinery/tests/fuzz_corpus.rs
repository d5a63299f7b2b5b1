//! Replays the corpus of the fuzzer, and what a few thousand small changes make of it, without the fuzzer.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

#[path = "../../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::Path;

/// Changed copies of each file that are tried.
const CHANGES: u64 = 100;

/// Xorshift: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

/// Bytes that mean something to one decoder or the other.
const TELLING: &[u8] = b"\x00\x7f\x80\xff\"\\{}[]:,-+.eE019 \t\n!&*|>~$/kKmi=()";

fn change(text: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(text.len() + 1);
    match numbers.below(5) {
        0 if at < text.len() => text[at] ^= 1 << numbers.below(8),
        1 if at < text.len() => text[at] = TELLING[numbers.below(TELLING.len())],
        2 => text.insert(at, TELLING[numbers.below(TELLING.len())]),
        3 => drop(text.drain(at..text.len().min(at + 1 + numbers.below(4)))),
        _ => {
            let end = text.len().min(at + numbers.below(24));
            let copy = text[at..end].to_vec();
            let to = numbers.below(text.len() + 1);
            text.splice(to..to, copy);
        }
    }
}

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "the corpus of {target} has {} files", files.len());
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for file in files {
        let seed = fs::read(file).unwrap();
        run(&seed);
        for _ in 0..CHANGES {
            let mut text = seed.clone();
            for _ in 0..1 + numbers.below(4) {
                change(&mut text, &mut numbers);
            }
            run(&text);
        }
    }
}

#[test]
fn json() {
    replay("json", targets::json);
}

#[test]
fn yaml() {
    replay("yaml", targets::yaml);
}

#[test]
fn protobuf() {
    replay("protobuf", targets::protobuf);
}

#[test]
fn patch() {
    replay("patch", targets::patch);
}

#[test]
fn quantity() {
    replay("quantity", targets::quantity);
}

#[test]
fn selector() {
    replay("selector", targets::selector);
}

#[test]
fn time() {
    replay("time", targets::time);
}

#[test]
fn fields() {
    replay("fields", targets::fields);
}

#[test]
fn apply() {
    replay("apply", targets::apply);
}

#[test]
fn expression() {
    replay("expression", targets::expression);
}

#[test]
fn schema() {
    replay("schema", targets::schema);
}

#[test]
fn custom() {
    replay("custom", targets::custom);
}
