//! `store check`, `compact`, `snapshot FILE`, `restore FILE`: work on the embedded store of a data folder that no server
//! uses at the moment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches};
use keelson_storage::embedded::offline::{self, Report};

use super::OptionError;
use super::data_folder::{DataFolder, absolute};
use super::etcd::store_folder;

const HELP: &str = "\
Works on the embedded store of a data folder that no server uses at the moment.

Usage:
  {program} store check [--data-dir string]           reads everything and compares it with its checksums
  {program} store compact [--data-dir string]         forgets history and gives unused space back
  {program} store snapshot FILE [--data-dir string]   copies the store into a new file
  {program} store restore FILE [--data-dir string]    makes the store of a folder that has none from a snapshot
";

#[derive(clap::Parser, Debug)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(flatten)]
    data_folder: DataFolder,

    /// What to do.
    #[arg(value_name = "check|compact|snapshot|restore")]
    action: Option<String>,

    /// The snapshot's file.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Show this text.
    #[arg(short, long)]
    help: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Action {
    Check,
    Compact,
    Snapshot(PathBuf),
    Restore(PathBuf),
}

/// What to do, and with which store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreCommand {
    action: Action,
    folder: PathBuf,
}

/// The arguments after `store`. `Err(Ok(text))`: print this help.
pub(super) fn parse(
    program: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<StoreCommand, Result<String, OptionError>> {
    let given = Arguments::command()
        .name(program)
        .try_get_matches_from_mut(std::iter::once(OsString::from(program)).chain(arguments))
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map_err(|error| Err(OptionError::from_clap(program, &error)))?;
    if given.help {
        return Err(Ok(HELP.replace("{program}", program)));
    }
    let data_dir = given.data_folder.folder(program, lookup).map_err(Err)?;
    Ok(StoreCommand {
        action: action(&given).map_err(Err)?,
        folder: store_folder(&data_dir),
    })
}

fn action(given: &Arguments) -> Result<Action, OptionError> {
    let file = given.file.as_deref().map(|file| absolute("FILE", file)).transpose()?;
    let usage = |what: &str| OptionError::CommandLine(format!("store {what}"));
    Ok(match (given.action.as_deref(), file) {
        (Some("check"), None) => Action::Check,
        (Some("compact"), None) => Action::Compact,
        (Some("snapshot"), Some(file)) => Action::Snapshot(file),
        (Some("restore"), Some(file)) => Action::Restore(file),
        (Some(name @ ("snapshot" | "restore")), None) => {
            return Err(usage(&format!("{name}: name the snapshot's file")));
        }
        (Some(name @ ("check" | "compact")), Some(_)) => return Err(usage(&format!("{name} takes no file"))),
        (Some(other), _) => {
            return Err(usage(&format!(
                "{other:?} is none of check, compact, snapshot and restore"
            )));
        }
        (None, _) => return Err(usage("needs one of check, compact, snapshot and restore")),
    })
}

impl StoreCommand {
    /// Does it, and says in one line what came of it.
    pub fn run(&self) -> Result<String, OptionError> {
        let folder = self.folder.display();
        let done = match &self.action {
            Action::Check => offline::check(&self.folder).map(|report| format!("{folder} is whole: {}", line(&report))),
            Action::Compact => offline::compact(&self.folder)
                .map(|(before, after)| format!("{folder}: {} before; now {}", size(&before), line(&after))),
            Action::Snapshot(file) => offline::snapshot(&self.folder, file)
                .map(|report| format!("{}: copied out {}", file.display(), line(&report))),
            Action::Restore(file) => restore(file, &self.folder),
        };
        done.map_err(|error| OptionError::CommandLine(error.to_string()))
    }
}

fn restore(file: &Path, folder: &Path) -> Result<String, keelson_storage::StoreError> {
    let report = offline::restore(file, folder)?;
    Ok(format!("{}: restored {}", folder.display(), line(&report)))
}

fn line(report: &Report) -> String {
    format!(
        "{} keys with {} bytes, revisions {} to {}, {}",
        report.keys,
        report.value_bytes,
        report.oldest,
        report.revision,
        size(report)
    )
}

fn size(report: &Report) -> String {
    format!("{} bytes on disk", report.file_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Action, String> {
        let arguments = ["--data-dir=/d"].iter().chain(arguments).map(OsString::from);
        match parse("keelson", arguments, |_| None) {
            Ok(command) => {
                assert_eq!(command.folder, Path::new("/d/store"));
                Ok(command.action)
            }
            Err(Ok(_)) => Err("help".to_owned()),
            Err(Err(error)) => Err(error.to_string()),
        }
    }

    #[test]
    fn actions_and_their_mistakes() {
        assert_eq!(read(&["check"]), Ok(Action::Check));
        assert_eq!(read(&["snapshot", "/x"]), Ok(Action::Snapshot("/x".into())));
        assert_eq!(read(&["restore", "/x"]), Ok(Action::Restore("/x".into())));
        assert_eq!(read(&["--help"]), Err("help".to_owned()));
        for (arguments, error) in [
            (&[][..], "store needs one of check, compact, snapshot and restore"),
            (
                &["fix"],
                r#"store "fix" is none of check, compact, snapshot and restore"#,
            ),
            (&["restore"], "store restore: name the snapshot's file"),
            (&["compact", "/x"], "store compact takes no file"),
            (&["check", "--nope"], "unknown flag: --nope"),
        ] {
            assert_eq!(read(arguments).unwrap_err(), error);
        }
    }

    #[test]
    fn what_can_not_be_done_says_why_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let command = StoreCommand {
            action: Action::Check,
            folder: dir.path().join("store"),
        };
        let error = command.run().unwrap_err().to_string();
        assert!(error.ends_with("holds no store"), "{error}");
    }
}
