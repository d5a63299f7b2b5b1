//! Parameters: the objects that a binding hands to the expressions of its policy.

use keelson_api::admissionregistration_k8s_io::v1::{ParamKind, ParamRef};
use keelson_machinery::object::Object;
use keelson_machinery::selector::LabelSelector;
use keelson_machinery::selector::label::SelectorError;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;
use keelson_registry::{Endpoint, Lister, NamespacedName};
use std::sync::Arc;

/// One parameter; `None`: the policy is evaluated without.
pub(super) type Param = Option<Box<dyn Object>>;

/// Why there are no parameters, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamError {
    /// Nobody serves their kind.
    #[error("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")]
    Kind {
        group: String,
        version: String,
        kind: String,
    },
    #[error("one of name or selector must be provided")]
    Nothing,
    #[error("paramRef.name and paramRef.selector are mutually exclusive")]
    Both,
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    Namespace,
    #[error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")]
    NoNamespace,
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// They can't be read.
    #[error(transparent)]
    Read(#[from] StatusError),
}

/// Where the parameters of a policy are served.
///
/// # Errors
/// Nowhere.
pub(super) fn endpoint(attributes: &Attributes<'_>, kind: &ParamKind) -> Result<Arc<Endpoint>, ParamError> {
    let (group, version) = match kind.api_version.split_once('/') {
        Some(parts) => parts,
        None => ("", kind.api_version.as_str()),
    };
    let found = attributes.registry().and_then(|registry| {
        let plural = registry.plural_of(group, version, &kind.kind)?;
        registry.lookup(group, version, &plural)
    });
    found.ok_or_else(|| ParamError::Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.kind.clone(),
    })
}

/// The parameters that a binding names, in the version of their kind. `None` as endpoint: the policy has none.
///
/// # Errors
/// What it names can't be had, or must be there and is not.
pub(super) async fn collect(
    attributes: &Attributes<'_>,
    endpoint: Option<&Endpoint>,
    reference: Option<&ParamRef>,
) -> Result<Vec<Param>, ParamError> {
    let (Some(endpoint), Some(reference)) = (endpoint, reference) else {
        return Ok(vec![None]);
    };
    let namespace = namespace(attributes, endpoint, reference)?;
    let found = match (reference.name.as_str(), &reference.selector) {
        ("", None) => return Err(ParamError::Nothing),
        ("", Some(selector)) => {
            let selector = LabelSelector::from_message(Some(selector))?;
            lister(endpoint).select(namespace, &selector).await?
        }
        (_, Some(_)) => return Err(ParamError::Both),
        (name, None) => {
            let key = NamespacedName {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            lister(endpoint).get(&key).await?.into_iter().collect()
        }
    };
    if found.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
        return Err(ParamError::NotFound);
    }
    let mut params = Vec::with_capacity(found.len());
    for object in found {
        let resource = &endpoint.resource;
        let shown = resource.converted(object, &resource.hub, &endpoint.kind).await;
        params.push(Some(shown?));
    }
    Ok(params)
}

fn lister(endpoint: &Endpoint) -> Lister {
    Lister::new(endpoint.resource.clone())
}

/// The namespace of the parameters: that of the request, unless the binding names one.
fn namespace<'a>(
    attributes: &'a Attributes<'_>,
    endpoint: &Endpoint,
    reference: &'a ParamRef,
) -> Result<&'a str, ParamError> {
    let own = attributes.requested_namespace();
    match (endpoint.kind.namespaced, reference.namespace.as_str(), own) {
        (false, "", _) => Ok(""),
        (false, ..) => Err(ParamError::Namespace),
        (true, "", "") => Err(ParamError::NoNamespace),
        (true, "", own) => Ok(own),
        (true, named, _) => Ok(named),
    }
}
