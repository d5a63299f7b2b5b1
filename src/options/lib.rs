//! The command line: one module per section of flags, in the sections and with the names of kube-apiserver.
//!
//! [`parse`] reads the arguments into [`Options`]; [`Options::complete`] fills in defaults and checks them, files
//! included, into [`Settings`]; [`provision`] makes what is missing (keys, certificates, the admin's kubeconfig).
//! Nothing is written to the disk before everything given has been checked.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

mod admission;
mod api_enablement;
mod audit;
mod authentication;
mod authorization;
mod crd_command;
mod data_folder;
mod egress;
mod encryption;
mod error;
mod etcd;
mod features;
mod generic;
mod global;
mod help;
mod kubeconfig;
mod logs;
mod misc;
mod pem;
pub mod provision;
mod secure_serving;
mod settings;
mod shown;
mod store_command;
mod store_help;
mod store_transfer;
mod token_file;
mod values;

pub use admission::{AdmissionFileError, AdmissionSettings, FILE as ADMISSION_FILE};
pub use authentication::read_authorities;
pub use authentication::{FrontProxySettings, Issuers, ServiceAccounts, TokenWebhookSettings};
pub use authorization::AuthorizationSettings;
pub use crd_command::CrdCommand;
pub use encryption::{EncryptionFile, EncryptionFileError};
pub use error::OptionError;
pub use etcd::{OwnStore, PlacementSettings};
pub use kubeconfig::server_url;
pub use logs::Format as LogFormat;
pub use misc::Cidr;
pub use secure_serving::{NamedCertificate, ServingCertificate};
pub use settings::{AuthenticationSettings, KubernetesSettings, Log, ServingSettings, Settings, StorageSettings};
pub use store_command::{StoreCommand, StoredObjects};
pub use token_file::{Passwords, Tokens};

/// All flags, as given.
#[derive(clap::Parser, Debug, Clone)]
#[command(disable_help_flag = true, disable_version_flag = true, args_override_self = true)]
pub struct Options {
    #[command(flatten)]
    pub data_folder: data_folder::DataFolder,
    #[command(flatten)]
    pub generic: generic::Generic,
    #[command(flatten)]
    pub etcd: etcd::Etcd,
    #[command(flatten)]
    pub features: features::Features,
    #[command(flatten)]
    pub secure_serving: secure_serving::SecureServing,
    #[command(flatten)]
    pub audit: audit::Audit,
    #[command(flatten)]
    pub authentication: authentication::Authentication,
    #[command(flatten)]
    pub authorization: authorization::Authorization,
    #[command(flatten)]
    pub egress: egress::EgressSelector,
    #[command(flatten)]
    pub api_enablement: api_enablement::ApiEnablement,
    #[command(flatten)]
    pub admission: admission::Admission,
    #[command(flatten)]
    pub logs: logs::Logs,
    #[command(flatten)]
    pub misc: misc::Misc,
    #[command(flatten)]
    pub global: global::Global,
    /// All flags by their names, with their values.
    #[arg(skip)]
    pub shown: BTreeMap<String, String>,
}

/// What the command line asks the program to do.
#[derive(Debug)]
pub enum Invocation {
    Serve(Box<Options>),
    /// Print this text, and end.
    Help(String),
    /// Print the version, and end.
    Version,
    /// Work on a store that is at rest, and end.
    Store(StoreCommand),
    /// Turn definition files into CustomResourceDefinitions or the other way round, and end.
    Crd(CrdCommand),
}

/// Reads the arguments (without the program's own name).
///
/// # Errors
/// An unknown flag, a missing or malformed value.
pub fn parse(
    program: &'static str,
    about: &'static str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Invocation, OptionError> {
    let mut arguments = arguments.into_iter().map(dashes).peekable();
    if arguments.next_if(|first| first == "store").is_some() {
        return match store_command::parse(program, arguments, |name| std::env::var(name).ok()) {
            Ok(command) => Ok(Invocation::Store(command)),
            Err(Ok(help)) => Ok(Invocation::Help(help)),
            Err(Err(error)) => Err(error),
        };
    }
    if arguments.next_if(|first| first == "crd").is_some() {
        return match crd_command::parse(program, arguments) {
            Ok(command) => Ok(Invocation::Crd(command)),
            Err(Ok(help)) => Ok(Invocation::Help(help)),
            Err(Err(error)) => Err(error),
        };
    }
    let mut command = command(program, about);
    let help = help::render(&command);
    let matches = command.try_get_matches_from_mut(std::iter::once(OsString::from(program)).chain(arguments));
    let options = matches.and_then(|matches| {
        let shown = shown::flags(&command, &matches);
        Ok(Options {
            shown,
            ..Options::from_arg_matches(&matches)?
        })
    });
    let options = options.map_err(|error| OptionError::from_clap(program, &error))?;
    match options.global.version.as_deref() {
        _ if options.global.help => Ok(Invocation::Help(help)),
        Some("true" | "raw") => Ok(Invocation::Version),
        None | Some("false") => Ok(Invocation::Serve(Box::new(options))),
        Some(other) => Err(OptionError::flag(
            "--version",
            format!("{other:?} is none of true, false and raw"),
        )),
    }
}

fn command(program: &'static str, about: &'static str) -> clap::Command {
    Options::command()
        .name(program)
        .about(about)
        // As in Go, whatever follows `--flag` is its value, also when it begins with a dash.
        .mut_args(
            |argument| match argument.is_require_equals_set() || !argument.get_action().takes_values() {
                true => argument,
                false => argument.allow_hyphen_values(true),
            },
        )
}

/// Underscores in a flag's name are dashes.
fn dashes(argument: OsString) -> OsString {
    match argument.to_str() {
        Some(text) if text.starts_with("--") && text.contains('_') => {
            let (name, value) = text.split_at(text.find('=').unwrap_or(text.len()));
            OsString::from(name.replace('_', "-") + value)
        }
        _ => argument,
    }
}

#[cfg(test)]
mod tests;
