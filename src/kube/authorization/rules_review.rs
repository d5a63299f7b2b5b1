//! SelfSubjectRulesReview: all that the sender of the request may do in a namespace.

use keelson_access::authz::{Rules, aggregate};
use keelson_api::authorization_k8s_io::v1::{
    NonResourceRule, ResourceRule, SelfSubjectRulesReview, SubjectRulesReviewStatus,
};
use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_registry::{Answer, Call, Handler, Reply};

use crate::typed::body;

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
    let asked: SelfSubjectRulesReview = *body(object)?;
    if asked.spec.namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let rules = call.authorization.rules(&call.context.user, &asked.spec.namespace);
    let review = SelfSubjectRulesReview {
        status: status(rules),
        ..SelfSubjectRulesReview::default()
    };
    Ok(Reply::Object(201, Box::new(review)))
}

fn status(rules: Rules) -> SubjectRulesReviewStatus {
    SubjectRulesReviewStatus {
        resource_rules: rules
            .resources
            .into_iter()
            .map(|rule| ResourceRule {
                verbs: rule.verbs,
                api_groups: rule.groups,
                resources: rule.resources,
                resource_names: rule.names,
            })
            .collect(),
        non_resource_rules: rules
            .paths
            .into_iter()
            .map(|rule| NonResourceRule {
                verbs: rule.verbs,
                non_resource_urls: rule.paths,
            })
            .collect(),
        incomplete: rules.incomplete,
        evaluation_error: aggregate(&rules.errors),
    }
}
