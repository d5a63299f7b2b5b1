//! Lookup of single objects for plug-ins: out of the store's memory, and of the store where that does not say.

use keelson_api::core::v1::Namespace;
use keelson_machinery::field::text::quote;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_machinery::validation::names;
use keelson_registry::admission::Attributes;
use keelson_registry::{Lister, NamespacedName};

/// One object; `None`: there is none, or the server has no such resource, or no object can have the name.
///
/// # Errors
/// The store can't be read.
pub async fn find<T: Reflect + Clone>(
    attributes: &Attributes<'_>,
    (group, plural): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<T>, StatusError> {
    let resource = attributes.registry().and_then(|all| all.resource(group, plural));
    let Some(resource) = resource.filter(|_| !name.is_empty() && names::path_segment(name).is_empty()) else {
        return Ok(None);
    };
    let key = NamespacedName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Lister::new(resource).typed::<T>().get(&key).await
}

/// What Go's client says of a name before it asks kube-apiserver: plug-ins use it for what their listers do not know.
///
/// # Errors
/// The name does not fit into a path.
pub fn askable(name: &str) -> Result<(), StatusError> {
    if name.is_empty() {
        return Err(StatusError::unknown("resource name may not be empty"));
    }
    let faults = names::path_segment(name);
    if faults.is_empty() {
        return Ok(());
    }
    let faults = faults.join(" ");
    let text = format!("invalid resource name {}: [{faults}]", quote(name));
    Err(StatusError::unknown(text))
}

/// As [`find`]; 404 where there is none.
///
/// # Errors
/// Also that the store can't be read.
pub async fn get<T: Reflect + Clone>(
    attributes: &Attributes<'_>,
    (group, plural): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<T, StatusError> {
    let found = find(attributes, (group, plural), namespace, name).await?;
    found.ok_or_else(|| StatusError::not_found(group, plural, name))
}

/// The namespace of a request.
///
/// # Errors
/// 404 where there is none; what keeps the server from finding out is a 500.
pub async fn namespace(attributes: &Attributes<'_>) -> Result<Namespace, StatusError> {
    let name = attributes.namespace();
    let found = find(attributes, ("", "namespaces"), "", name).await;
    let found = found.map_err(|error| StatusError::internal_error(error.message))?;
    found.ok_or_else(|| StatusError::not_found("", "namespaces", name))
}
