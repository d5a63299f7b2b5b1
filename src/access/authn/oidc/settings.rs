//! OIDC settings: the issuer that is believed, and what its claims mean.

use std::sync::Arc;

use keelson_machinery::cel::Program;
use keelson_net::client::Way;

use super::id_token::UnfitToken;
use crate::authn::jwt::Algorithm;

/// An issuer.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// What tokens say in `iss`.
    pub url: String,
    /// Where its configuration is; `None`: where the standard says, below its URL.
    pub discovery_url: Option<String>,
    /// PEM text of the authorities of its server; `None`: those of the machine.
    pub authorities: Option<String>,
    /// How connections to its server, and to whom its tokens name, are made.
    pub way: Way,
    /// A token must be for one of these.
    pub audiences: Vec<String>,
    /// How tokens may be signed.
    pub algorithms: Vec<Algorithm>,
    pub claim_rules: Vec<ClaimRule>,
    pub username: Mapping,
    pub groups: Option<Mapping>,
    pub uid: Option<Mapping>,
    /// Keys and what their values come from.
    pub extra: Vec<(String, Arc<Program>)>,
    pub user_rules: Vec<Rule>,
}

/// What a token must have.
#[derive(Clone, Debug)]
pub enum ClaimRule {
    /// This claim with this value.
    Required {
        claim: String,
        value: String,
    },
    Holds(Rule),
}

/// An expression that must be true.
#[derive(Clone, Debug)]
pub struct Rule {
    pub program: Arc<Program>,
    pub message: String,
}

/// Where something about the user comes from.
#[derive(Clone, Debug)]
pub enum Mapping {
    /// From a claim; what it says follows the prefix.
    Claim {
        name: String,
        prefix: String,
    },
    Expression(Arc<Program>),
}

impl OidcSettings {
    pub(super) fn check_algorithm(&self, name: &str) -> Result<(), UnfitToken> {
        let is = |algorithm: &Algorithm| Algorithm::named(name).is_some_and(|given| given == *algorithm);
        if self.algorithms.iter().any(is) {
            return Ok(());
        }
        let mut names: Vec<&str> = Algorithm::ALL
            .iter()
            .filter(|(_, algorithm)| self.algorithms.contains(algorithm))
            .map(|(name, _)| *name)
            .collect();
        names.sort_unstable();
        Err(UnfitToken::Algorithm {
            wanted: names,
            got: name.to_owned(),
        })
    }
}
