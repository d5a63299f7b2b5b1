//! The entry point of build scripts.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::emit::{Descriptions, Output};
use crate::plan::Plan;
use crate::problem::Error;
use crate::{check, emit, parse, read};

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
        let parsed = parse::parse(self.root.as_deref())?;
        let mut problems = Vec::new();
        let model = read::model(&parsed, self.root.is_none(), &mut problems);
        let mut plan = Plan::default();
        if problems.is_empty() {
            check::check(&model, &mut problems);
            plan = Plan::new(&model, &mut problems);
        }
        if !problems.is_empty() {
            problems.sort();
            problems.dedup();
            return Err(Error::Definitions(problems));
        }
        emit::emit(&model, &plan, &self.descriptions)
    }

    /// Writes `api.rs` and `definitions.z` into `$OUT_DIR` and tells cargo when to run the build script again.
    pub fn run(&self) -> Result<(), Error> {
        let out = std::env::var_os("OUT_DIR")
            .ok_or_else(|| Error::Environment("OUT_DIR is not set: call this from a build script".to_owned()))?;
        self.say(&self.watched()?)?;
        let output = self.generate()?;
        write(&Path::new(&out).join("api.rs"), output.source.as_bytes())?;
        write(&Path::new(&out).join("definitions.z"), &output.definitions)
    }

    /// [`Builder::run`]; mistakes go to stderr, one a line, and end the build script with status 1.
    pub fn run_or_exit(&self) {
        if let Err(error) = self.run() {
            let _ = writeln!(std::io::stderr(), "{error}");
            std::process::exit(1);
        }
    }

    /// The folder and everything in it: cargo looks at times only, so a folder stands for files that come and go.
    fn watched(&self) -> Result<Vec<PathBuf>, Error> {
        let mut all = vec![PathBuf::from("build.rs")];
        let mut folders: Vec<PathBuf> = self.root.iter().cloned().collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))? {
                let path = entry.map_err(|e| Error::io(&folder, e))?.path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    all.push(path)
                }
            }
            all.push(folder);
        }
        all.sort();
        Ok(all)
    }

    fn say(&self, paths: &[PathBuf]) -> Result<(), Error> {
        let mut stdout = std::io::stdout().lock();
        for path in paths {
            writeln!(stdout, "cargo:rerun-if-changed={}", path.display()).map_err(|e| Error::io(path, e))?;
        }
        Ok(())
    }
}

/// Leaves a file alone that already says the same, so that the compiler need not run.
fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    std::fs::write(path, content).map_err(|e| Error::io(path, e))
}
