//! TokenReview: whom a token stands for.

use keelson_api::authentication_k8s_io::v1::{TokenReview, TokenReviewSpec};
use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_registry::{Answer, Call, Handler, Reply};

use super::user_info;
use crate::typed::body;

pub struct Review;

impl Handler for Review {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(review(call, object))
    }

    fn needs_namespace(&self) -> bool {
        false
    }
}

async fn review(call: &Call<'_>, object: Box<dyn Kind>) -> Result<Reply, StatusError> {
    let mut review: TokenReview = *body(object)?;
    if review.spec.token.is_empty() {
        return Err(StatusError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let TokenReviewSpec { token, audiences } = &review.spec;
    match call.authentication.review(token, audiences).await {
        Ok(identity) => {
            review.status.authenticated = true;
            review.status.user = user_info(&identity.user);
            review.status.audiences = match identity.audiences.as_slice() {
                // Who is anonymous has no audience; the original shows those that were asked for.
                [] if audiences.is_empty() => call.authentication.audiences.clone(),
                [] => audiences.clone(),
                own => own.to_vec(),
            };
        }
        Err(refusal) => {
            review.status.authenticated = false;
            review.status.error = refusal.to_string();
        }
    }
    Ok(Reply::Object(201, Box::new(review)))
}
