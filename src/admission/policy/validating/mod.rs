//! ValidatingAdmissionPolicy: requests that break a policy are denied, warned of, or recorded.

mod evaluation;
mod policy;

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::{Cause, StatusError, reason};
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Outcome, Verbs};

use super::annotations::{Collected, failure};
use super::binding::{Action, Binding};
use super::configuration;
use super::params::Param;
use super::plan::{What, namespace, plan};
use super::policies::{Bound, Policies, Policy as _};
use crate::expressions::Inputs;
use crate::matching::Candidates;
use crate::namespaces::Namespaces;
use crate::versions::{Versioned, versioned};
use crate::{GROUP, Shared, is_exempt};
use evaluation::{Annotation, Decision, Verdict, evaluate};
use policy::Policy;

const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// Evaluates ValidatingAdmissionPolicies as their bindings say.
pub struct ValidatingAdmissionPolicy {
    policies: Policies<Policy>,
    shared: Arc<Shared>,
}

/// Why a request is denied.
struct Denial<'c> {
    policy: &'c str,
    binding: Option<&'c str>,
    message: String,
    /// "": the usual one.
    reason: String,
}

impl Denial<'_> {
    /// 422, unless the policy says another reason.
    fn into_error(self, attributes: &Attributes<'_>) -> StatusError {
        let (policy, why) = (self.policy, &self.message);
        let message = match self.binding {
            Some(binding) => {
                format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}")
            }
            None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {why}"),
        };
        let mut error = attributes.forbidden(&message);
        (error.code, error.reason) = match self.reason.as_str() {
            "" => (422, reason::INVALID.into()),
            reason::FORBIDDEN => (403, reason::FORBIDDEN.into()),
            reason::UNAUTHORIZED => (401, reason::UNAUTHORIZED.into()),
            reason::REQUEST_ENTITY_TOO_LARGE => (413, reason::REQUEST_ENTITY_TOO_LARGE.into()),
            other => (422, other.to_owned().into()),
        };
        error.details_mut().causes.push(Cause {
            message,
            ..Cause::default()
        });
        error
    }
}

impl ValidatingAdmissionPolicy {
    /// That of one server.
    pub fn new(shared: &Arc<Shared>) -> ValidatingAdmissionPolicy {
        ValidatingAdmissionPolicy {
            policies: Policies::new(Policy::read, Binding::validating),
            shared: shared.clone(),
        }
    }

    async fn dispatch(
        &self,
        attributes: &Attributes<'_>,
        candidates: Candidates<Bound<Policy>>,
    ) -> Result<(), StatusError> {
        let steps = plan(attributes, &candidates, &self.shared).await;
        let mut shown: Vec<(KindRef, Versioned<'_>)> = Vec::new();
        let mut dispatch = Dispatch {
            attributes,
            denials: Vec::new(),
        };
        let mut collected: Vec<(&str, Collected)> = Vec::new();
        for step in steps {
            let (policy, binding) = (step.policy, step.binding);
            let (kind, param, binding) = match (step.what, binding) {
                (What::Evaluate(kind, param), Some(binding)) => (kind, param, binding),
                (What::Evaluate(..), None) => continue,
                (What::Complain(why), binding) => {
                    dispatch.complain(policy, binding, &why);
                    continue;
                }
            };
            if !shown.iter().any(|(known, _)| known.is(&kind)) {
                match versioned(attributes, &kind).await {
                    Ok(versioned) => shown.push((kind.clone(), versioned)),
                    Err(error) => {
                        let why = format!("failed to convert object version: {}", error.message);
                        dispatch.complain(policy, Some(binding), &why);
                        continue;
                    }
                }
            }
            let Some((kind, versioned)) = shown.iter().find(|(known, _)| known.is(&kind)) else {
                continue;
            };
            let verdict = self.verdict(attributes, policy, (kind, versioned), &param).await?;
            let name = policy.definition().name.as_str();
            if collected.last().is_none_or(|(known, _)| *known != name) {
                collected.push((name, Collected::default()));
            }
            let to = collected.last_mut().map(|(_, collected)| collected);
            dispatch.take(policy, binding, verdict, to);
        }
        for (policy, collected) in collected {
            collected.publish(attributes, policy);
        }
        match dispatch.denials.into_iter().next() {
            Some(denial) => Err(denial.into_error(attributes)),
            None => Ok(()),
        }
    }

    async fn verdict(
        &self,
        attributes: &Attributes<'_>,
        policy: &Policy,
        (kind, versioned): (&KindRef, &Versioned<'_>),
        param: &Param,
    ) -> Result<Verdict, StatusError> {
        let namespace = namespace(attributes, &self.shared).await?;
        let inputs = Inputs::new(attributes, versioned, kind);
        loop {
            let verdict = evaluate(policy, &inputs, namespace.as_deref(), param);
            if !inputs.complete(attributes).await {
                return Ok(verdict);
            }
        }
    }
}

/// What came of the policies so far.
struct Dispatch<'c, 'a> {
    attributes: &'a Attributes<'a>,
    denials: Vec<Denial<'c>>,
}

impl<'c> Dispatch<'c, '_> {
    /// A policy can't be evaluated.
    fn complain(&mut self, policy: &'c Policy, binding: Option<&'c Binding>, why: &str) {
        let definition = policy.definition();
        if definition.fails_open {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.denials.push(Denial {
            policy: &definition.name,
            binding: binding.map(|binding| binding.name.as_str()),
            message: format!("failed to configure {what}: {why}"),
            reason: String::new(),
        });
    }

    fn take(&mut self, policy: &'c Policy, binding: &'c Binding, verdict: Verdict, to: Option<&mut Collected>) {
        let name = policy.definition().name.as_str();
        for (index, decision) in verdict.decisions.into_iter().enumerate() {
            let Decision::Deny { message, reason } = decision else {
                continue;
            };
            for action in &binding.actions {
                match action {
                    Action::Deny => self.denials.push(Denial {
                        policy: name,
                        binding: Some(&binding.name),
                        message: message.clone(),
                        reason: reason.clone(),
                    }),
                    Action::Audit => failure(self.attributes, binding, index, &message),
                    Action::Warn => self.attributes.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{}': {message}",
                        binding.name
                    )),
                }
            }
        }
        let mut to = to;
        for (key, annotation) in verdict.annotations {
            match (annotation, &mut to) {
                (Annotation::Publish(value), Some(to)) => to.add(&key, &value),
                (Annotation::Error(message), _) => self.denials.push(Denial {
                    policy: name,
                    binding: Some(&binding.name),
                    message,
                    reason: String::new(),
                }),
                (Annotation::Publish(_), None) | (Annotation::Exclude, _) => {}
            }
        }
    }
}

impl Plugin for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::VALIDATES.when(!is_exempt(scope))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[(GROUP, POLICIES), (GROUP, BINDINGS), Namespaces::FOLLOWED]
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        Ok(configuration::validating(configuration)?)
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.policies.attach(listers, POLICIES, BINDINGS);
        self.shared.namespaces.attach(listers);
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        if attributes.nested {
            return now(Ok(()));
        }
        let candidates = self.policies.candidates(attributes);
        match candidates.is_empty() {
            true => now(Ok(())),
            false => later(self.dispatch(attributes, candidates)),
        }
    }
}
