//! Questions about who somebody is.

mod self_subject_review;
mod token_review;

use keelson_access::user::User;
use keelson_api::authentication_k8s_io::v1::{SelfSubjectReview, TokenReview, UserInfo};
use keelson_registry::KindCode;

/// Registers what answers for these kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<SelfSubjectReview>().resource(self_subject_review::Review);
    code.kind::<TokenReview>().resource(token_review::Review);
}

/// A user as the API shows it.
fn user_info(user: &User) -> UserInfo {
    UserInfo {
        username: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
    }
}
