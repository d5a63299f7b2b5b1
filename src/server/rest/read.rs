//! GET of one object.

use actix_web::HttpResponse;
use keelson_machinery::status::StatusError;
use keelson_registry::Endpoint;

use super::options;
use super::{Rest, namespace};
use crate::negotiate::Offer;
use crate::request::Request;

impl Rest {
    /// Also of its status: a subresource that shows the whole object.
    pub(super) async fn get(&self, request: &Request, endpoint: &Endpoint) -> Result<HttpResponse, StatusError> {
        let accepted = request.negotiate(Offer::of_subresource(&request.info.subresource))?;
        if request.query.flag("export") {
            return Err(StatusError::bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported",
            ));
        }
        let wanted = request.query.get("resourceVersion").unwrap_or_default();
        // Go's apiserver has no better status for this than an error without a reason.
        let wanted = options::revision(wanted).map_err(StatusError::unknown)?;
        let namespace = namespace(request, endpoint);
        let entry = self
            .verbs
            .get(&endpoint.resource, namespace, &request.info.name, wanted)
            .await?;
        if let Some(response) = self.ready_object(request, endpoint, accepted, &entry)? {
            return Ok(response);
        }
        let object = endpoint.resource.decode(&entry)?;
        self.object_response(request, endpoint, accepted, 200, object)
    }
}
