//! `crd export` and `crd import`: between definition files and CustomResourceDefinitions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches};

use super::OptionError;
use super::data_folder::absolute;

const HELP: &str = "\
Between definition files and CustomResourceDefinitions.

Usage:
  {program} crd export KIND  prints the CustomResourceDefinition of a kind of this program; KIND is a kind, a plural, or a
                             plural with its group: widgets.example.com
  {program} crd import FILE  writes the definition files of a CustomResourceDefinition, in YAML or JSON, one for each of its
                             versions; files that are there already stay as they are

What the other form has no word for is told, a line each.

  --into string   import: the folder of definitions. Default: api-defs.
";

#[derive(clap::Parser, Debug)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true
)]
struct Arguments {
    /// What to do.
    #[arg(value_name = "export|import")]
    action: Option<String>,

    /// Of what.
    #[arg(value_name = "KIND|FILE")]
    subject: Option<String>,

    /// The folder of definitions.
    #[arg(long, value_name = "string")]
    into: Option<PathBuf>,

    /// Show this text.
    #[arg(short, long)]
    help: bool,
}

/// What to turn into what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CrdCommand {
    /// The kind of this name.
    Export(String),
    /// The definition in a file, into a folder.
    Import { file: PathBuf, into: PathBuf },
}

/// The arguments after `crd`. `Err(Ok(text))`: print this help.
pub(super) fn parse(
    program: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<CrdCommand, Result<String, OptionError>> {
    let given = Arguments::command()
        .name(program)
        .try_get_matches_from_mut(std::iter::once(OsString::from(program)).chain(arguments))
        .and_then(|matches| Arguments::from_arg_matches(&matches))
        .map_err(|error| Err(OptionError::from_clap(program, &error)))?;
    if given.help {
        return Err(Ok(HELP.replace("{program}", program)));
    }
    command(given).map_err(Err)
}

fn command(given: Arguments) -> Result<CrdCommand, OptionError> {
    let usage = |what: &str| Err(OptionError::CommandLine(format!("crd {what}")));
    match (given.action.as_deref(), given.subject, given.into) {
        (Some("export"), Some(_), Some(_)) => usage("export takes no --into"),
        (Some("export"), Some(kind), None) => Ok(CrdCommand::Export(kind)),
        (Some("export"), None, _) => usage("export: name the kind"),
        (Some("import"), Some(file), into) => Ok(CrdCommand::Import {
            file: absolute("FILE", file.as_ref())?,
            into: absolute("--into", &into.unwrap_or_else(|| PathBuf::from("api-defs")))?,
        }),
        (Some("import"), None, _) => usage("import: name the file"),
        (Some(other), ..) => usage(&format!("{other:?} is none of export and import")),
        (None, ..) => usage("needs one of export and import"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<CrdCommand, String> {
        match parse("keelson", arguments.iter().map(OsString::from)) {
            Ok(command) => Ok(command),
            Err(Ok(_)) => Err("help".to_owned()),
            Err(Err(error)) => Err(error.to_string()),
        }
    }

    #[test]
    fn commands_and_their_mistakes() {
        assert_eq!(read(&["export", "Widget"]), Ok(CrdCommand::Export("Widget".to_owned())));
        let imported = read(&["import", "/x.yaml", "--into=/defs"]);
        let (file, into) = ("/x.yaml".into(), "/defs".into());
        assert_eq!(imported, Ok(CrdCommand::Import { file, into }));
        assert_eq!(read(&["-h"]), Err("help".to_owned()));
        for (arguments, error) in [
            (&[][..], "crd needs one of export and import"),
            (&["show"], "crd \"show\" is none of export and import"),
            (&["export"], "crd export: name the kind"),
            (&["export", "Widget", "--into=x"], "crd export takes no --into"),
            (&["import"], "crd import: name the file"),
        ] {
            assert_eq!(read(arguments), Err(error.to_owned()));
        }
    }
}
