//! Files of cases: found below folders, read and checked.

use std::path::{Path, PathBuf};

use crate::deep::parse;

use super::{Answers, Case, unfold};

/// A case and where it was found.
#[derive(Debug)]
pub struct Recorded {
    pub case: Case,
    pub file: PathBuf,
    /// The folder that holds the files it names.
    pub folder: PathBuf,
}

impl Recorded {
    /// Reads a case. An error names the file and what is wrong with it.
    pub fn read(file: &Path) -> Result<Recorded, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read(file).map_err(|error| wrong(&error))?;
        let value = parse(&text).map_err(|error| wrong(&error))?;
        let mut case: Case = serde_json::from_value(value).map_err(|error| wrong(&error))?;
        unfold(&mut case.steps).map_err(|error| wrong(&error))?;
        check(&case).map_err(|error| wrong(&error))?;
        let file = std::path::absolute(file).map_err(|error| wrong(&error))?;
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Recorded { case, file, folder })
    }

    /// Its name in reports and lists: `area/file.json`.
    pub fn label(&self) -> String {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{}/{}", name(&self.folder), name(&self.file))
    }
}

/// What the types don't say.
fn check(case: &Case) -> Result<(), String> {
    for (number, step) in case.steps.iter().enumerate() {
        step.action().map_err(|error| format!("step {}: {error}", number + 1))?;
    }
    for (path, answers) in &case.stub {
        serde_json::from_value::<Answers>(answers.clone()).map_err(|error| format!("stub {path}: {error}"))?;
    }
    Ok(())
}

/// The files named, and those below the folders named, in the order of their names.
pub fn case_files(paths: &[PathBuf]) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut inside: Vec<PathBuf> = std::fs::read_dir(path)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()?;
            inside.retain(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "json"));
            inside.sort();
            files.extend(case_files(&inside)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}
