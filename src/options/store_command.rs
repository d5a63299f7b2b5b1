//! `store check`, `migrate`, `repair`, `compact`, `snapshot`, `restore`, `import`, `export`: work on the embedded store
//! of a data folder that no server uses at the moment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches};
use keelson_storage::StoreError;
use keelson_storage::embedded::offline::{self, Report};
use keelson_storage::embedded::{self, Repaired};
use keelson_storage::migrate::Options;

use super::OptionError;
use super::data_folder::{DataFolder, absolute};
use super::etcd::store_folder;
use super::store_transfer::{Carry, End};

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
    #[arg(value_name = "check|migrate|repair|compact|snapshot|restore|import|export")]
    action: Option<String>,

    /// Where `import` reads.
    #[arg(long, value_name = "URL|FILE")]
    from: Option<String>,

    /// Where `export` writes.
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// What carried keys begin with.
    #[arg(long, value_name = "string", default_value = "/registry")]
    etcd_prefix: String,

    #[arg(long, value_name = "string")]
    etcd_cafile: Option<PathBuf>,

    #[arg(long, value_name = "string")]
    etcd_certfile: Option<PathBuf>,

    #[arg(long, value_name = "string")]
    etcd_keyfile: Option<PathBuf>,

    /// The target may hold keys.
    #[arg(long)]
    overwrite: bool,

    /// The folder may hold a store.
    #[arg(long)]
    force: bool,

    /// What is missing is given up.
    #[arg(long)]
    accept_loss: bool,

    /// The snapshot's file.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Show this text.
    #[arg(short, long)]
    help: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Action {
    /// The store, or a snapshot.
    Check(Option<PathBuf>),
    Migrate,
    Repair {
        accept_loss: bool,
    },
    Compact,
    Snapshot(PathBuf),
    Restore {
        file: PathBuf,
        force: bool,
    },
    Import(Carry),
    Export(Carry),
}

/// What to do, and with which store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreCommand {
    action: Action,
    folder: PathBuf,
    /// `/registry`: what the keys of objects begin with.
    prefix: String,
}

/// What is done with the objects of a store, which only a program that knows their kinds can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredObjects {
    /// Each is decoded.
    Check { folder: PathBuf, prefix: String },
    /// Each is written as it is stored today.
    Migrate { folder: PathBuf, prefix: String },
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
        return Err(Ok(super::store_help::text(program, given.action.as_deref())));
    }
    let data_dir = given.data_folder.folder(program, lookup).map_err(Err)?;
    Ok(StoreCommand {
        action: action(&given).map_err(Err)?,
        folder: store_folder(&data_dir),
        prefix: super::etcd::key_prefix(&given.etcd_prefix),
    })
}

fn action(given: &Arguments) -> Result<Action, OptionError> {
    let file = given.file.as_deref().map(|file| absolute("FILE", file)).transpose()?;
    let usage = |what: &str| OptionError::CommandLine(format!("store {what}"));
    let action = given.action.as_deref();
    for (flag, value, of) in [("--from", &given.from, "import"), ("--to", &given.to, "export")] {
        match action {
            Some(name) if name == of && value.is_none() => return Err(usage(&format!("{name}: needs {flag}"))),
            Some(name) if name != of && value.is_some() => return Err(usage(&format!("{name} takes no {flag}"))),
            _ => {}
        }
    }
    for (flag, given, of) in [
        ("--force", given.force, &["restore"][..]),
        ("--accept-loss", given.accept_loss, &["repair"]),
        ("--overwrite", given.overwrite, &["restore", "import", "export"]),
    ] {
        if let Some(name) = action.filter(|name| given && !of.contains(name)) {
            return Err(usage(&format!("{name} takes no {flag}")));
        }
    }
    Ok(match (action, file) {
        (Some("check"), file) => Action::Check(file),
        (Some("repair"), None) => Action::Repair {
            accept_loss: given.accept_loss,
        },
        (Some("migrate"), None) => Action::Migrate,
        (Some("compact"), None) => Action::Compact,
        (Some("snapshot"), Some(file)) => Action::Snapshot(file),
        (Some("restore"), Some(file)) => Action::Restore {
            file,
            force: given.force || given.overwrite,
        },
        (Some("import"), None) => Action::Import(carry(given, "--from", given.from.as_deref())?),
        (Some("export"), None) => Action::Export(carry(given, "--to", given.to.as_deref())?),
        (Some(name @ ("snapshot" | "restore")), None) => {
            return Err(usage(&format!("{name}: name the snapshot's file")));
        }
        (Some(name @ ("migrate" | "repair" | "compact" | "import" | "export")), Some(_)) => {
            return Err(usage(&format!("{name} takes no file")));
        }
        (Some(other), _) => return Err(usage(&format!("{other:?} is none of {ACTIONS}"))),
        (None, _) => return Err(usage(&format!("needs one of {ACTIONS}"))),
    })
}

