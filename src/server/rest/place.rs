//! Name and namespace of a body, which must agree with its path.

use keelson_machinery::status::StatusError;
use keelson_registry::Endpoint;
use keelson_registry::verbs::nameless;
use keelson_registry::write::OTHER_NAMESPACE;

use super::namespace;
use crate::request::Request;

/// The name of the body must be that of the path.
pub(super) fn check_name(name: &str, given: &str) -> Result<(), StatusError> {
    if given.is_empty() {
        return Err(nameless(name));
    }
    if given != name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// The namespace of the body must be that of the path, or empty.
pub(super) fn check_namespace(request: &Request, endpoint: &Endpoint, given: &str) -> Result<(), StatusError> {
    if endpoint.kind.namespaced && !given.is_empty() && given != namespace(request, endpoint) {
        return Err(StatusError::bad_request(OTHER_NAMESPACE));
    }
    Ok(())
}
