//! From files to descriptors: protox over the definition folder, with the library's own files built in.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use protox::Compiler;
use protox::prost_reflect::DescriptorPool;

use crate::option_error;
use crate::problem::{Error, Place, Problem};
use crate::resolver::{EMBEDDED, Resolver};

/// Folder of the files that the library's own crate generates and all others take from it.
pub const LIBRARY_FOLDER: &str = "meta/v1/";

/// Everything that was read.
pub struct Parsed {
    pub pool: DescriptorPool,
    /// Names of the files to generate code for, relative to the folder.
    pub files: Vec<String>,
    /// The folder as it is shown in errors.
    root: String,
    locations: HashMap<(String, Vec<i32>), Location>,
}

#[derive(Default)]
struct Location {
    line: usize,
    comment: String,
}

impl Parsed {
    /// Where the element with this descriptor path stands.
    pub fn place(&self, file: &str, path: &[i32]) -> Place {
        let line = self.location(file, path).map_or(0, |l| l.line);
        Place {
            file: shown(&self.root, file),
            line,
        }
    }

    /// The comment on the element, without the marks and the indentation; empty if there is none.
    pub fn comment(&self, file: &str, path: &[i32]) -> &str {
        self.location(file, path).map_or("", |l| &l.comment)
    }

    fn location(&self, file: &str, path: &[i32]) -> Option<&Location> {
        self.locations.get(&(file.to_owned(), path.to_owned()))
    }
}

/// The folder as messages name it: as cargo names files, from the workspace's folder, though it runs a build script in
/// that of its package.
pub fn from_workspace(root: &Path) -> String {
    let inside: PathBuf = root.components().skip_while(|c| *c == Component::ParentDir).collect();
    inside.display().to_string()
}

/// Reads the definitions below `root` (of them those in the files `only`), or (without a root) the library's own.
pub fn parse(root: Option<&Path>, only: Option<&[String]>) -> Result<Parsed, Error> {
    let shown_root = root.map_or_else(|| "api-defs".to_owned(), from_workspace);
    let files = match root {
        None => EMBEDDED
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .filter(|n| in_library(n))
            .collect(),
        Some(root) => match only {
            None => own_files(root)?,
            Some(only) => only.to_vec(),
        },
    };
    if let Some(root) = root {
        let wrong: Vec<Problem> = files
            .iter()
            .filter_map(|file| syntax(root, file, &shown_root))
            .collect();
        if !wrong.is_empty() {
            return Err(Error::Definitions(wrong));
        }
    }
    let mut compiler = Compiler::with_file_resolver(Resolver {
        root: root.map(Path::to_owned),
    });
    compiler.include_imports(true).include_source_info(true);
    let mut problems = Vec::new();
    // All files of the library: its kinds are in every scheme, imported or not.
    let library = EMBEDDED.iter().map(|(name, _)| *name);
    for file in library.chain(files.iter().map(String::as_str)) {
        if let Err(error) = compiler.open_file(file) {
            problems.push(translate(&error, file, &shown_root, root));
        }
    }
    if !problems.is_empty() {
        problems.sort();
        problems.dedup();
        return Err(Error::Definitions(problems));
    }
    let pool = compiler.descriptor_pool();
    if only.is_some() {
        check_imports(&pool, &files, &shown_root)?;
    }
    let locations = locations(&pool);
    Ok(Parsed {
        pool,
        files,
        root: shown_root,
        locations,
    })
}

/// What is wrong with the syntax that a file says it has. Looked at first: in another one nothing else means what it
/// seems.
fn syntax(root: &Path, file: &str, shown_root: &str) -> Option<Problem> {
    let source = std::fs::read_to_string(root.join(file)).ok()?;
    let mut code = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim());
    let says = |line: &str| {
        line.strip_prefix("syntax")
            .is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let said = code.position(says);
    let line = said.map(|at| source.lines().nth(at).unwrap_or_default());
    if line.is_some_and(|line| line.contains("\"proto3\"") || line.contains("'proto3'")) {
        return None;
    }
    let place = Place {
        file: shown(shown_root, file),
        line: said.map_or(1, |at| at + 1),
    };
    let text = "definitions are proto3: write `syntax = \"proto3\";` as the first line";
    Some(Problem::new(&place, "", text))
}

/// Types of a file that no code is generated for would be missing.
fn check_imports(pool: &DescriptorPool, files: &[String], shown_root: &str) -> Result<(), Error> {
    let is_known = |name: &str| files.iter().any(|file| file == name) || EMBEDDED.iter().any(|(own, _)| *own == name);
    let mut problems = Vec::new();
    for file in pool.files().filter(|file| files.iter().any(|own| own == file.name())) {
        for import in file.dependencies().filter(|import| !is_known(import.name())) {
            let place = Place {
                file: shown(shown_root, file.name()),
                line: 0,
            };
            let text = format!(
                "imports {:?}, which is not among the builder's files: name it there",
                import.name()
            );
            problems.push(Problem::new(&place, "", text));
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Error::Definitions(problems)),
    }
}

/// Whether this file's types live in the library crate.
pub fn in_library(file: &str) -> bool {
    file.starts_with(LIBRARY_FOLDER)
}

fn shown(root: &str, file: &str) -> String {
    format!("{}/{file}", root.trim_end_matches('/'))
}

/// All `.proto` files below `root` but the library's, sorted by name.
fn own_files(root: &Path) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    let foreign = |f: &String| {
        let reserved = in_library(f) || f.starts_with("keelson/");
        reserved && !EMBEDDED.iter().any(|(name, _)| name == f)
    };
    if let Some(file) = files.iter().find(|f| foreign(f)) {
        let place = Place {
            file: shown(&root.display().to_string(), file),
            line: 0,
        };
        let text = "this folder belongs to the library: move the file to `<group>/<version>` of your own";
        return Err(Error::Definitions(vec![Problem::new(&place, "", text)]));
    }
    files.retain(|f| !in_library(f) && !f.starts_with("keelson/"));
    files.sort();
    Ok(files)
}