const ACTIONS: &str = "check, migrate, repair, compact, snapshot, restore, import and export";

/// The other end, and what to carry.
fn carry(given: &Arguments, flag: &'static str, end: Option<&str>) -> Result<Carry, OptionError> {
    let end = end.unwrap_or_default();
    let other = if end.contains("://") {
        let servers = end.split(',').map(str::to_owned).collect();
        let (ca, cert, key) = (&given.etcd_cafile, &given.etcd_certfile, &given.etcd_keyfile);
        End::Etcd(super::etcd::connection(flag, servers, ca, cert, key)?)
    } else if flag == "--from" {
        End::Snapshot(absolute(flag, Path::new(end))?)
    } else {
        return Err(OptionError::flag(
            flag,
            format!("{end:?} is not a URL like https://10.0.0.1:2379"),
        ));
    };
    Ok(Carry {
        end: other,
        options: Options {
            prefix: format!("{}/", super::etcd::key_prefix(&given.etcd_prefix)),
            overwrite: given.overwrite,
        },
    })
}

impl StoreCommand {
    /// What is left to be done with the objects once [`StoreCommand::run`] has found the store whole.
    pub fn objects(&self) -> Option<StoredObjects> {
        let (folder, prefix) = (self.folder.clone(), self.prefix.clone());
        match self.action {
            Action::Check(None) => Some(StoredObjects::Check { folder, prefix }),
            Action::Migrate => Some(StoredObjects::Migrate { folder, prefix }),
            _ => None,
        }
    }

    /// Does it, and says in one line what came of it.
    pub fn run(&self) -> Result<String, OptionError> {
        let folder = self.folder.display();
        let done = match &self.action {
            Action::Check(None) => offline::check(&self.folder)
                .map(|report| format!("{folder} is whole: {}{}", line(&report), explained(&report))),
            Action::Migrate => {
                offline::check(&self.folder).map(|report| format!("{folder} is whole: {}", line(&report)))
            }
            Action::Check(Some(file)) => {
                offline::check_snapshot(file).map(|report| format!("{} is whole: {}", file.display(), line(&report)))
            }
            Action::Compact => offline::compact(&self.folder)
                .map(|(before, after)| format!("{folder}: {} before; now {}", size(&before), line(&after))),
            Action::Snapshot(file) => offline::snapshot(&self.folder, file)
                .map(|report| format!("{}: copied out {}", file.display(), line(&report))),
            Action::Repair { accept_loss } => repair(&self.folder, *accept_loss),
            Action::Restore { file, force } => restore(file, &self.folder, *force),
            Action::Import(carry) => carry.import(&self.folder),
            Action::Export(carry) => carry.export(&self.folder),
        };
        done.map_err(|error| OptionError::CommandLine(error.to_string()))
    }
}

fn restore(file: &Path, folder: &Path, force: bool) -> Result<String, StoreError> {
    let (report, kept) = offline::restore(file, folder, force)?;
    let kept = kept.map_or(String::new(), |kept| {
        format!("; the files before are in {}", kept.display())
    });
    Ok(format!("{}: restored {}{kept}", folder.display(), line(&report)))
}

fn repair(folder: &Path, accept_loss: bool) -> Result<String, StoreError> {
    let Repaired { mended, kept, report } = embedded::repair(folder, accept_loss)?;
    let (folder, report) = (folder.display(), line(&report));
    Ok(match kept {
        None => format!("{folder}: there is nothing to mend: {report}"),
        Some(kept) => format!(
            "{folder}: mended: {}; now {report}; the files before are in {}",
            mended.join("; "),
            kept.display()
        ),
    })
}

pub(super) fn line(report: &Report) -> String {
    format!(
        "{} keys with {} bytes, revisions {} to {}, {}",
        report.keys,
        report.value_bytes,
        report.oldest,
        report.revision,
        size(report)
    )
}

