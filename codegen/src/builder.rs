//! The entry point of build scripts.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::emit::{Descriptions, Output};
use crate::lock::Findings;
use crate::model::Model;
use crate::plan::Plan;
use crate::problem::{Error, Problem};
use crate::{check, emit, lock, parse, read};

/// Generates the code of one crate's definitions.
pub struct Builder {
    root: Option<PathBuf>,
    descriptions: Descriptions,
}

impl Builder {
    /// For the definitions below `root` (`<group>/<version>/*.proto`), a path relative to the build script's crate.
    pub fn new(root: impl Into<PathBuf>) -> Builder {
        Builder {
            root: Some(root.into()),
            descriptions: Descriptions::new(),
        }
    }

    /// For the library's own types of `meta/v1`. Only keelson-machinery needs this.
    pub fn library() -> Builder {
        Builder {
            root: None,
            descriptions: Descriptions::new(),
        }
    }

    /// Texts for definitions and fields that have no comment.
    #[must_use]
    pub fn descriptions(mut self, descriptions: Descriptions) -> Builder {
        self.descriptions = descriptions;
        self
    }

    /// Generates without writing anything.
    pub fn generate(&self) -> Result<Output, Error> {
        let (model, plan) = checked(self.root.as_deref())?;
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
        let Some(root) = &self.root else {
            return Ok(Findings::default());
        };
        let shown_root = parse::from_workspace(root);
        let shown_root = shown_root.trim_end_matches('/');
        Ok(lock::compare(model, &lock::read(root, shown_root)?, shown_root))
    }

    /// [`Builder::run_into`] `$OUT_DIR`; prints the notes as cargo's warnings, and tells cargo when to run the build script again.
    pub fn run(&self) -> Result<(), Error> {
        let out = std::env::var_os("OUT_DIR")
            .ok_or_else(|| Error::Environment("OUT_DIR is not set: call this from a build script".to_owned()))?;
        self.say(&self.watched())?;
        for note in self.run_into(Path::new(&out))? {
            self.say_line(&format!("cargo:warning={note}"))?;
        }
        Ok(())
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

    /// Cargo looks at everything in a folder that it is told of.
    fn watched(&self) -> Vec<PathBuf> {
        let own = self.root.iter().cloned();
        own.chain([PathBuf::from("build.rs")]).collect()
    }

    fn say(&self, paths: &[PathBuf]) -> Result<(), Error> {
        let mut lines = paths
            .iter()
            .map(|path| format!("cargo:rerun-if-changed={}", path.display()));
        lines.try_for_each(|line| self.say_line(&line))
    }

    fn say_line(&self, line: &str) -> Result<(), Error> {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{line}").map_err(|e| Error::io(Path::new("stdout"), e))
    }
}

fn is_read_only(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// The definitions below a folder, or without one those of the library.
pub(crate) fn checked(root: Option<&Path>) -> Result<(Model, Plan), Error> {
    let parsed = parse::parse(root)?;
    let mut problems = Vec::new();
    let model = read::model(&parsed, root.is_none(), &mut problems);
    let mut plan = Plan::default();
    if problems.is_empty() {
        check::check(&model, &mut problems);
        plan = Plan::new(&model, &mut problems);
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
