//! Authentication options.

mod oidc;
mod request_header;
mod service_account;
mod webhook;

use std::path::PathBuf;

use super::{OptionError, pem, token_file, values};
use oidc::Oidc;
use request_header::RequestHeader;
use service_account::ServiceAccount;
use webhook::TokenWebhook;

pub use oidc::Issuers;
pub use oidc::read_authorities;
pub use request_header::FrontProxySettings;
pub use service_account::ServiceAccounts;
pub use webhook::TokenWebhookSettings;

pub(super) const SECTION: &str = "Authentication flags";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Authentication {
    /// Whether requests without credentials are let through to authorization, as user system:anonymous in group
    /// system:unauthenticated. Default: true.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = values::boolean)]
    pub anonymous_auth: Option<bool>,

    /// A PEM file of the authorities whose client certificates are taken: the common name is the user, the
    /// organizations are the groups. Default: an authority in the data folder, made if absent.
    #[arg(long, value_name = "string")]
    pub client_ca_file: Option<PathBuf>,

    /// A CSV file of static tokens, read once at the start: token, user name, user uid, and optionally the groups in
    /// quotes with commas between.
    #[arg(long, value_name = "string")]
    pub token_auth_file: Option<PathBuf>,

    /// A CSV file of passwords, read once at the start: password, user name, user uid, and optionally the groups in
    /// quotes with commas between. For clients of old; none are taken without it.
    #[arg(long, value_name = "string")]
    pub basic_auth_file: Option<PathBuf>,

    #[command(flatten)]
    pub request_header: RequestHeader,

    #[command(flatten)]
    pub service_account: ServiceAccount,

    /// Whether nodes may join with the tokens of secrets of type bootstrap.kubernetes.io/token in namespace
    /// kube-system.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub enable_bootstrap_token_auth: bool,

    #[command(flatten)]
    pub webhook: TokenWebhook,

    #[command(flatten)]
    pub oidc: Oidc,
}

impl Authentication {
    /// The static tokens, and notes on odd records.
    pub(super) fn tokens(&self) -> Result<token_file::Tokens, OptionError> {
        match &self.token_auth_file {
            Some(path) if !path.as_os_str().is_empty() => {
                let text = pem::read("--token-auth-file", path)?;
                token_file::parse(&path.to_string_lossy(), &text)
                    .map_err(|reason| OptionError::flag("--token-auth-file", reason))
            }
            _ => Ok(token_file::Tokens::default()),
        }
    }

    /// Names and passwords; `None`: they are not taken.
    pub(super) fn passwords(&self) -> Result<Option<token_file::Passwords>, OptionError> {
        const FLAG: &str = "--basic-auth-file";
        let file = self
            .basic_auth_file
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty());
        let Some(path) = file else {
            return Ok(None);
        };
        let text = pem::read(FLAG, path)?;
        let passwords = token_file::parse_passwords(&path.to_string_lossy(), &text);
        passwords.map(Some).map_err(|reason| OptionError::flag(FLAG, reason))
    }

    /// The path of --client-ca-file.
    pub(super) fn client_ca_path(&self) -> Option<&PathBuf> {
        self.client_ca_file.as_ref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The PEM text of --client-ca-file.
    pub(super) fn client_ca(&self) -> Result<Option<String>, OptionError> {
        let path = self.client_ca_path();
        path.map(|path| pem::check("--client-ca-file", path, false)).transpose()
    }
}
