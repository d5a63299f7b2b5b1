//! Issuers of OpenID Connect: one by flags, or several by a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keelson_access::authn::Anonymous;
use keelson_access::authn::jwt::Algorithm;
use keelson_access::authn::oidc::{ClaimRule, Mapping, OidcSettings};
use keelson_access::authn::structured::AuthenticationConfiguration;
use keelson_net::client::Way;

use super::SECTION;
use crate::{OptionError, pem};

const FILE: &str = "--authentication-config";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Oidc {
    /// A file of kind AuthenticationConfiguration (apiserver.config.k8s.io): issuers whose tokens are believed, what
    /// their claims mean, which anonymous requests are taken. It is looked at again when it changes. Takes the place of
    /// --oidc-* and --anonymous-auth.
    #[arg(long, value_name = "string")]
    pub authentication_config: Option<PathBuf>,

    /// The issuer of OpenID Connect tokens, a URL of https.
    #[arg(long, value_name = "string", default_value = "", hide_default_value = true)]
    pub oidc_issuer_url: String,

    /// The audience that its tokens must have.
    #[arg(long, value_name = "string", default_value = "", hide_default_value = true)]
    pub oidc_client_id: String,

    /// A PEM file of the authorities of the issuer's server, read again when it changes. Default: those of the machine.
    #[arg(long, value_name = "string")]
    pub oidc_ca_file: Option<PathBuf>,

    /// The claim that is the user's name. All but email are prefixed with the issuer, unless --oidc-username-prefix
    /// says otherwise.
    #[arg(long, value_name = "string", default_value = "sub")]
    pub oidc_username_claim: String,

    /// What precedes the names of users; - for nothing.
    #[arg(long, value_name = "string", default_value = "", hide_default_value = true)]
    pub oidc_username_prefix: String,

    /// The claim that holds the user's groups, a text or a list of texts.
    #[arg(long, value_name = "string", default_value = "", hide_default_value = true)]
    pub oidc_groups_claim: String,

    /// What precedes the names of groups.
    #[arg(long, value_name = "string", default_value = "", hide_default_value = true)]
    pub oidc_groups_prefix: String,

    /// The algorithms by which tokens may be signed, with commas between.
    #[arg(long, value_name = "strings", value_delimiter = ',', default_value = "RS256")]
    pub oidc_signing_algs: Vec<String>,

    /// A claim that tokens must have, and its value, as KEY=VALUE. May be given several times.
    #[arg(long, value_name = "mapStringString", value_delimiter = ',')]
    pub oidc_required_claim: Vec<String>,
}

/// Whose tokens are believed.
#[derive(Clone, Debug, Default)]
pub struct Issuers {
    pub settings: Vec<OidcSettings>,
    /// The file that says so, and its text.
    pub file: Option<(PathBuf, String)>,
    /// The file of the authorities of the one issuer that flags describe.
    pub authorities_file: Option<PathBuf>,
    /// Which anonymous requests are taken, if the file says it.
    pub anonymous: Option<Anonymous>,
}

impl Oidc {
    /// `taken`: the issuers of this server's own tokens. `anonymous`: the value of --anonymous-auth, if it was given.
    pub(crate) fn complete(&self, taken: &[String], anonymous: Option<bool>) -> Result<Issuers, OptionError> {
        let file = self.authentication_config.as_ref();
        let Some(path) = file.filter(|path| !path.as_os_str().is_empty()) else {
            return self.by_flags(taken);
        };
        if self.is_given() {
            return Err(OptionError::flag(FILE, "file and oidc-* flags are mutually exclusive"));
        }
        let text = pem::read(FILE, path)?;
        let read = AuthenticationConfiguration::read(text.as_bytes(), taken);
        let read = read.map_err(|reason| OptionError::file(FILE, path, reason))?;
        if read.anonymous.is_some() && anonymous.is_some() {
            let reason = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in \
                          authentication configuration file";
            return Err(OptionError::flag(FILE, reason));
        }
        Ok(Issuers {
            settings: read.issuers,
            file: Some((path.clone(), text)),
            anonymous: read.anonymous,
            authorities_file: None,
        })
    }

    fn is_given(&self) -> bool {
        let texts = [
            &self.oidc_issuer_url,
            &self.oidc_client_id,
            &self.oidc_username_prefix,
            &self.oidc_groups_claim,
            &self.oidc_groups_prefix,
        ];
        texts.iter().any(|text| !text.is_empty())
            || self.oidc_ca_file.is_some()
            || self.oidc_username_claim != "sub"
            || self.oidc_signing_algs != ["RS256"]
            || !self.oidc_required_claim.is_empty()
    }

