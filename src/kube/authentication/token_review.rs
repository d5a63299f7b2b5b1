//! TokenReview: whom a token stands for.

use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_server::registry::{Answer, Call, Handler, Reply};

use super::user_info;
use crate::api::authentication_k8s_io::v1::TokenReview;
use crate::kube::typed::body;

pub struct Review;

impl Handler for Review {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(std::future::ready(review(call, object)))
    }

    fn needs_namespace(&self) -> bool {
        false
    }
}

fn review(call: &Call<'_>, object: Box<dyn Kind>) -> Result<Reply, StatusError> {
    let mut review: TokenReview = *body(object)?;
    if review.spec.token.is_empty() {
        return Err(StatusError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    match call
        .authentication
        .token_holder(&review.spec.token, &review.spec.audiences)
    {
        Ok(Some(holder)) => {
            review.status.authenticated = true;
            review.status.user = user_info(&holder.user);
            review.status.audiences = holder.audiences;
        }
        Ok(None) => review.status.authenticated = false,
        Err(error) => {
            review.status.authenticated = false;
            review.status.error = error;
        }
    }
    Ok(Reply::Object(201, Box::new(review)))
}
