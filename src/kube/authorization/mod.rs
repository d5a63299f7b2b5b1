//! Questions about what somebody may do.

mod access_review;
mod attributes;
mod rules_review;
mod validate;

use keelson_api::authorization_k8s_io::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
use keelson_registry::KindCode;

const GROUP: &str = "authorization.k8s.io";

/// Registers what answers for these kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<LocalSubjectAccessReview>()
        .resource(access_review::OfNamespace);
    code.kind::<SelfSubjectAccessReview>().resource(access_review::OfSender);
    code.kind::<SelfSubjectRulesReview>().resource(rules_review::Review);
    code.kind::<SubjectAccessReview>().resource(access_review::OfAnybody);
}
