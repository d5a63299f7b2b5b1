//! SelfSubjectReview: who the sender of the request is.

use keelson_api::authentication_k8s_io::v1::SelfSubjectReview;
use keelson_machinery::object::Kind;
use keelson_registry::{Answer, Call, Handler, Reply};

use super::user_info;

pub struct Review;

impl Handler for Review {
    fn create<'a>(&'a self, call: &'a Call<'a>, _object: Box<dyn Kind>) -> Answer<'a, Reply> {
        let mut review = SelfSubjectReview::default();
        review.metadata.creation_timestamp = call.context.now.truncate_to_seconds();
        review.status.user_info = user_info(&call.context.user);
        Box::pin(std::future::ready(Ok(Reply::Object(201, Box::new(review)))))
    }

    fn needs_namespace(&self) -> bool {
        false
    }
}
