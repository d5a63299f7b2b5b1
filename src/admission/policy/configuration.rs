//! The configuration of the plug-ins for policies: a folder of policies, which this server takes none from.

use keelson_api::apiserver_config_k8s_io::v1::{
    MutatingAdmissionPolicyConfiguration, ValidatingAdmissionPolicyConfiguration,
};
use keelson_configuration::{ConfigurationError, Known};

use crate::manifests::{ManifestsForbidden, forbid};

const VERSIONS: &[&str] = &["apiserver.config.k8s.io/v1"];
const VALIDATING: Known = Known {
    kind: "ValidatingAdmissionPolicyConfiguration",
    versions: VERSIONS,
};
const MUTATING: Known = Known {
    kind: "MutatingAdmissionPolicyConfiguration",
    versions: VERSIONS,
};

/// What is wrong with the section, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum PolicyConfigurationError {
    /// It is of another kind, or has fields that are wrong or unknown.
    #[error(transparent)]
    File(#[from] ConfigurationError),
    #[error(transparent)]
    Manifests(#[from] ManifestsForbidden),
}

/// Reads the section of ValidatingAdmissionPolicy; `None`: there is none.
///
/// # Errors
/// It is of another kind, or asks for what there is not.
pub(super) fn validating(text: Option<&str>) -> Result<(), PolicyConfigurationError> {
    let Some(text) = text else { return Ok(()) };
    let given: ValidatingAdmissionPolicyConfiguration = keelson_configuration::read(text.as_bytes(), &[VALIDATING])?;
    Ok(forbid(&given.static_manifests_dir)?)
}

/// The same of MutatingAdmissionPolicy.
///
/// # Errors
/// As [`validating`].
pub(super) fn mutating(text: Option<&str>) -> Result<(), PolicyConfigurationError> {
    let Some(text) = text else { return Ok(()) };
    let given: MutatingAdmissionPolicyConfiguration = keelson_configuration::read(text.as_bytes(), &[MUTATING])?;
    Ok(forbid(&given.static_manifests_dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_name_their_kind_and_no_folder() {
        type Read = fn(Option<&str>) -> Result<(), PolicyConfigurationError>;
        for (read, kind, other) in [
            (validating as Read, VALIDATING.kind, MUTATING.kind),
            (mutating as Read, MUTATING.kind, VALIDATING.kind),
        ] {
            let of = |kind: &str, rest: &str| {
                let text = format!(r#"{{"kind":"{kind}","apiVersion":"{}"{rest}}}"#, VERSIONS[0]);
                read(Some(&text)).map_err(|error| error.to_string())
            };
            assert_eq!(of(kind, ""), Ok(()));
            assert_eq!(of(kind, r#","staticManifestsDir":"""#), Ok(()));
            let folder = of(kind, r#","staticManifestsDir":"/a""#).unwrap_err();
            assert!(folder.starts_with("staticManifestsDir: Forbidden: "), "{folder}");
            assert!(of(other, "").is_err() && of(kind, r#","x":1"#).is_err());
            assert!(read(None).is_ok());
        }
    }
}
