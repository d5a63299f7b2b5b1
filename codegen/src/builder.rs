//! The entry point of build scripts.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::emit::{Descriptions, Output};
use crate::expression::{self, Compile};
use crate::lock::Findings;
use crate::model::Model;
use crate::plan::Plan;
use crate::problem::{Error, Problem};
use crate::{check, conversion, emit, lock, parse, read};

/// Generates the code of one crate's definitions.
#[derive(Clone)]
pub struct Builder {
    root: Option<PathBuf>,
    /// All below the folder unless some are named.
    files: Option<Vec<String>>,
    descriptions: Descriptions,
    compile: Option<Compile>,
    sources: Option<PathBuf>,
}

impl Builder {
    /// For the definitions below `root` (`<group>/<version>/*.proto`), a path relative to the build script's crate.
    pub fn new(root: impl Into<PathBuf>) -> Builder {
        Builder {
            root: Some(root.into()),
            files: None,
            descriptions: Descriptions::new(),
            compile: None,
            sources: None,
        }
    }

    /// For the library's own types of `meta/v1`. Only keelson-machinery needs this.
    pub fn library() -> Builder {
        Builder {
            root: None,
            files: None,
            descriptions: Descriptions::new(),
            compile: None,
            sources: None,
        }
    }

    /// Of the definitions below the folder those in these files alone, `<group>/<version>/<name>.proto`: for a crate
    /// that lies below the one of all. They import each other and the library. Stored objects are the other crate's
    /// matter: nothing is compared with their record.
    #[must_use]
    pub fn only(mut self, files: &[&str]) -> Builder {
        self.files = Some(files.iter().map(|file| (*file).to_owned()).collect());
        self
    }

    /// Texts for definitions and fields that have no comment.
    #[must_use]
    pub fn descriptions(mut self, descriptions: Descriptions) -> Builder {
        self.descriptions = descriptions;
        self
    }

    /// Checks the CEL rules of the definitions. Without this a server does so at its start.
    #[must_use]
    pub fn rules(mut self, compile: Compile) -> Builder {
        self.compile = Some(compile);
        self
    }

    /// Looks for the functions of conversions in the sources of the crate in this folder. [`Builder::run`] knows it.
    #[must_use]
    pub fn sources(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.sources = Some(folder.into());
        self
    }

    /// Generates without writing anything.
    pub fn generate(&self) -> Result<Output, Error> {
        let (files, sources) = (self.files.as_deref(), self.sources.as_deref());
        let (model, plan) = checked_with(self.root.as_deref(), files, self.compile, sources)?;
        let findings = self.compare(&model)?;
        if !findings.problems.is_empty() {
            return Err(Error::Definitions(findings.problems));
        }
        let mut output = emit::emit(&model, &plan, &self.descriptions)?;
        (output.notes, output.records) = (findings.notes, findings.records);
        Ok(output)
    }

    /// With what is recorded of stored objects. The library's own types have no kinds.
    fn compare(&self, model: &Model) -> Result<Findings, Error> {
        let Some(root) = self.root.as_ref().filter(|_| self.files.is_none()) else {
            return Ok(Findings::default());
        };
        let shown_root = parse::from_workspace(root);
        let shown_root = shown_root.trim_end_matches('/');
        Ok(lock::compare(model, &lock::read(root, shown_root)?, shown_root))
    }

    /// [`Builder::run_into`] `$OUT_DIR`; prints the notes as cargo's warnings, and tells cargo when to run the build
    /// script again. After a mistake nothing is printed: cargo runs it again anyway, and would show all of it with the
    /// mistake.
    pub fn run(&self) -> Result<(), Error> {
        let out = std::env::var_os("OUT_DIR")
            .ok_or_else(|| Error::Environment("OUT_DIR is not set: call this from a build script".to_owned()))?;
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let known = Builder {
            sources: self.sources.clone().or(folder),
            ..self.clone()
        };
        let lines = known.lines(Path::new(&out))?;
        let mut stdout = std::io::stdout().lock();
        let printed = lines.iter().try_for_each(|line| writeln!(stdout, "{line}"));
        printed.map_err(|error| Error::io(Path::new("stdout"), error))
    }

