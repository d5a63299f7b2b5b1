//! Signers: who approves, signs or vouches for anything in the name of one needs a right to that name, whatever may be
//! done to the objects. The plug-ins that see to it are in [`crate::admission`].

use keelson_access::request_info::RequestInfo;
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::Context;
use keelson_registry::admission::{Attributes, Scope};

pub const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

/// Whether this is something of requests for certificates.
pub fn is_request(scope: &Scope<'_>) -> bool {
    (scope.group, scope.plural) == (GROUP, REQUESTS)
}

/// Refuses what may be done to a request for a certificate only by who may act for its signer. `verb`: `approve`,
/// `sign`.
pub async fn check(attributes: &Attributes<'_>, verb: &str, signer: &str) -> Result<(), StatusError> {
    if may(attributes.context, verb, signer).await {
        return Ok(());
    }
    let why = format!(
        "user not permitted to {verb} requests with signerName {}",
        quote(signer)
    );
    Err(refusal(attributes.name(), why))
}

/// 403 for a request of this name.
pub fn refusal(name: &str, why: String) -> StatusError {
    StatusError::forbidden(GROUP, REQUESTS, name, why)
}

/// Whether the sender may do this in the name of a signer, or of all of its domain.
pub async fn may(context: &Context, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let info = RequestInfo {
            is_resource: true,
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..RequestInfo::default()
        };
        if context.authorization.allows(&context.user, &info).await {
            return true;
        }
    }
    false
}
