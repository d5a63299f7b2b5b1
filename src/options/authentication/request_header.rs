//! A proxy in front that authenticates.

use std::path::PathBuf;

use keelson_access::authn::request_header::IdentityHeaders;
use keelson_net::tls::certificates;

use super::SECTION;
use crate::{OptionError, pem};

const FLAG: &str = "--requestheader-client-ca-file";

#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = SECTION)]
pub struct RequestHeader {
    /// A PEM file of the authorities of proxies in front. Whoever has a certificate of theirs may say in headers who
    /// sends a request; of everybody else these headers are ignored.
    #[arg(long, value_name = "string")]
    pub requestheader_client_ca_file: Option<PathBuf>,

    /// The common names of certificates that are proxies, with commas between. Default: all of these authorities.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub requestheader_allowed_names: Vec<String>,

    /// The headers that name the user, the first that is there counts. Usual: X-Remote-User.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub requestheader_username_headers: Vec<String>,

    /// The headers that hold the user's uid. Usual: X-Remote-Uid.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub requestheader_uid_headers: Vec<String>,

    /// The headers that name groups, one each. Usual: X-Remote-Group.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub requestheader_group_headers: Vec<String>,

    /// What the names of headers begin with that hold extra attributes of the user. Usual: X-Remote-Extra-.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub requestheader_extra_headers_prefix: Vec<String>,
}

/// Whom to believe what is said in headers.
#[derive(Clone, Debug)]
pub struct FrontProxySettings {
    pub client_ca_file: PathBuf,
    /// Its PEM text.
    pub client_ca_pem: String,
    pub allowed_names: Vec<String>,
    pub headers: IdentityHeaders,
}

impl RequestHeader {
    /// `None`: there is no such proxy. `client_ca`: the authorities of clients, which must not be mixed up with these.
    pub(crate) fn complete(
        &self,
        client_ca: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<FrontProxySettings>, OptionError> {
        self.check_names(warnings)?;
        let file = self.requestheader_client_ca_file.as_ref();
        let Some(path) = file.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(None);
        };
        let text = pem::check(FLAG, path, false)?;
        if client_ca.is_some_and(|other| overlap(&text, other)) {
            if self.requestheader_allowed_names.is_empty() {
                return Err(OptionError::flag(
                    FLAG,
                    "and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be \
                     specified to ensure regular client certificates cannot set authenticating proxy headers for \
                     arbitrary users",
                ));
            }
            warnings.push(format!(
                "{FLAG} and --client-ca-file have authorities in common: every client whose certificate has one of the \
                 names in --requestheader-allowed-names can act as anybody"
            ));
        }
        Ok(Some(FrontProxySettings {
            client_ca_file: path.clone(),
            client_ca_pem: text,
            allowed_names: self.requestheader_allowed_names.clone(),
            headers: IdentityHeaders {
                usernames: self.requestheader_username_headers.clone(),
                uids: self.requestheader_uid_headers.clone(),
                groups: self.requestheader_group_headers.clone(),
                extra_prefixes: self.requestheader_extra_headers_prefix.clone(),
            },
        }))
    }

    fn check_names(&self, warnings: &mut Vec<String>) -> Result<(), OptionError> {
        for (flag, usual, given) in [
            (
                "--requestheader-username-headers",
                "X-Remote-User",
                &self.requestheader_username_headers,
            ),
            (
                "--requestheader-uid-headers",
                "X-Remote-Uid",
                &self.requestheader_uid_headers,
            ),
            (
                "--requestheader-group-headers",
                "X-Remote-Group",
                &self.requestheader_group_headers,
            ),
            (
                "--requestheader-extra-headers-prefix",
                "X-Remote-Extra-",
                &self.requestheader_extra_headers_prefix,
            ),
        ] {
            if given.iter().any(|name| name.trim().is_empty()) {
                return Err(OptionError::flag(
                    flag,
                    format!("empty value in {:?}", flag.trim_start_matches('-')),
                ));
            }
            if !given.is_empty() && !given.iter().any(|name| name.eq_ignore_ascii_case(usual)) {
                warnings.push(format!(
                    "{flag} is set without specifying the standard {usual} header - API aggregation will not work"
                ));
            }
        }
        Ok(())
    }
}

/// Whether two PEM texts have a certificate in common.
fn overlap(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (certificates(one), certificates(other)) else {
        return false;
    };
    one.iter().any(|certificate| other.contains(certificate))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use keelson_net::tls::certs::{CertificateAuthority, Validity};

    use super::*;

    fn authority(name: &str) -> String {
        let validity = Validity::years_from(SystemTime::now(), 1);
        let authority = CertificateAuthority::create(name, validity).unwrap();
        authority.pem().certificate_pem.clone()
    }

    /// Clients whose certificates are of the authority of proxies could act as anybody.
    #[test]
    fn authorities_of_both_need_names() {
        let folder = tempfile::tempdir().unwrap();
        let (shared, other) = (authority("shared"), authority("other"));
        let path = folder.path().join("proxies.crt");
        std::fs::write(&path, &shared).unwrap();
        let complete = |clients: &str, names: &[&str]| {
            let flags = RequestHeader {
                requestheader_client_ca_file: Some(path.clone()),
                requestheader_allowed_names: names.iter().map(|name| (*name).to_owned()).collect(),
                ..RequestHeader::default()
            };
            let mut warnings = Vec::new();
            let completed = flags.complete(Some(clients), &mut warnings);
            completed
                .map(|settings| (settings.is_some(), warnings.len()))
                .map_err(|error| error.to_string())
        };
        let both = format!("{other}{shared}");
        assert_eq!(complete(&other, &[]), Ok((true, 0)));
        assert_eq!(complete(&both, &["front"]), Ok((true, 1)));
        assert!(
            complete(&both, &[])
                .unwrap_err()
                .contains("contain overlapping certificates")
        );
    }
}
