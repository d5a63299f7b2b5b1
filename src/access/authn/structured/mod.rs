//! AuthenticationConfiguration: the file that says which tokens and which anonymous requests are believed.

mod anonymous;
mod issuer;
mod mappings;
#[cfg(test)]
mod tests;

use keelson_configuration::apiserver_config_k8s_io::v1;
use keelson_configuration::{ConfigurationError, Known};
use keelson_machinery::field::{ErrorList, FieldError, Path};

use super::Anonymous;
use super::oidc::OidcSettings;

/// Issuers that a file may have.
const MAX_ISSUERS: usize = 64;
const KNOWN: Known = Known {
    kind: "AuthenticationConfiguration",
    versions: &[
        "apiserver.config.k8s.io/v1",
        "apiserver.config.k8s.io/v1beta1",
        "apiserver.config.k8s.io/v1alpha1",
    ],
};

/// What a file says, checked.
#[derive(Clone, Debug)]
pub struct AuthenticationConfiguration {
    pub issuers: Vec<OidcSettings>,
    /// `None`: the file says nothing about it.
    pub anonymous: Option<Anonymous>,
}

/// What is wrong with the file, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthenticationConfigurationError {
    /// It is not of this kind, or has fields that are wrong or unknown.
    #[error("failed to load authentication configuration from file: {0}")]
    File(#[from] ConfigurationError),
    #[error("failed to load authentication configuration from file: empty config data")]
    Empty,
    /// Values that make no sense.
    #[error("invalid authentication configuration: {0}")]
    Invalid(#[from] ErrorList),
}

impl AuthenticationConfiguration {
    /// Reads and checks the text of a file, its expressions included. `taken`: issuers that nobody else may be, those
    /// of this server.
    ///
    /// # Errors
    /// All that [`AuthenticationConfigurationError`] has.
    pub fn read(
        text: &[u8],
        taken: &[String],
    ) -> Result<AuthenticationConfiguration, AuthenticationConfigurationError> {
        if text.is_empty() {
            return Err(AuthenticationConfigurationError::Empty);
        }
        let file: v1::AuthenticationConfiguration = keelson_configuration::read(text, &[KNOWN])?;
        let mut errors = ErrorList::new();
        let mut configuration = AuthenticationConfiguration {
            issuers: Vec::new(),
            anonymous: None,
        };
        let root = Path::new("jwt");
        if file.jwt.len() > MAX_ISSUERS {
            errors.push(FieldError::too_many(&root, file.jwt.len(), MAX_ISSUERS));
        }
        let mut seen = issuer::Seen::default();
        for (n, jwt) in file.jwt.into_iter().take(MAX_ISSUERS).enumerate() {
            let path = root.index(n);
            let settings = issuer::complete(jwt, &path, &mut seen, taken, &mut errors);
            configuration.issuers.extend(settings);
        }
        if let Some(anonymous) = file.anonymous {
            configuration.anonymous = Some(anonymous::complete(*anonymous, &mut errors));
        }
        errors.into_result()?;
        Ok(configuration)
    }
}
