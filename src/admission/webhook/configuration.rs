//! The configuration of the plug-ins that ask webhooks: as whom this server calls them.

use std::path::Path;

use keelson_api::apiserver_config_k8s_io::v1::WebhookAdmission;
use keelson_configuration::{ConfigurationError, Known};
use keelson_net::client::{KubeconfigError, Users};

use crate::manifests::{ManifestsForbidden, forbid};

const KNOWN: Known = Known {
    kind: "WebhookAdmissionConfiguration",
    versions: &["apiserver.config.k8s.io/v1"],
};

/// What is wrong with the section, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebhookAdmissionError {
    /// It is of another kind, or has fields that are wrong or unknown.
    #[error(transparent)]
    File(#[from] ConfigurationError),
    #[error(transparent)]
    Manifests(#[from] ManifestsForbidden),
    #[error("kubeConfigFile: Invalid value: {0:?}: must be an absolute file path")]
    Relative(String),
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
}

/// Reads the section of a plug-in: who this server is to webhooks.
///
/// # Errors
/// It is of another kind, or names what can't be used.
pub(super) fn users(text: Option<&str>) -> Result<Users, WebhookAdmissionError> {
    let Some(text) = text else {
        return Ok(Users::default());
    };
    let given: WebhookAdmission = keelson_configuration::read(text.as_bytes(), &[KNOWN])?;
    let file = Path::new(&given.kube_config_file);
    let is_said = !given.kube_config_file.is_empty();
    if is_said && !file.is_absolute() {
        return Err(WebhookAdmissionError::Relative(given.kube_config_file));
    }
    forbid(&given.static_manifests_dir)?;
    match is_said {
        true => Ok(Users::read(file)?),
        false => Ok(Users::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: &str = "apiserver.config.k8s.io/v1";

    #[test]
    fn mistakes_are_told() {
        let of = |kind: &str, version: &str, rest: &str| {
            let text = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\"{rest}}}");
            users(Some(&text))
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert_eq!(of(KNOWN.kind, VERSION, ""), "");
        assert_eq!(
            of("WebhookAdmission", VERSION, ""),
            format!("no kind \"WebhookAdmission\" is registered for version {VERSION:?}")
        );
        assert_eq!(
            of(KNOWN.kind, VERSION, r#","kubeConfigFile":"a""#),
            "kubeConfigFile: Invalid value: \"a\": must be an absolute file path"
        );
        assert!(of(KNOWN.kind, VERSION, r#","kubeConfigFile":"/nowhere""#).starts_with("/nowhere: "));
        assert!(of(KNOWN.kind, VERSION, r#","staticManifestsDir":"/a""#).starts_with("staticManifestsDir: Forbidden"));
        assert!(users(None).is_ok());
    }
}
