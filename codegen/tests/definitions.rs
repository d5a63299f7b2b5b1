//! Every mistake in a definition stops the build with a line that says where it is, what is wrong and what to write.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use keelson_codegen::{Builder, Error};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Splits a case into its files: `// === <path>` begins one; without it all is `example.com/v1/widget.proto`.
fn files(case: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in case.lines() {
        if let Some(path) = line.strip_prefix("// === ") {
            files.push((path.to_owned(), String::new()));
            continue;
        }
        match files.last_mut() {
            Some((_, text)) => text.extend([line, "\n"]),
            None => files.push(("example.com/v1/widget.proto".to_owned(), format!("{line}\n"))),
        }
    }
    files
}

/// The errors of a case, with paths as below the definition folder.
fn errors(case: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    for (path, text) in files(case) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        fs::write(path, text)?;
    }
    match Builder::new(folder.path()).generate() {
        Ok(_) => Ok("no mistake was found\n".to_owned()),
        Err(error @ Error::Definitions(_)) => {
            Ok(format!("{error}\n").replace(&format!("{}/", folder.path().display()), ""))
        }
        Err(other) => Err(other.into()),
    }
}

fn cases() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        all.push(entry?.path());
    }
    all.retain(|p| p.extension().is_some_and(|e| e == "proto"));
    all.sort();
    Ok(all)
}

/// `UPDATE=1 cargo test -p keelson-codegen` writes the texts anew.
#[test]
fn mistakes_are_named_with_place_and_remedy() -> Result<()> {
    let update = std::env::var_os("UPDATE").is_some();
    let mut failures = String::new();
    let cases = cases()?;
    assert!(cases.len() > 30, "the cases are missing");
    for case in cases {
        let found = errors(&fs::read_to_string(&case)?)?;
        let expected = case.with_extension("txt");
        if update {
            fs::write(&expected, &found)?;
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if found != expected {
            writeln!(failures, "{}\nexpected:\n{expected}found:\n{found}", case.display())?;
        }
    }
    assert!(failures.is_empty(), "{failures}");
    Ok(())
}
