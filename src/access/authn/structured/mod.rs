//! The file that says which tokens and which anonymous requests are believed: AuthenticationConfiguration.

mod file;
mod issuer;
mod mappings;
#[cfg(test)]
mod tests;

use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::yaml;

use super::Anonymous;
use super::oidc::OidcSettings;
use file::File;

/// Issuers that a file may have.
const MAX_ISSUERS: usize = 64;
const GROUP: &str = "apiserver.config.k8s.io/";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const KIND: &str = "AuthenticationConfiguration";

/// What a file says, checked.
#[derive(Clone, Debug)]
pub struct AuthenticationConfiguration {
    pub issuers: Vec<OidcSettings>,
    /// `None`: the file says nothing about it.
    pub anonymous: Option<Anonymous>,
}

impl AuthenticationConfiguration {
    /// Reads and checks the text of a file, its expressions included. `taken`: issuers that nobody else may be, those of
    /// this server.
    ///
    /// # Errors
    /// All that is wrong, in kube-apiserver's words.
    pub fn read(text: &[u8], taken: &[String]) -> Result<AuthenticationConfiguration, String> {
        let file =
            decode(text).map_err(|why| format!("failed to load authentication configuration from file: {why}"))?;
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
            configuration
                .issuers
                .extend(jwt.settle(&path, &mut seen, taken, &mut errors));
        }
        if let Some(anonymous) = file.anonymous {
            configuration.anonymous = Some(anonymous.settle(&mut errors));
        }
        match errors.into_result() {
            Ok(()) => Ok(configuration),
            Err(errors) => Err(format!("invalid authentication configuration: {errors}")),
        }
    }
}

/// The file, whose fields are all known and named once.
fn decode(text: &[u8]) -> Result<File, String> {
    let (json, repeated) = yaml::to_json_strict(text).map_err(|error| error.to_string())?;
    if json == b"null" {
        return Err("empty config data".to_owned());
    }
    if let Some(repeated) = repeated {
        return Err(format!("strict decoding error: {repeated}"));
    }
    let file: File = serde_json::from_slice(&json)
        .map_err(|error| format!("strict decoding error: {}", first_part(&error.to_string())))?;
    let version = file.api_version.strip_prefix(GROUP);
    if file.kind != KIND || !version.is_some_and(|version| VERSIONS.contains(&version)) {
        return Err(format!(
            "no kind {:?} is registered for version {:?}",
            file.kind, file.api_version
        ));
    }
    Ok(file)
}

/// Without the place in the JSON text, which nobody sees, and the list of what is known.
fn first_part(error: &str) -> String {
    let end = error
        .find(", expected one of")
        .or_else(|| error.find(" at line "))
        .unwrap_or(error.len());
    error.get(..end).unwrap_or(error).replace('`', "\"")
}
