//! Who a request comes from.

use std::path::PathBuf;

use super::{OptionError, pem, token_file, values};

pub(super) const SECTION: &str = "Authentication flags";

/// The issuer of service account tokens where no flag names one.
const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Authentication {
    /// Whether requests without credentials are let through to authorization, as user system:anonymous in group
    /// system:unauthenticated.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", value_parser = values::boolean)]
    pub anonymous_auth: bool,

    /// A PEM file of the authorities whose client certificates are taken: the common name is the user, the
    /// organizations are the groups. Default: an authority in the data folder, made if absent.
    #[arg(long, value_name = "string")]
    pub client_ca_file: Option<PathBuf>,

    /// A CSV file of static tokens, read once at the start: token, user name, user uid, and optionally the groups in
    /// quotes with commas between.
    #[arg(long, value_name = "string")]
    pub token_auth_file: Option<PathBuf>,

    /// The issuer of service account tokens. Of several the first issues tokens and all are accepted.
    #[arg(long, value_name = "stringArray")]
    pub service_account_issuer: Vec<String>,

    /// A PEM file with keys that service account tokens are checked with. May be given several times.
    #[arg(long, value_name = "stringArray")]
    pub service_account_key_file: Vec<PathBuf>,

    /// The audiences of tokens for this server, with commas between. Default: the issuers.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub api_audiences: Vec<String>,
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

    /// The path of --client-ca-file.
    pub(super) fn client_ca_path(&self) -> Option<&PathBuf> {
        self.client_ca_file.as_ref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The PEM text of --client-ca-file.
    pub(super) fn client_ca(&self) -> Result<Option<String>, OptionError> {
        let path = self.client_ca_path();
        path.map(|path| pem::check("--client-ca-file", path, false)).transpose()
    }

    /// The issuers of service account tokens, the issuing one first.
    pub(super) fn issuers(&self) -> Result<Vec<String>, OptionError> {
        const FLAG: &str = "--service-account-issuer";
        if self.service_account_issuer.is_empty() {
            return Ok(vec![DEFAULT_ISSUER.to_owned()]);
        }
        let mut issuers: Vec<String> = Vec::new();
        for issuer in &self.service_account_issuer {
            if issuer.is_empty() {
                return Err(OptionError::flag(FLAG, "should not be an empty string"));
            }
            if issuer.contains(':') && !is_url(issuer) {
                return Err(OptionError::flag(
                    FLAG,
                    format!("{issuer:?} contained a ':' but was not a valid URL"),
                ));
            }
            if issuers.contains(issuer) {
                return Err(OptionError::flag(FLAG, format!("{issuer:?} is already specified")));
            }
            issuers.push(issuer.clone());
        }
        Ok(issuers)
    }

    /// Checks the files of --service-account-key-file.
    pub(super) fn check_service_account_keys(&self) -> Result<(), OptionError> {
        const FLAG: &str = "--service-account-key-file";
        for path in &self.service_account_key_file {
            let text = pem::read(FLAG, path)?;
            pem::verifying_keys(&text).map_err(|reason| OptionError::file(FLAG, path, reason))?;
        }
        Ok(())
    }

    /// The audiences of tokens for this server.
    pub(super) fn audiences(&self, issuers: &[String]) -> Vec<String> {
        if self.api_audiences.is_empty() {
            issuers.to_vec()
        } else {
            self.api_audiences.clone()
        }
    }
}

/// A scheme, a colon and something after it, without white space.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuers(given: &[&str]) -> Result<Vec<String>, String> {
        let flags = Authentication {
            anonymous_auth: true,
            client_ca_file: None,
            token_auth_file: None,
            service_account_issuer: given.iter().map(|issuer| (*issuer).to_owned()).collect(),
            service_account_key_file: Vec::new(),
            api_audiences: Vec::new(),
        };
        flags.issuers().map_err(|error| error.to_string())
    }

    #[test]
    fn issuers_are_checked() {
        assert_eq!(issuers(&[]).unwrap(), [DEFAULT_ISSUER]);
        assert_eq!(issuers(&["https://a", "b"]).unwrap(), ["https://a", "b"]);
        for (given, error) in [
            (&["https://a", "https://a"][..], r#""https://a" is already specified"#),
            (&[""], "should not be an empty string"),
            (&["1:x"], r#""1:x" contained a ':' but was not a valid URL"#),
        ] {
            assert_eq!(
                issuers(given).unwrap_err(),
                format!("--service-account-issuer: {error}")
            );
        }
    }
}
