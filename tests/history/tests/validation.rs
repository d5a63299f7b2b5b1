//! The size of the hand-written rules of the built-in kinds: all of them together, and each function.
//!
//! What a definition can say stands in `api-defs` and is not counted. Here are counted the lines of code below
//! `src/kube` that find faults: without blank lines, comments, `use`, declarations of modules and tests; lone brackets
//! count.
//! `cargo test -p keelson-history --test validation -- --nocapture` shows the count of each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod reading;

use reading::{root, sources};

/// The most lines that there may be; 8 000 are aimed at. It is lowered with the code and never raised for convenience.
const MOST_LINES: usize = 11_338;
/// The most lines of a function of any code below `src/kube`.
const MOST_OF_FUNCTION: usize = 60;
/// Less than this would mean that nothing was counted.
const LEAST_LINES: usize = 2_000;

/// What is no validation of kinds: plug-ins, what the server makes at its start, cells, subresources that act,
/// allocators, controllers, what is asked of authorizers and read for them, defaults, warnings and what is put
/// together.
const OTHERS: [&str; 32] = [
    "admission/",
    "admissionregistration/parameters.rs",
    "admissionregistration/type_checking.rs",
    "authorization/access_review.rs",
    "authorization/attributes.rs",
    "authorization/rules_review.rs",
    "bootstrap/",
    "builtin.rs",
    "cells/",
    "core/namespace_finalizer.rs",
    "core/node_graph.rs",
    "core/pod_resources.rs",
    "core/pod_spec/defaults.rs",
    "core/pod_spec/disabled.rs",
    "core/pod_spec/qos.rs",
    "core/pod_spec/warnings",
    "core/service/addresses",
    "core/service/allocation",
    "core/service/change.rs",
    "core/service/defaults.rs",
    "core/service/families.rs",
    "core/service/ports",
    "core/service/repair",
    "core/service/warnings.rs",
    "core/subresources/",
    "flowcontrol/dangling.rs",
    "flowcontrol/go.rs",
    "flowcontrol/reader.rs",
    "lib.rs",
    "resource/claim.rs",
    "resource/claim_access.rs",
    "versions.rs",
];

/// Functions of strategies that find no faults, and what kinds register. What they alone call in their file is not
/// counted either.
const OTHER_FUNCTIONS: [&str; 22] = [
    "as_written",
    "authorize",
    "cluster_defaults",
    "confirm",
    "decorate",
    "default",
    "defaults",
    "defaults_metadata",
    "frees",
    "keep_all_metadata",
    "keep_metadata",
    "keeps_new_status",
    "prepare_for_create",
    "prepare_for_deletion",
    "prepare_for_status_update",
    "prepare_for_subresource",
    "prepare_for_update",
    "register",
    "reserve",
    "reset_fields",
    "versioned_annotations",
    "warnings",
];

/// Lines of code of one file, and its functions with their lines.
struct File<'t> {
    lines: Vec<&'t str>,
    functions: Vec<Function<'t>>,
}

/// A function: its name, its first line and how many it has.
struct Function<'t> {
    name: &'t str,
    first: usize,
    count: usize,
}

