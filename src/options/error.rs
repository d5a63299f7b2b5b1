//! Errors of command lines, one line each.

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A flag, or a file that a flag names, that the server can't start with.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// The command line can't be read; the text is that of Go's flag package.
    #[error("{0}")]
    CommandLine(String),
    /// A flag's value is wrong.
    #[error("{flag}: {reason}")]
    Flag { flag: &'static str, reason: String },
    /// A file named by a flag can't be used.
    #[error("{flag}: {}: {reason}", .path.display())]
    File {
        flag: &'static str,
        path: PathBuf,
        reason: String,
    },
}

impl OptionError {
    pub fn flag(flag: &'static str, reason: impl ToString) -> OptionError {
        OptionError::Flag {
            flag,
            reason: reason.to_string(),
        }
    }

    pub fn file(flag: &'static str, path: &Path, reason: impl ToString) -> OptionError {
        OptionError::File {
            flag,
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl OptionError {
    /// The one line for clap's many.
    pub(super) fn from_clap(program: &str, error: &clap::Error) -> OptionError {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.clone(),
            Some(ContextValue::Strings(texts)) => texts.join(" "),
            _ => String::new(),
        };
        let argument = text(ContextKind::InvalidArg);
        let name = argument.split([' ', '=', '[']).next().unwrap_or_default();
        OptionError::CommandLine(match error.kind() {
            ErrorKind::UnknownArgument if name.starts_with("--") => match text(ContextKind::SuggestedArg) {
                near if near.is_empty() => format!("unknown flag: {name}"),
                near => format!("unknown flag: {name} (did you mean {near}?)"),
            },
            ErrorKind::UnknownArgument if name.starts_with('-') => format!("unknown shorthand flag: {name}"),
            ErrorKind::UnknownArgument => format!("{program:?} does not take any arguments, got [{argument:?}]"),
            ErrorKind::ValueValidation => {
                let reason = std::error::Error::source(error)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                format!(
                    "invalid argument {:?} for {name:?} flag: {reason}",
                    text(ContextKind::InvalidValue)
                )
            }
            ErrorKind::InvalidValue | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
                format!("flag needs an argument: {name}")
            }
            _ => error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
        })
    }
}
