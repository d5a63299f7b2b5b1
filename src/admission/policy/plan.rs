//! Plans: the policies that mean a request, each with the bindings and parameters that it is evaluated with.

use std::sync::Arc;

use keelson_api::core::v1::Namespace;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;

use super::binding::Binding;
use super::params::{Param, collect, endpoint};
use super::policies::{Bound, Policy, Reach};
use crate::Shared;
use crate::matching::{Candidate, Candidates};

/// One thing to be done.
pub(super) struct Step<'c, P> {
    pub policy: &'c P,
    /// `None`: what is wrong is wrong with the policy.
    pub binding: Option<&'c Binding>,
    pub what: What,
}

/// What is to be done.
pub(super) enum What {
    /// The policy is evaluated, with objects of this kind of resource.
    Evaluate(KindRef, Param),
    /// It can't be.
    Complain(String),
}

/// What the policies that mean a request have to do.
pub(super) async fn plan<'c, P: Policy>(
    attributes: &Attributes<'_>,
    candidates: &'c Candidates<Bound<P>>,
    shared: &Arc<Shared>,
) -> Vec<Step<'c, P>> {
    let mut steps = Vec::new();
    for candidate in candidates.iter() {
        of_policy(attributes, candidate, shared, &mut steps).await;
    }
    steps
}

async fn of_policy<'c, P: Policy>(
    attributes: &Attributes<'_>,
    candidate: &'c Candidate<Bound<P>>,
    shared: &Arc<Shared>,
    steps: &mut Vec<Step<'c, P>>,
) {
    let policy = &*candidate.hook.policy;
    let definition = policy.definition();
    let name = attributes.requested_name();
    let complaint = |binding, why: &str| Step {
        policy,
        binding,
        what: What::Complain(why.to_owned()),
    };
    let (Some(kind), Some(criteria)) = (candidate.outcome.policy.of(name), &definition.criteria) else {
        return;
    };
    match criteria.select(attributes, &shared.namespaces).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return steps.push(complaint(None, &error.message)),
    }
    let endpoint = definition
        .param_kind
        .as_ref()
        .map(|kind| endpoint(attributes, kind))
        .transpose();
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(why) => return steps.push(complaint(None, &why.to_string())),
    };
    for (binding, reach) in candidate.hook.bindings.iter().zip(&candidate.outcome.bindings) {
        let binding = &**binding;
        match is_meant(attributes, binding, reach, shared).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                steps.push(complaint(Some(binding), &error.message));
                continue;
            }
        }
        match collect(attributes, endpoint.as_deref(), binding.params.as_ref()).await {
            Err(why) => steps.push(complaint(Some(binding), &why.to_string())),
            Ok(params) => steps.extend(params.into_iter().map(|param| Step {
                policy,
                binding: Some(binding),
                what: What::Evaluate(kind.clone(), param),
            })),
        }
    }
}

async fn is_meant(
    attributes: &Attributes<'_>,
    binding: &Binding,
    reach: &Reach,
    shared: &Arc<Shared>,
) -> Result<bool, StatusError> {
    match (reach, &binding.criteria) {
        (Reach::Everything, _) | (_, None) => Ok(true),
        (Reach::Nothing, _) => Ok(false),
        (Reach::By(outcome), Some(criteria)) => match outcome.of(attributes.requested_name()) {
            Some(_) => criteria.select(attributes, &shared.namespaces).await,
            None => Ok(false),
        },
    }
}

/// The namespace of a request, as expressions see it; `None`: it is in none, or it is one itself.
///
/// # Errors
/// It is not there.
pub(super) async fn namespace(
    attributes: &Attributes<'_>,
    shared: &Arc<Shared>,
) -> Result<Option<Arc<Namespace>>, StatusError> {
    let own = attributes.kind;
    let is_namespace = own.group.is_empty() && own.version == "v1" && own.plural == "namespaces";
    match attributes.requested_namespace() {
        "" => Ok(None),
        _ if is_namespace => Ok(None),
        name => shared.namespaces.get(attributes, name).await.map(Some),
    }
}