/// How deep definition folders may be nested.
const MAX_DEPTH: usize = 8;

fn walk(folder: &Path, prefix: &str, files: &mut Vec<String>) -> Result<(), Error> {
    if prefix.matches('/').count() > MAX_DEPTH {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            walk(&path, &format!("{name}/"), files)?;
        } else if name.ends_with(".proto") {
            files.push(name);
        }
    }
    Ok(())
}

fn locations(pool: &DescriptorPool) -> HashMap<(String, Vec<i32>), Location> {
    let mut all: HashMap<(String, Vec<i32>), Location> = HashMap::new();
    for file in pool.files() {
        let Some(info) = &file.file_descriptor_proto().source_code_info else {
            continue;
        };
        for location in &info.location {
            let line = location
                .span
                .first()
                .and_then(|l| usize::try_from(*l).ok())
                .map_or(0, |l| l + 1);
            let text = [location.leading_comments(), location.trailing_comments()];
            let comment = text
                .into_iter()
                .find(|t| !t.trim().is_empty())
                .map(paragraph)
                .unwrap_or_default();
            all.entry((file.name().to_owned(), location.path.clone()))
                .or_insert(Location { line, comment });
        }
    }
    all
}

/// A comment's lines without the blank that follows the mark.
fn paragraph(comment: &str) -> String {
    let lines: Vec<&str> = comment
        .lines()
        .map(|l| l.strip_prefix(' ').unwrap_or(l).trim_end())
        .collect();
    lines.join("\n").trim().to_owned()
}

/// An error of the compiler in our form.
fn translate(error: &protox::Error, opened: &str, shown_root: &str, root: Option<&Path>) -> Problem {
    let (file, mut line, mut text) = position(&format!("{error:?}"), error, opened);
    let mut found = String::new();
    if let Some(source) = root.and_then(|r| std::fs::read_to_string(r.join(&file)).ok()) {
        found = subject(&source, line);
        if let Some((exact, explained)) = option_error::explain(&source, line, &text) {
            (line, text) = (exact, explained);
        }
    }
    let hint = hint(&text);
    let place = Place {
        file: shown(shown_root, &file),
        line,
    };
    Problem::new(&place, found, format!("{text}{hint}"))
}

/// Splits `file:line:column: text`, the form in which the compiler shows errors to developers.
fn position(debug: &str, error: &protox::Error, opened: &str) -> (String, usize, String) {
    let file = error.file().unwrap_or(opened).to_owned();
    let rest = debug.strip_prefix(&format!("{file}:")).unwrap_or(debug);
    let mut parts = rest.splitn(3, ':');
    let line = parts.next().and_then(|l| l.trim().parse().ok());
    let text = parts.nth(1).map(|t| t.trim().to_owned());
    match (line, text) {
        (Some(line), Some(text)) => (file, line, text),
        _ => (file, 0, error.to_string()),
    }
}

/// The message and field around a line, found in the text: the compiler does not say it.
fn subject(source: &str, line: usize) -> String {
    let mut message = Vec::new();
    let mut field = String::new();
    for (i, text) in source.lines().enumerate().take(line) {
        let code = text.split("//").next().unwrap_or_default().trim();
        if let Some(name) = code.strip_prefix("message ") {
            message.push(name.trim_end_matches(['{', ' ']).to_owned());
        } else if code == "}" && i + 1 < line {
            message.pop();
        }
        if i + 1 == line {
            field = declared_field(code).unwrap_or_default();
        }
    }
    match (message.last(), field.is_empty()) {
        (Some(message), true) => message.clone(),
        (Some(message), false) => format!("{message}.{field}"),
        (None, _) => String::new(),
    }
}

/// `name` of `type name = 3`.
fn declared_field(code: &str) -> Option<String> {
    let (declaration, number) = code.split_once('=')?;
    let name = declaration.trim().rsplit([' ', '\t', '>']).next()?;
    let digits = number
        .trim_start()
        .starts_with(|c: char| c.is_ascii_digit() || c == '-');
    (digits && declaration.trim().contains(' ')).then(|| name.to_owned())
}

/// What to write instead, for the errors that people make most.
fn hint(text: &str) -> &'static str {
    const HINTS: &[(&str, &str)] = &[
        (
            "is already used",
            ": give each field a number of its own, never one that stored objects use otherwise",
        ),
        (
            "is not defined",
            ": check the spelling and the imports at the top of the file",
        ),
        ("is defined twice", ": rename one of the two"),
        ("conflicts with field", ": rename one of the two"),
        ("a field with JSON name", ": give one of the two another `json_name`"),
        ("import '", ": paths are relative to the definition folder"),
    ];
    HINTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map_or("", |(_, hint)| hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_library_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api-defs/meta/v1");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        found.sort();
        let embedded: Vec<&str> = EMBEDDED
            .iter()
            .filter_map(|(n, _)| n.strip_prefix(LIBRARY_FOLDER))
            .collect();
        assert_eq!(found, embedded);
    }

    #[test]
    fn subjects_are_found_in_the_text() {
        let source =
            "syntax = \"proto3\";\nmessage A {\n  message B {\n    string b = 1;\n  }\n  map<string, B> c = 2;\n}\n";
        for (line, expected) in [(1, ""), (2, "A"), (4, "B.b"), (5, "B"), (6, "A.c"), (7, "A")] {
            assert_eq!(subject(source, line), expected, "line {line}");
        }
    }
}
