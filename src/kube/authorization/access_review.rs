//! SelfSubjectAccessReview, SubjectAccessReview and LocalSubjectAccessReview: whether somebody may do one thing.

use keelson_access::user::User;
use keelson_api::authorization_k8s_io::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SubjectAccessReview, SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
};
use keelson_machinery::field::ErrorList;
use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_registry::{Answer, Call, Handler, Reply};

use super::attributes::Question;
use super::{GROUP, validate};
use crate::typed::body;

/// Of the sender of the request.
pub struct OfSender;
/// Of any user and groups.
pub struct OfAnybody;
/// The same within the namespace of the path, which those may ask who hold permissions only there.
pub struct OfNamespace;

impl Handler for OfSender {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(of_sender(call, object))
    }

    fn needs_namespace(&self) -> bool {
        false
    }
}

impl Handler for OfAnybody {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(of_anybody(call, object))
    }

    fn needs_namespace(&self) -> bool {
        false
    }
}

impl Handler for OfNamespace {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(of_namespace(call, object))
    }

    fn needs_namespace(&self) -> bool {
        false
    }
}

async fn of_sender(call: &Call<'_>, object: Box<dyn Kind>) -> Result<Reply, StatusError> {
    let mut review: SelfSubjectAccessReview = *body(object)?;
    let spec = &review.spec;
    let (resource, path) = (
        spec.resource_attributes.as_deref(),
        spec.non_resource_attributes.as_deref(),
    );
    let mut errors = validate::attributes(resource, path);
    errors.extend(validate::metadata(&review.metadata, ""));
    verdict(errors)?;
    review.status = decide(call, &call.context.user, &Question::new(resource, path)?).await;
    Ok(Reply::Object(201, Box::new(review)))
}

async fn of_anybody(call: &Call<'_>, object: Box<dyn Kind>) -> Result<Reply, StatusError> {
    let mut review: SubjectAccessReview = *body(object)?;
    let mut errors = validate::subject(&review.spec);
    errors.extend(validate::metadata(&review.metadata, ""));
    verdict(errors)?;
    review.status = of_subject(call, &review.spec).await?;
    Ok(Reply::Object(201, Box::new(review)))
}

async fn of_namespace(call: &Call<'_>, object: Box<dyn Kind>) -> Result<Reply, StatusError> {
    let mut review: LocalSubjectAccessReview = *body(object)?;
    let mut errors = validate::subject(&review.spec);
    errors.extend(validate::metadata(&review.metadata, &review.metadata.namespace));
    errors.extend(validate::within(&review.spec, &review.metadata.namespace));
    verdict(errors)?;
    review.status = of_subject(call, &review.spec).await?;
    Ok(Reply::Object(201, Box::new(review)))
}

/// Reviews are refused under no kind's name.
fn verdict(errors: ErrorList) -> Result<(), StatusError> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(StatusError::invalid(GROUP, "", "", &errors)),
    }
}

async fn of_subject(call: &Call<'_>, spec: &SubjectAccessReviewSpec) -> Result<SubjectAccessReviewStatus, StatusError> {
    let user = User {
        name: spec.user.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone(),
        extra: spec.extra.clone(),
    };
    let question = Question::new(
        spec.resource_attributes.as_deref(),
        spec.non_resource_attributes.as_deref(),
    )?;
    Ok(decide(call, &user, &question).await)
}

async fn decide(call: &Call<'_>, user: &User, question: &Question) -> SubjectAccessReviewStatus {
    let verdict = call.authorization.decide(user, &question.info).await;
    let doubts = question.doubts.iter().map(String::as_str);
    let errors: Vec<&str> = verdict.error.as_deref().into_iter().chain(doubts).collect();
    SubjectAccessReviewStatus {
        allowed: verdict.allowed,
        denied: verdict.denied,
        reason: verdict.reason,
        evaluation_error: errors.join("; "),
    }
}