/// Why the folder is larger than what it holds.
fn explained(report: &Report) -> String {
    let unused = match report.unused_bytes {
        0 => String::new(),
        bytes => format!(
            "\n{bytes} of them hold nothing: they are used again, and given back once they are more than half of the \
             file, or by `store compact`"
        ),
    };
    let reserve = match report.reserve_bytes {
        0 => String::new(),
        bytes => format!("\n{bytes} more are in reserve, so that objects can be deleted when the disk is full"),
    };
    format!("{unused}{reserve}")
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
        assert_eq!(read(&["check"]), Ok(Action::Check(None)));
        assert_eq!(read(&["check", "/x"]), Ok(Action::Check(Some("/x".into()))));
        assert_eq!(read(&["snapshot", "/x"]), Ok(Action::Snapshot("/x".into())));
        for (force, arguments) in [
            (false, &["restore", "/x"][..]),
            (true, &["restore", "/x", "--force"]),
            (true, &["restore", "/x", "--overwrite"]),
        ] {
            let file = "/x".into();
            assert_eq!(read(arguments), Ok(Action::Restore { file, force }));
        }
        assert_eq!(read(&["migrate"]), Ok(Action::Migrate));
        assert_eq!(read(&["repair"]), Ok(Action::Repair { accept_loss: false }));
        assert_eq!(
            read(&["repair", "--accept-loss"]),
            Ok(Action::Repair { accept_loss: true })
        );
        assert_eq!(read(&["--help"]), Err("help".to_owned()));
        for (arguments, error) in [
            (
                &[][..],
                "store needs one of check, migrate, repair, compact, snapshot, restore, import and export",
            ),
            (
                &["fix"],
                r#"store "fix" is none of check, migrate, repair, compact, snapshot, restore, import and export"#,
            ),
            (&["import"], "store import: needs --from"),
            (
                &["export", "--to=http://a:1", "--from=b"],
                "store export takes no --from",
            ),
            (
                &["export", "--to=file"],
                r#"--to: "file" is not a URL like https://10.0.0.1:2379"#,
            ),
            (
                &["import", "--from=http://"],
                r#"--from: "http://" is not a URL like https://10.0.0.1:2379"#,
            ),
            (
                &["import", "--from=http://a:1", "--etcd-keyfile=x"],
                "--etcd-keyfile: needs --etcd-certfile",
            ),
            (&["restore"], "store restore: name the snapshot's file"),
            (&["compact", "/x"], "store compact takes no file"),
            (&["repair", "/x"], "store repair takes no file"),
            (&["check", "--force"], "store check takes no --force"),
            (&["compact", "--overwrite"], "store compact takes no --overwrite"),
            (
                &["restore", "/x", "--accept-loss"],
                "store restore takes no --accept-loss",
            ),
            (&["check", "--nope"], "unknown flag: --nope"),
        ] {
            assert_eq!(read(arguments).unwrap_err(), error);
        }
    }

    #[test]
    fn stores_are_carried_from_and_to_etcd_or_from_a_file() {
        let Ok(Action::Import(carry)) = read(&["import", "--from=http://a:1,http://b:2", "--etcd-prefix=x/"]) else {
            panic!()
        };
        let End::Etcd(etcd) = carry.end else { panic!() };
        assert_eq!(etcd.endpoints, ["http://a:1", "http://b:2"]);
        assert_eq!((carry.options.prefix.as_str(), carry.options.overwrite), ("/x/", false));
        let Ok(Action::Import(carry)) = read(&["import", "--from=/backup.db", "--overwrite"]) else {
            panic!()
        };
        assert_eq!(carry.end, End::Snapshot("/backup.db".into()));
        assert_eq!(
            (carry.options.prefix.as_str(), carry.options.overwrite),
            ("/registry/", true)
        );
        assert!(matches!(read(&["export", "--to=http://a:1"]), Ok(Action::Export(_))));
    }

    #[test]
    fn what_can_not_be_done_says_why_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let command = StoreCommand {
            action: Action::Check(None),
            folder: dir.path().join("store"),
            prefix: "/registry".to_owned(),
        };
        let error = command.run().unwrap_err().to_string();
        assert!(error.ends_with("holds no store"), "{error}");
    }
}
