//! Questions about what somebody may do.

mod access_review;
mod attributes;
mod rules_review;
mod validate;

use keelson_server::registry::KindCode;

const GROUP: &str = "authorization.k8s.io";

/// Registers what answers for these kinds.
pub fn register(code: &mut KindCode) {
    code.resource(GROUP, "localsubjectaccessreviews", access_review::OfNamespace);
    code.resource(GROUP, "selfsubjectaccessreviews", access_review::OfSender);
    code.resource(GROUP, "selfsubjectrulesreviews", rules_review::Review);
    code.resource(GROUP, "subjectaccessreviews", access_review::OfAnybody);
}
