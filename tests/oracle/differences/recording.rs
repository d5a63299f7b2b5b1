//! Recordings of a comparison: a sample of the answers of kube-apiserver, and the names of requests that are answered
//! differently, with reasons.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use serde_json::{Value, json};

use super::super::samples;
use super::super::server::Exchange;
use super::answers::Answer;

/// Name of a request, a tab, and the row of its answer; compressed.
const SAMPLE: &str = "oracle/differences/answers.gz";
const DIFFERENCES: &str = "differences.txt";

/// Names of requests → rows of answers.
pub type Sample = BTreeMap<String, String>;

pub fn read_sample() -> Sample {
    let Ok(file) = std::fs::File::open(samples::data(SAMPLE)) else {
        return Sample::new();
    };
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let rows = text.lines().map(|line| line.split_once('\t').unwrap());
    rows.map(|(name, row)| (name.to_owned(), row.to_owned())).collect()
}

pub fn write_sample(sample: &Sample) {
    let mut file = GzEncoder::new(Vec::new(), Compression::best());
    for (name, row) in sample {
        writeln!(file, "{name}\t{row}").unwrap();
    }
    std::fs::write(samples::data(SAMPLE), file.finish().unwrap()).unwrap();
}

/// A file for all answers of a recording, none of the project: with it, and without a server to record, all of them are
/// compared with.
const ANSWERS: &str = "ANSWERS";

/// Names of requests → the answers to them: status, body, warnings.
pub struct Kept {
    file: String,
    answers: BTreeMap<String, Vec<(u16, Value, Vec<String>)>>,
}

impl Kept {
    /// The file that is named; an empty one for a recording.
    pub fn read(is_recorded: bool) -> Option<Kept> {
        let file = std::env::var(ANSWERS).ok()?;
        let text = match is_recorded {
            true => String::new(),
            false => std::fs::read_to_string(&file).unwrap(),
        };
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let answers = rows.collect();
        Some(Kept { file, answers })
    }

    pub fn has(&self, name: &str) -> bool {
        self.answers.contains_key(name)
    }

    pub fn of(&self, name: &str) -> Vec<Answer> {
        let answers = self.answers.get(name).into_iter().flatten().cloned();
        let exchange = |(status, body, warnings)| Exchange { status, body, warnings };
        answers.map(|answer| Answer::of(&exchange(answer))).collect()
    }

    pub fn keep(&mut self, name: &str, said: Vec<Exchange>) {
        let said = said.into_iter().map(|said| (said.status, said.body, said.warnings));
        self.answers.insert(name.to_owned(), said.collect());
    }

    pub fn write(&self) {
        let lines = self.answers.iter().map(|row| json!(row).to_string() + "\n");
        std::fs::write(&self.file, lines.collect::<String>()).unwrap();
    }
}

/// The list of requests that are answered differently, and why: patterns, in which `*` stands for any text, below a
/// comment each.
pub struct Known {
    patterns: Vec<String>,
}

impl Known {
    pub fn read() -> Known {
        let text = std::fs::read_to_string(samples::data(DIFFERENCES)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        Known {
            patterns: lines.map(str::to_owned).collect(),
        }
    }

    pub fn names(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| is_like(pattern, name))
    }

    /// Patterns that some requests were like, of which none was answered differently.
    pub fn stale(&self, asked: &[String], different: &[String]) -> Vec<String> {
        let any = |pattern: &String, names: &[String]| names.iter().any(|name| is_like(pattern, name));
        let stale = self
            .patterns
            .iter()
            .filter(|pattern| any(pattern, asked) && !any(pattern, different));
        stale.cloned().collect()
    }
}

/// Whether a text is like a pattern, in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn patterns_stand_for_texts() {
    for (pattern, text, expected) in [
        ("pod create a", "pod create a", true),
        ("pod create a", "pod create ab", false),
        ("pod * a", "pod create x a", true),
        ("* a*", "pod create ab", true),
        ("*cel*b", "a cel ab", true),
        ("*cel*b", "a cel a", false),
        ("aba*aba", "aba", false),
    ] {
        assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
    }
}
