//! Definitions that change while objects are stored: what the build refuses, what it notes, and what it lets through.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use keelson_codegen::{Builder, Error};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evolution")
}

/// A folder of definitions.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Result<Folder> {
        let folder = Folder(tempfile::tempdir()?);
        for version in ["v1", "v1beta1"] {
            let text = fs::read_to_string(data().join(format!("{version}.proto")))?;
            folder.write(&format!("example.com/{version}/van.proto"), &text)?;
        }
        Ok(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("api-defs").join(file)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.path(file);
        fs::create_dir_all(path.parent().ok_or("no folder")?)?;
        Ok(fs::write(path, text)?)
    }

    /// `- FILE: TEXT` and `+ TEXT`: puts the one in the place of the other, which stands there once.
    fn edit(&self, file: &str, old: &str, new: &str) -> Result<()> {
        let text = fs::read_to_string(self.path(file))?;
        assert_eq!(text.matches(old).count(), 1, "{file}: {old:?}");
        self.write(file, &text.replace(old, new))
    }

    /// What a build says, with paths as below the folder of definitions.
    fn build(&self) -> Result<String> {
        let out = tempfile::tempdir()?;
        let root = self.0.path().join("api-defs");
        let told = match Builder::new(&root).run_into(out.path()) {
            Ok(notes) => notes.iter().map(|note| format!("note {note}\n")).collect(),
            Err(error @ Error::Definitions(_)) => {
                let lines: Vec<String> = error.to_string().lines().map(|l| format!("refused {l}\n")).collect();
                lines.concat()
            }
            Err(other) => return Err(other.into()),
        };
        Ok(told.replace(&format!("{}/", root.display()), ""))
    }
}

/// Plays the changes of a case; what the build says takes the place of the lines that begin with `>`.
fn play(case: &str) -> Result<String> {
    let folder = Folder::new()?;
    assert_eq!(folder.build()?, "", "the first build has nothing to compare with");
    let (mut told, mut taken) = (String::new(), None);
    for line in case.lines().filter(|line| !line.starts_with('>')) {
        writeln!(told, "{line}")?;
        if let Some(old) = line.strip_prefix("- ") {
            let (file, text) = old.split_once(": ").ok_or("- FILE: TEXT")?;
            taken = Some((file.to_owned(), text.to_owned()));
        } else if let Some(new) = line.strip_prefix('+') {
            let (file, old) = taken.take().ok_or("+ follows -")?;
            folder.edit(&file, &old, new.trim_start())?;
        } else if let Some(file) = line.strip_prefix("delete ") {
            fs::remove_file(folder.path(file))?;
        } else if line == "build" {
            for said in folder.build()?.lines() {
                writeln!(told, "> {said}")?;
            }
        }
    }
    Ok(told)
}

/// `UPDATE=1 cargo test -p keelson-codegen` writes the texts anew.
#[test]
fn changes_are_refused_noted_or_let_through() -> Result<()> {
    let file = data().join("changes.txt");
    let expected = fs::read_to_string(&file)?;
    let cases: Vec<&str> = expected.split_inclusive("\n\n").collect();
    assert!(cases.len() > 20, "the cases are missing");
    let mut found = Vec::new();
    for case in &cases {
        found.push(play(case)?);
    }
    let found = found.concat();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &found)?;
        return Ok(());
    }
    for (expected, found) in expected.lines().zip(found.lines()) {
        assert_eq!(expected, found);
    }
    assert_eq!(expected.len(), found.len());
    Ok(())
}

/// A record has to be the same whoever builds, and be complete with the first build.
#[test]
fn a_second_build_changes_no_record() -> Result<()> {
    let folder = Folder::new()?;
    folder.build()?;
    let record = || fs::read_to_string(folder.path("example.com/v1/stored.lock"));
    let first = record()?;
    assert!(
        first.contains("kind Van com.example.v1.Van") && first.contains("  3 doors int32"),
        "{first}"
    );
    assert_eq!(folder.build()?, "");
    assert_eq!(record()?, first);
    assert!(
        !folder.path("example.com/v1beta1/stored.lock").exists(),
        "nothing is stored in it"
    );
    Ok(())
}

/// The records of this repository are those of its definitions.
#[test]
fn the_records_of_the_repository_are_up_to_date() -> Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in [
        "api-defs",
        "codegen/sample/api-defs",
        "examples/widgets/api-defs",
        "examples/bookings/api-defs",
        "examples/template/api-defs",
    ] {
        let root = repository.join(folder);
        let notes = keelson_codegen::compare(&root, &root)?;
        assert!(notes.is_empty(), "{notes:?}");
        assert!(
            keelson_codegen::is_recorded(&root)?,
            "{folder}: build it and commit `stored.lock`"
        );
    }
    Ok(())
}
