//! The file of ResourceQuota: resources that may be used only where a quota says so.

use keelson_api::apiserver_config_k8s_io::v1::ResourceQuotaConfiguration;
use keelson_api::core::v1::ScopedResourceSelectorRequirement as Selector;
use keelson_configuration::{ConfigurationError, Known};

/// A resource that is limited.
#[derive(Clone)]
pub struct LimitedResource {
    /// "" for the legacy group.
    pub group: String,
    /// `pods`.
    pub resource: String,
    /// Parts of the names of what may be used only where a quota says so.
    pub match_contains: Vec<String>,
    /// Scopes in which objects may be only where a quota says so.
    pub match_scopes: Vec<Selector>,
}

/// The name of the kind, and that of former versions.
const KNOWN: [Known; 2] = [
    Known {
        kind: "ResourceQuotaConfiguration",
        versions: &["apiserver.config.k8s.io/v1"],
    },
    Known {
        kind: "Configuration",
        versions: &[
            "resourcequota.admission.k8s.io/v1",
            "resourcequota.admission.k8s.io/v1beta1",
            "resourcequota.admission.k8s.io/v1alpha1",
        ],
    },
];

/// What is wrong with the file, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitedResourcesError {
    /// It is of another kind, or has fields that are wrong or unknown.
    #[error(transparent)]
    File(#[from] ConfigurationError),
    /// A limit says not of what.
    #[error("limitedResources[{place}].resource: Required value")]
    Resource { place: usize },
}

/// Reads the configuration; `None`: there is none, and nothing is limited.
///
/// # Errors
/// It is of another kind, or has mistakes.
pub fn read(text: Option<&str>) -> Result<Vec<LimitedResource>, LimitedResourcesError> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let given: ResourceQuotaConfiguration = keelson_configuration::read(text.as_bytes(), &KNOWN)?;
    let limited = given.limited_resources.into_iter().enumerate();
    limited
        .map(|(place, one)| match one.resource.as_str() {
            "" => Err(LimitedResourcesError::Resource { place }),
            _ => Ok(LimitedResource {
                group: one.api_group,
                resource: one.resource,
                match_contains: one.match_contains,
                match_scopes: one.match_scopes,
            }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_strictly() {
        let of = |limits: &str| {
            let kind = r#""apiVersion":"apiserver.config.k8s.io/v1","kind":"ResourceQuotaConfiguration""#;
            read(Some(&format!(r#"{{{kind},"limitedResources":[{limits}]}}"#)))
        };
        let read_one = of(r#"{"apiGroup":"","resource":"pods","matchContains":["cpu"],
                "matchScopes":[{"scopeName":"PriorityClass","operator":"In","values":["high"]}]}"#);
        let one = read_one.unwrap().remove(0);
        assert_eq!((one.resource.as_str(), one.match_contains.len()), ("pods", 1));
        assert_eq!(
            (one.match_scopes[0].operator.as_str(), one.match_scopes[0].values.len()),
            ("In", 1)
        );
        let fault = |limits: &str| of(limits).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(fault("{}"), "limitedResources[0].resource: Required value");
        assert_eq!(
            fault(r#"{"resource":"pods","match":1}"#),
            "strict decoding error: unknown field \"limitedResources[0].match\""
        );
        let old = r#"{"apiVersion":"resourcequota.admission.k8s.io/v1beta1","kind":"Configuration"}"#;
        assert!(read(Some(old)).is_ok_and(|all| all.is_empty()) && read(None).is_ok());
        assert!(read(Some(r#"{"apiVersion":"v1","kind":"Configuration"}"#)).is_err());
    }
}
