//! The layers of the sources: a crate names only crates below it, and the top modules of a crate form no circle.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reading::{root, sources};

/// The crates below `src`, the lowest first; the program itself comes last and has no folder.
const CRATES: [&str; 13] = [
    "machinery",
    "configuration",
    "storage",
    "base",
    "net",
    "access",
    "registry",
    "server",
    "api",
    "admission",
    "extensions",
    "kube",
    "options",
];

/// What crates must not depend on, directly: machinery is without input and output, whoever lies below the server knows
/// nothing of answers over HTTP, and no generic crate knows the built-in kinds.
const FOREIGN: [(&str, &[&str]); 5] = [
    ("machinery", &["tokio", "actix-web", "hyper", "rusqlite"]),
    ("storage", &["keelson-machinery", "actix-web"]),
    ("net", &["keelson-storage"]),
    ("access", &["keelson-storage"]),
    ("registry", &["actix-web", "hyper", "keelson-net"]),
];

/// Lines of a manifest's section, as names of packages.
fn section(manifest: &str, name: &str) -> BTreeSet<String> {
    let lines = manifest.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    let entries = lines.take_while(|line| !line.starts_with('['));
    let names = entries.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn crates_depend_on_lower_ones_alone() {
    let folders: BTreeSet<String> = std::fs::read_dir(root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        folders,
        CRATES.map(str::to_owned).into_iter().collect(),
        "a crate without a layer"
    );
    for (height, name) in CRATES.iter().enumerate() {
        let manifest = std::fs::read_to_string(root().join("src").join(name).join("Cargo.toml")).unwrap();
        let needed = section(&manifest, "dependencies");
        for dependency in needed
            .iter()
            .filter_map(|dependency| dependency.strip_prefix("keelson-"))
        {
            // Those of code generation lie below all.
            let lower = CRATES[..height].contains(&dependency) || ["derive", "codegen"].contains(&dependency);
            assert!(lower, "{name} depends on {dependency}, which lies above it");
        }
        for (_, foreign) in FOREIGN.iter().filter(|(of, _)| of == name) {
            let found: Vec<_> = foreign.iter().filter(|foreign| needed.contains(**foreign)).collect();
            assert!(found.is_empty(), "{name} depends on {found:?}");
        }
    }
}

/// The top module that a name of the crate's root stands for: itself, or that which `lib.rs` shows it from.
struct Names<'a> {
    modules: BTreeSet<&'a str>,
    shown: BTreeMap<String, &'a str>,
}

impl<'a> Names<'a> {
    fn of(modules: BTreeSet<&'a str>, root: &'a str) -> Names<'a> {
        let mut shown = BTreeMap::new();
        for statement in statements(root, "use ") {
            let Some((module, names)) = statement
                .split_once("::")
                .filter(|(module, _)| modules.contains(module))
            else {
                continue;
            };
            for name in names.split(|c: char| !is_of_name(c)).filter(|name| !name.is_empty()) {
                shown.insert(name.to_owned(), module);
            }
        }
        Names { modules, shown }
    }

    fn module(&self, name: &str) -> Option<&'a str> {
        let module = self.modules.get(name).copied();
        module.or_else(|| self.shown.get(name).copied())
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What follows a text, up to the next semicolon.
fn statements<'a>(code: &'a str, begin: &str) -> impl Iterator<Item = &'a str> {
    let rests = code
        .match_indices(begin)
        .map(move |(at, found)| &code[at + found.len()..]);
    rests.map(|rest| rest.split(';').next().unwrap_or_default())
}

/// The names of the crate's root that code uses: `crate::name`, `crate::{name, name::of::more}`.
fn named(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in statements(code, "crate::") {
        let Some(group) = statement.strip_prefix('{') else {
            found.push(
                statement
                    .split(|c| !is_of_name(c))
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
            continue;
        };
        let (mut depth, mut name) = (1, String::new());
        for c in group.chars().chain([',']) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth <= 1 => {
                    let name = std::mem::take(&mut name);
                    found.push(
                        name.trim()
                            .split(|c| !is_of_name(c))
                            .next()
                            .unwrap_or_default()
                            .to_owned(),
                    );
                }
                _ if depth == 1 => name.push(c),
                _ => {}
            }
        }
    }
    found
}

/// Which top modules of a crate name which others, outside of comments and tests.
fn edges(folder: &Path, files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let prefix = format!("{}/", folder.display());
    let files = files
        .iter()
        .filter_map(|(name, code)| Some((name.strip_prefix(&prefix)?, code)));
    let of = |name: &str| {
        name.split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs")
            .to_owned()
    };
    let files: Vec<(String, String)> = files.map(|(name, code)| (of(name), without_comments(code))).collect();
    let root = files
        .iter()
        .find(|(module, _)| module == "lib")
        .map_or("", |(_, code)| code);
    let names = Names::of(files.iter().map(|(module, _)| module.as_str()).collect(), root);
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, code) in files.iter().filter(|(module, _)| module != "lib") {
        let used = named(code);
        let others = used
            .iter()
            .filter_map(|name| names.module(name))
            .filter(|other| other != module);
        edges
            .entry(module.clone())
            .or_default()
            .extend(others.map(str::to_owned));
    }
    edges
}

fn without_comments(code: &str) -> String {
    let lines: Vec<&str> = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    lines.join("\n")
}

/// The modules that can't be put in an order: each of them leads to itself, or to such a one.
fn circle(mut edges: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let named: BTreeSet<String> = edges.values().flatten().cloned().collect();
        let before = edges.len();
        edges.retain(|module, others| !others.is_empty() && named.contains(module));
        let left: BTreeSet<String> = edges.keys().cloned().collect();
        edges
            .values_mut()
            .for_each(|others| others.retain(|other| left.contains(other)));
        if edges.len() == before {
            edges.retain(|_, others| !others.is_empty());
            return edges;
        }
    }
}

#[test]
fn top_modules_form_no_circle() {
    let mut files = sources(&root().join("src"));
    files.extend(sources(&root().join("codegen")));
    let crates = CRATES.iter().map(|name| format!("src/{name}"));
    for folder in crates.chain(["codegen/src".to_owned(), "codegen/derive/src".to_owned()]) {
        let edges = edges(Path::new(&folder), &files);
        assert!(edges.len() > 1 || folder == "src/api", "{folder}: nothing was read");
        let circle = circle(edges);
        assert!(circle.is_empty(), "{folder}: {circle:?}");
    }
}

#[test]
fn circles_are_found() {
    let edges = |of: &[(&str, &[&str])]| {
        let edges = of
            .iter()
            .map(|(from, to)| (from.to_string(), to.iter().map(ToString::to_string).collect()));
        edges.collect::<BTreeMap<_, _>>()
    };
    assert!(circle(edges(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
    let found = circle(edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &["a"])]));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn names_are_found() {
    let code = "use crate::{A, b::{C, D}, e};\nfn f() { crate::g::h(crate::I) }";
    assert_eq!(named(code), ["A", "b", "e", "g", "I"]);
    let names = Names::of(["x", "y"].into(), "pub use x::{A, deep::B};\nuse y::C;");
    assert_eq!(
        ["A", "B", "C", "y", "z"].map(|name| names.module(name)),
        [Some("x"), Some("x"), Some("y"), Some("y"), None]
    );
}
