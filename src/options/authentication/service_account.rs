//! Tokens of service accounts.

use std::path::{Path, PathBuf};

use keelson_access::authn::jwt::{KeySet, verifying_keys};
use keelson_access::authn::token_issuer::Lifetimes;
use keelson_machinery::time::Duration;

use super::SECTION;
use crate::{OptionError, pem, values};

/// The issuer of service account tokens where no flag names one.
const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";
/// Bounds of --service-account-max-token-expiration, in seconds.
const SHORTEST: i64 = 3600;
const LONGEST: i64 = 1 << 32;

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct ServiceAccount {
    /// The issuer of service account tokens. Of several the first issues tokens and all are accepted.
    #[arg(long, value_name = "stringArray")]
    pub service_account_issuer: Vec<String>,

    /// A PEM file with keys that service account tokens are checked with: public ones, private ones, certificates. May
    /// be given several times. Default: the key that signs.
    #[arg(long, value_name = "stringArray")]
    pub service_account_key_file: Vec<PathBuf>,

    /// Whether tokens that stand in secrets die with their secret.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", value_parser = values::boolean)]
    pub service_account_lookup: bool,

    /// The longest life of a token that is asked for; longer ones are shortened to it. From 1h to 2^32 seconds; 0: that
    /// which is asked for.
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub service_account_max_token_expiration: Duration,

    /// Whether tokens that kubelets ask for on behalf of pods live for a year, for programs that read them only once.
    /// Metrics and the audit log tell who uses one that should have been replaced.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", value_parser = values::boolean)]
    pub service_account_extend_token_expiration: bool,

    /// Where others are told to find the public keys of these tokens, a URL of https. Default: this server.
    #[arg(long, value_name = "string", default_value = "", hide_default_value = true)]
    pub service_account_jwks_uri: String,

    /// The audiences of tokens for this server, with commas between. Default: the issuers.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub api_audiences: Vec<String>,
}

/// How service account tokens are made and checked.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    pub issuers: Vec<String>,
    pub audiences: Vec<String>,
    /// Files with keys that tokens are checked with; none: the key that signs.
    pub key_files: Vec<PathBuf>,
    /// The file of the key that signs; `None`: the one in the data folder.
    pub signing_key_file: Option<PathBuf>,
    pub lookup: bool,
    pub lifetimes: Lifetimes,
    /// Where others are told to find the keys; empty: at this server.
    pub keys_url: String,
}

impl ServiceAccount {
    pub(crate) fn complete(&self, signing_key_file: Option<PathBuf>) -> Result<ServiceAccounts, OptionError> {
        let issuers = self.issuers()?;
        for path in &self.service_account_key_file {
            keys(path)?;
        }
        if let Some(path) = &signing_key_file {
            pem::check("--service-account-signing-key-file", path, true)?;
        }
        Ok(ServiceAccounts {
            audiences: self.audiences(&issuers),
            issuers,
            key_files: self.service_account_key_file.clone(),
            signing_key_file,
            lookup: self.service_account_lookup,
            lifetimes: self.lifetimes()?,
            keys_url: self.keys_url()?,
        })
    }

    /// The issuers, the issuing one first.
    fn issuers(&self) -> Result<Vec<String>, OptionError> {
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

    fn audiences(&self, issuers: &[String]) -> Vec<String> {
        if self.api_audiences.is_empty() {
            issuers.to_vec()
        } else {
            self.api_audiences.clone()
        }
    }

    fn lifetimes(&self) -> Result<Lifetimes, OptionError> {
        let seconds = self.service_account_max_token_expiration.as_secs();
        let longest = match seconds {
            0 => None,
            SHORTEST..=LONGEST => Some(seconds),
            _ => {
                return Err(OptionError::flag(
                    "--service-account-max-token-expiration",
                    "must be between 1 hour and 2^32 seconds",
                ));
            }
        };
        Ok(Lifetimes {
            longest,
            extend: self.service_account_extend_token_expiration,
        })
    }

    fn keys_url(&self) -> Result<String, OptionError> {
        let url = &self.service_account_jwks_uri;
        if url.is_empty() || (url.starts_with("https://") && is_url(url)) {
            return Ok(url.clone());
        }
        Err(OptionError::flag(
            "--service-account-jwks-uri",
            format!("requires https scheme, parsed as: {url}"),
        ))
    }
}

impl ServiceAccounts {
    /// All keys that tokens are checked with.
    ///
    /// # Errors
    /// A file that can't be read, or has no keys.
    pub fn keys(&self, signing_key_file: &Path) -> Result<KeySet, OptionError> {
        let own = [signing_key_file.to_owned()];
        let files = if self.key_files.is_empty() {
            &own[..]
        } else {
            &self.key_files
        };
        let mut all = Vec::new();
        for path in files {
            all.extend(keys(path)?.iter().cloned());
        }
        Ok(KeySet::new(all))
    }
}

fn keys(path: &Path) -> Result<KeySet, OptionError> {
    const FLAG: &str = "--service-account-key-file";
    let keys = KeySet::new(verifying_keys(&pem::read(FLAG, path)?));
    if keys.iter().next().is_none() {
        let reason = "data does not contain any valid RSA or ECDSA public keys";
        return Err(OptionError::file(FLAG, path, reason));
    }
    Ok(keys)
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
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        flags: ServiceAccount,
    }

    fn complete(given: &[&str]) -> Result<ServiceAccounts, String> {
        let flags = Flags::try_parse_from(std::iter::once(&"x").chain(given)).unwrap().flags;
        flags.complete(None).map_err(|error| error.to_string())
    }

    #[test]
    fn issuers_are_checked() {
        let issuer = |given: &[&str]| {
            let flags: Vec<String> = given
                .iter()
                .map(|one| format!("--service-account-issuer={one}"))
                .collect();
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            complete(&flags).map(|settings| settings.issuers)
        };
        assert_eq!(issuer(&[]).unwrap(), [DEFAULT_ISSUER]);
        assert_eq!(issuer(&["https://a", "b"]).unwrap(), ["https://a", "b"]);
        for (given, error) in [
            (&["https://a", "https://a"][..], r#""https://a" is already specified"#),
            (&[""], "should not be an empty string"),
            (&["1:x"], r#""1:x" contained a ':' but was not a valid URL"#),
        ] {
            assert_eq!(issuer(given).unwrap_err(), format!("--service-account-issuer: {error}"));
        }
    }

    #[test]
    fn lifetimes_and_addresses_are_checked() {
        let settings = complete(&["--service-account-max-token-expiration=2h"]).unwrap();
        assert_eq!(
            (settings.lifetimes.longest, settings.lifetimes.extend),
            (Some(7200), true)
        );
        assert_eq!(complete(&[]).unwrap().lifetimes.longest, None);
        for wrong in ["1m", "-1s", "2000000h"] {
            let error = complete(&[&format!("--service-account-max-token-expiration={wrong}")]).unwrap_err();
            assert!(error.ends_with("must be between 1 hour and 2^32 seconds"), "{error}");
        }
        assert!(complete(&["--service-account-jwks-uri=https://a/b"]).is_ok());
        assert!(complete(&["--service-account-jwks-uri=http://a/b"]).is_err());
    }
}