impl<'t> File<'t> {
    fn read(text: &'t str) -> File<'t> {
        let lines = code(text);
        let named = lines
            .iter()
            .enumerate()
            .filter_map(|(first, line)| Some((first, name(line)?)));
        let functions = named.map(|(first, name)| Function {
            name,
            first,
            count: length(&lines[first..]),
        });
        File {
            functions: functions.collect(),
            lines,
        }
    }

    /// How many lines find faults.
    fn counted(&self) -> usize {
        let mut counts = vec![true; self.lines.len()];
        let names = OTHER_FUNCTIONS.iter();
        let mut others: Vec<&Function<'_>> = Vec::new();
        others.extend(names.flat_map(|name| self.functions.iter().filter(move |one| one.name == *name)));
        while let Some(one) = others.pop() {
            counts[one.lines()].fill(false);
            let calls = self.functions.iter().filter(|other| {
                let is_new = counts[other.first] && !self.lines[other.first].trim().starts_with("pub");
                is_new && self.lines[one.lines()].iter().any(|line| has_word(line, other.name))
            });
            others.extend(calls.filter(|other| !self.is_called(other, &counts)));
        }
        counts.into_iter().filter(|counts| *counts).count()
    }

    /// Whether lines that count, but for those of the function itself, have its name.
    fn is_called(&self, function: &Function<'_>, counts: &[bool]) -> bool {
        let lines = self.lines.iter().enumerate();
        let mut others = lines.filter(|(place, _)| counts[*place] && !function.lines().contains(place));
        others.any(|(_, line)| has_word(line, function.name))
    }
}

impl Function<'_> {
    fn lines(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

/// Whether a line has a word as such.
fn has_word(line: &str, word: &str) -> bool {
    let mut words = line.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.any(|found| found == word)
}

/// Lines that are code, as rustfmt writes it.
fn code(text: &str) -> Vec<&str> {
    let is_import = |line: &str| {
        let line = line
            .split_once(") ")
            .map_or(line, |(start, rest)| match start.starts_with("pub(") {
                true => rest,
                false => line,
            });
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.starts_with("use ") || (line.starts_with("mod ") && line.ends_with(';'))
    };
    let mut within_import = false;
    let lines = text.lines().filter(|line| {
        let line = line.trim();
        let is_outside = !within_import && !is_import(line);
        within_import = !is_outside && !line.ends_with(';');
        is_outside && !line.is_empty() && !line.starts_with("//")
    });
    lines.collect()
}

/// The name of the function that begins on a line.
fn name(line: &str) -> Option<&str> {
    let (before, rest) = line.trim().split_once("fn ")?;
    let modifiers = before.split_whitespace();
    let are_modifiers = modifiers
        .into_iter()
        .all(|word| word.starts_with("pub") || word == "in" || ["const", "async", "crate)", "super)"].contains(&word));
    let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric())?;
    are_modifiers.then(|| &rest[..end]).filter(|name| !name.is_empty())
}

/// How many lines a function has that begins with the first of these: up to a bracket that stands below its `fn`.
fn length(lines: &[&str]) -> usize {
    let first = lines[0];
    if first.ends_with('}') || first.ends_with(';') {
        return 1;
    }
    let indent = first.len() - first.trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let rest = lines[1..].iter();
    let declared = |line: &str| line.starts_with(&format!("{}) ", " ".repeat(indent))) && line.ends_with(';');
    let before = rest
        .take_while(|line| !line.starts_with(&end) && !declared(line))
        .count();
    before + 2
}

fn kinds() -> Vec<(String, String)> {
    let folder = root().join("src/kube");
    let within = |(path, text): (String, String)| Some((path.strip_prefix("src/kube/")?.to_owned(), text));
    let found = sources(&folder).into_iter().filter_map(within);
    found.filter(|(path, _)| !path.ends_with("testing.rs")).collect()
}

#[test]
fn validation_stays_small() {
    let is_other = |path: &str| OTHERS.iter().any(|other| path.starts_with(other));
    let mut total = 0;
    for (path, text) in kinds().iter().filter(|(path, _)| !is_other(path)) {
        let count = File::read(text).counted();
        println!("{count:5} {path}");
        total += count;
    }
    println!("{total:5} of {MOST_LINES}");
    assert!(total > LEAST_LINES, "{total} lines are not all");
    assert!(
        total <= MOST_LINES,
        "{total} lines of validation; there were {MOST_LINES}"
    );
}

#[test]
fn functions_of_kinds_fit_on_a_page() {
    let mut long = Vec::new();
    for (path, text) in kinds() {
        let file = File::read(&text);
        let functions = file.functions.iter().filter(|one| one.count > MOST_OF_FUNCTION);
        long.extend(functions.map(|one| format!("{path}: `{}` has {} lines", one.name, one.count)));
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn what_is_excepted_is_there() {
    let kinds = kinds();
    for other in OTHERS {
        assert!(kinds.iter().any(|(path, _)| path.starts_with(other)), "{other}");
    }
    for other in OTHER_FUNCTIONS {
        let text = format!("fn {other}");
        assert!(kinds.iter().any(|(_, code)| code.contains(&text)), "{other}");
    }
}

#[test]
fn lines_are_told_apart() {
    let text = "//! Doc.\n\nuse a::{\n    b,\n};\npub(crate) use c::d;\nmod e;\n/// Doc.\n\
                pub fn f(\n    g: u8,\n) -> u8 {\n\
                    // why\n    let h = k();\n    h\n}\nconst I: u8 = 1;\n\
                fn register() {\n    j(k());\n}\nfn j() {}\nfn k() {}\n";
    let file = File::read(text);
    let found: Vec<_> = file.functions.iter().map(|one| (one.name, one.count)).collect();
    assert_eq!(found, [("f", 6), ("register", 3), ("j", 1), ("k", 1)]);
    assert_eq!(
        (file.lines.len(), file.counted()),
        (12, 8),
        "all but `register` and `j`"
    );
}