    /// Runs, for what cargo is to be told.
    fn lines(&self, out: &Path) -> Result<Vec<String>, Error> {
        let notes = self.run_into(out)?;
        let notes = notes.into_iter().map(|note| format!("cargo:warning={note}"));
        // Cargo looks at everything in a folder that it is told of, and at the script's own source without being told.
        let watched = self.root.iter();
        let watched = watched.map(|root| format!("cargo:rerun-if-changed={}", root.display()));
        Ok(watched.chain(notes).collect())
    }

    /// Writes `api.rs` and `definitions.z` into a folder, and beside the definitions what stored objects are made of
    /// (`stored.lock`). What comes back are notes on what a change means for stored objects.
    pub fn run_into(&self, out: &Path) -> Result<Vec<String>, Error> {
        let output = self.generate()?;
        let mut notes: Vec<String> = output.notes.iter().map(Problem::to_string).collect();
        if let Some(root) = &self.root {
            match lock::write(root, &output.records) {
                // Sources that can't be written have to have it already.
                Err(Error::Io { path, source }) if is_read_only(&source) => {
                    notes.push(format!(
                        "{path}: {source}: build where it can be written, and commit it"
                    ));
                }
                done => done?,
            }
        }
        write(&out.join("api.rs"), output.source.as_bytes())?;
        write(&out.join("definitions.z"), &output.definitions)?;
        Ok(notes)
    }

    /// [`Builder::run`]; mistakes go to stderr, one a line, and end the build script with status 1.
    pub fn run_or_exit(&self) {
        if let Err(error) = self.run() {
            let _ = writeln!(std::io::stderr(), "{error}");
            std::process::exit(1);
        }
    }
}

fn is_read_only(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// The definitions below a folder, or without one those of the library; their rules are not compiled.
pub(crate) fn checked(root: Option<&Path>) -> Result<(Model, Plan), Error> {
    checked_with(root, None, None, None)
}

/// Of the definitions below a folder those in `files`, if some are named.
fn checked_with(
    root: Option<&Path>,
    files: Option<&[String]>,
    compile: Option<Compile>,
    sources: Option<&Path>,
) -> Result<(Model, Plan), Error> {
    let parsed = parse::parse(root, files)?;
    let mut problems = Vec::new();
    let model = read::model(&parsed, root.is_none(), &mut problems);
    let mut plan = Plan::default();
    if problems.is_empty() {
        check::check(&model, &mut problems);
        plan = Plan::new(&model, &mut problems);
        if let Some(compile) = compile {
            expression::check(&model, compile, &mut problems);
        }
        if let Some(folder) = sources {
            conversion::check(&model, &plan, folder, &mut problems);
        }
    }
    if problems.is_empty() {
        return Ok((model, plan));
    }
    problems.sort();
    problems.dedup();
    Err(Error::Definitions(problems))
}

/// Leaves a file alone that already says the same, so that the compiler need not run.
fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    std::fs::write(path, content).map_err(|e| Error::io(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo shows what a build script printed before the mistake that ended it. A path that is not there, such as
    /// `build.rs` where the script lies elsewhere, would make it run with every build.
    #[test]
    fn cargo_is_told_of_the_definitions_alone_and_of_nothing_after_a_mistake() {
        let (root, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let builder = Builder::new(root.path());
        let watched = format!("cargo:rerun-if-changed={}", root.path().display());
        assert_eq!(builder.lines(out.path()).unwrap(), [watched]);
        std::fs::create_dir_all(root.path().join("example.com/v1")).unwrap();
        std::fs::write(root.path().join("example.com/v1/a.proto"), "message A {").unwrap();
        assert!(builder.lines(out.path()).is_err());
    }
}