    fn by_flags(&self, taken: &[String]) -> Result<Issuers, OptionError> {
        if !self.is_given() {
            return Ok(Issuers::default());
        }
        let (url, client) = (&self.oidc_issuer_url, &self.oidc_client_id);
        let wrong = |reason: String| OptionError::flag("--oidc-issuer-url", reason);
        if url.is_empty() || client.is_empty() {
            let reason = "and --oidc-client-id must be specified together when any oidc-* flags are set";
            return Err(wrong(reason.to_owned()));
        }
        if !url.starts_with("https://") {
            return Err(wrong(format!("Invalid value: {url:?}: URL scheme must be https")));
        }
        if taken.contains(url) {
            let reason = format!("Invalid value: {url:?}: URL must not overlap with disallowed issuers: {taken:?}");
            return Err(wrong(reason));
        }
        if self.oidc_username_claim.is_empty() {
            return Err(OptionError::flag(
                "--oidc-username-claim",
                "claim or expression is required",
            ));
        }
        let authorities_file = self.oidc_ca_file.clone().filter(|path| !path.as_os_str().is_empty());
        let authorities = authorities_file.as_deref().map(read_authorities).transpose()?;
        let groups = Some(&self.oidc_groups_claim).filter(|claim| !claim.is_empty());
        let settings = OidcSettings {
            url: url.clone(),
            discovery_url: None,
            authorities,
            way: Way::Direct,
            audiences: vec![client.clone()],
            algorithms: self.algorithms()?,
            claim_rules: self.required()?,
            username: Mapping::Claim {
                name: self.oidc_username_claim.clone(),
                prefix: self.username_prefix(),
            },
            groups: groups.map(|name| Mapping::Claim {
                name: name.clone(),
                prefix: self.oidc_groups_prefix.clone(),
            }),
            uid: None,
            extra: Vec::new(),
            user_rules: Vec::new(),
        };
        Ok(Issuers {
            settings: vec![settings],
            authorities_file,
            ..Issuers::default()
        })
    }

    fn username_prefix(&self) -> String {
        match (self.oidc_username_prefix.as_str(), self.oidc_username_claim.as_str()) {
            ("-", _) | ("", "email") => String::new(),
            ("", _) => format!("{}#", self.oidc_issuer_url),
            (given, _) => given.to_owned(),
        }
    }

    fn algorithms(&self) -> Result<Vec<Algorithm>, OptionError> {
        let known = |name: &String| {
            Algorithm::named(name).ok_or_else(|| {
                OptionError::flag(
                    "--oidc-signing-algs",
                    format!("oidc: unsupported signing alg: {name:?}"),
                )
            })
        };
        self.oidc_signing_algs.iter().map(known).collect()
    }

    fn required(&self) -> Result<Vec<ClaimRule>, OptionError> {
        let mut claims = BTreeMap::new();
        for pair in &self.oidc_required_claim {
            let (claim, value) = pair.split_once('=').ok_or_else(|| {
                let reason = format!("{pair:?} is malformed, expect string=string");
                OptionError::flag("--oidc-required-claim", reason)
            })?;
            claims.insert(claim.trim().to_owned(), value.trim().to_owned());
        }
        let rule = |(claim, value)| ClaimRule::Required { claim, value };
        Ok(claims.into_iter().map(rule).collect())
    }
}

/// The PEM text of a file of authorities.
pub fn read_authorities(path: &Path) -> Result<String, OptionError> {
    pem::check("--oidc-ca-file", path, false)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        flags: Oidc,
    }

    fn complete(line: &str) -> Result<Issuers, String> {
        let flags = Flags::try_parse_from(std::iter::once("x").chain(line.split(' ')))
            .unwrap()
            .flags;
        flags
            .complete(&["https://own".to_owned()], None)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_describe_one_issuer() {
        let line = "--oidc-issuer-url=https://a --oidc-client-id=c --oidc-groups-claim=g --oidc-required-claim=x=1,y=2";
        let issuers = complete(line).unwrap();
        let [one] = &issuers.settings[..] else {
            panic!("{issuers:?}")
        };
        assert!(matches!(&one.username, Mapping::Claim { name, prefix } if name == "sub" && prefix == "https://a#"));
        assert_eq!(
            (one.claim_rules.len(), one.audiences.as_slice()),
            (2, &["c".to_owned()][..])
        );
        let prefix = |line: &str| match &complete(line).unwrap().settings[0].username {
            Mapping::Claim { prefix, .. } => prefix.clone(),
            Mapping::Expression(_) => panic!("no expression"),
        };
        let base = "--oidc-issuer-url=https://a --oidc-client-id=c";
        assert_eq!(prefix(&format!("{base} --oidc-username-claim=email")), "");
        assert_eq!(prefix(&format!("{base} --oidc-username-prefix=-")), "");
        assert_eq!(prefix(&format!("{base} --oidc-username-prefix=o:")), "o:");
    }

    #[test]
    fn flags_that_do_not_go_together_are_told() {
        let base = "--oidc-issuer-url=https://a --oidc-client-id=c";
        for (line, want) in [
            (
                "--oidc-client-id=c".to_owned(),
                "must be specified together when any oidc-* flags are set",
            ),
            (
                "--oidc-issuer-url=http://a --oidc-client-id=c".to_owned(),
                "URL scheme must be https",
            ),
            (
                "--oidc-issuer-url=https://own --oidc-client-id=c".to_owned(),
                "disallowed issuers",
            ),
            (
                format!("{base} --oidc-signing-algs=RS256,HS256"),
                "unsupported signing alg: \"HS256\"",
            ),
            (
                format!("{base} --oidc-required-claim=x"),
                "malformed, expect string=string",
            ),
            (format!("{base} --authentication-config=/x"), "mutually exclusive"),
            ("--authentication-config=/nonexistent/x".to_owned(), "No such file"),
        ] {
            let error = complete(&line).unwrap_err();
            assert!(error.contains(want), "{line}: {error}");
        }
        assert!(
            Flags::try_parse_from(["x"])
                .unwrap()
                .flags
                .complete(&[], None)
                .unwrap()
                .settings
                .is_empty()
        );
    }
}
