//! `crd export` and `crd import`.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use keelson_extensions::crd;
use keelson_machinery::scheme::Scheme;
use keelson_machinery::yaml;
use keelson_options::{CrdCommand, OptionError};

/// What the command prints. What the other form can't say goes to standard error, a line each.
pub(crate) fn run(command: &CrdCommand, schemes: &[&'static Scheme]) -> Result<String, OptionError> {
    let (text, lost) = match command {
        CrdCommand::Export(kind) => exported(kind, schemes)?,
        CrdCommand::Import { file, into } => imported(file, into)?,
    };
    let mut told = std::io::stderr().lock();
    for line in lost {
        // Whoever closed it wants to read nothing.
        let _ = writeln!(told, "not said: {line}");
    }
    Ok(text)
}

fn exported(kind: &str, schemes: &[&'static Scheme]) -> Result<(String, Vec<String>), OptionError> {
    let failed = |why: String| OptionError::CommandLine(format!("crd export: {why}"));
    let (definition, lost) = crd::export(schemes, kind).map_err(|error| failed(error.to_string()))?;
    let text = yaml::from_json(definition.to_string().as_bytes()).map_err(|error| failed(error.to_string()))?;
    Ok((String::from_utf8_lossy(&text).into_owned(), lost))
}

fn imported(file: &Path, into: &Path) -> Result<(String, Vec<String>), OptionError> {
    let failed = |why: &dyn ToString| OptionError::file("crd import", file, why.to_string());
    let text = fs::read(file).map_err(|error| failed(&error))?;
    let json = yaml::to_json(&text).map_err(|error| failed(&error))?;
    let definition = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
    let (files, lost) = crd::import(&definition).map_err(|error| failed(&error))?;
    let mut written = String::new();
    for file in files {
        let path = into.join(&file.path);
        write_new(&path, &file.text).map_err(|why| OptionError::file("crd import", &path, why))?;
        written.push_str(&format!("{}\n", path.display()));
    }
    Ok((written, lost))
}

/// A file that can't be written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("the file is there already")]
    Exists,
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        match error.kind() {
            ErrorKind::AlreadyExists => WriteError::Exists,
            _ => WriteError::Io(error),
        }
    }
}

/// Writes a file where there is none.
fn write_new(path: &Path, text: &str) -> Result<(), WriteError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create_new(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: example.com\n  \
        names: {plural: widgets, kind: Widget}\n  versions:\n  - {name: v1, storage: true, schema: {openAPIV3Schema: {type: \
        object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}\n";

    #[test]
    fn files_are_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let (file, into) = (folder.path().join("crd.yaml"), folder.path().join("api-defs"));
        fs::write(&file, DEFINITION).unwrap();
        let command = CrdCommand::Import {
            file,
            into: into.clone(),
        };
        let written = run(&command, &[]).unwrap();
        assert_eq!(
            written.trim_end(),
            into.join("example.com/v1/widget.proto").to_string_lossy()
        );
        let text = fs::read_to_string(into.join("example.com/v1/widget.proto")).unwrap();
        assert!(text.contains("optional int64 size = 1;"), "{text}");
        let error = run(&command, &[]).unwrap_err().to_string();
        assert!(error.ends_with("the file is there already"), "{error}");
    }

    #[test]
    fn kinds_of_the_program_are_exported() {
        let run = |kind: &str| run(&CrdCommand::Export(kind.to_owned()), &[&crate::api::SCHEME]);
        let text = run("leases.coordination.k8s.io").unwrap();
        assert!(text.contains("name: leases.coordination.k8s.io"), "{text}");
        assert!(text.contains("holderIdentity:"), "{text}");
        let error = run("Pod").unwrap_err().to_string();
        assert!(error.starts_with("crd export: Pod is of group \"\""), "{error}");
    }
}
