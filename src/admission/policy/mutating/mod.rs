//! MutatingAdmissionPolicy: expressions change what is written.

mod apply;
mod json_patch;
mod mutation;
mod policy;
mod values;

use std::collections::BTreeSet;
use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::core::v1::Namespace;
use keelson_machinery::json;
use keelson_machinery::scheme::KindRef;
use keelson_machinery::status::{Cause, StatusError, reason};
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Outcome, Verbs};

use super::binding::Binding;
use super::configuration;
use super::params::Param;
use super::plan::{Step, What, namespace, plan};
use super::policies::{Bound, Policies, Policy as _};
use crate::expressions::{Inputs, Matched};
use crate::matching::Candidates;
use crate::namespaces::Namespaces;
use crate::versions::versioned;
use crate::{GROUP, Shared, is_exempt};
use mutation::{Failed, mutate};
use policy::Policy;

const NAME: &str = "MutatingAdmissionPolicy";
const POLICIES: &str = "mutatingadmissionpolicies";
const BINDINGS: &str = "mutatingadmissionpolicybindings";

/// Evaluates MutatingAdmissionPolicies as their bindings say, one after the other.
pub struct MutatingAdmissionPolicy {
    policies: Policies<Policy>,
    shared: Arc<Shared>,
}

/// Names of policy, binding, and of the parameter with its namespace.
type Key = (String, String, Option<(String, String)>);

/// What the second round has to know of the first.
#[derive(Default)]
struct Rounds {
    /// Evaluated since the last change by others, and to be evaluated again after the next.
    done: BTreeSet<Key>,
    /// To be evaluated again.
    again: BTreeSet<Key>,
    /// The object as the last round left it; `None`: no policy wants to be evaluated again.
    left: Option<Vec<u8>>,
}

impl Rounds {
    fn changed(&mut self) {
        self.again.append(&mut self.done);
    }
}

/// What is wrong with a policy on a request.
struct Complaint {
    message: String,
    /// "": the usual one.
    reason: &'static str,
}

impl Complaint {
    fn new(policy: &Policy, binding: Option<&Binding>, why: &str, reason: &'static str) -> Complaint {
        let name = &policy.definition().name;
        let message = match binding {
            Some(binding) => format!("policy '{name}' with binding '{}' denied request: {why}", binding.name),
            None => format!("policy {name:?} denied request: {why}"),
        };
        Complaint { message, reason }
    }
}

/// 403 with all that is wrong.
fn refusal(attributes: &Attributes<'_>, complaints: Vec<Complaint>) -> Result<(), StatusError> {
    let Some(first) = complaints.first() else {
        return Ok(());
    };
    let mut error = attributes.forbidden("");
    error.message.clone_from(&first.message);
    if !first.reason.is_empty() {
        error.reason = first.reason.into();
    }
    let causes = complaints.into_iter().map(|complaint| Cause {
        message: complaint.message,
        ..Cause::default()
    });
    error.details_mut().causes.extend(causes);
    Err(error)
}

fn shown(attributes: &Attributes<'_>) -> Vec<u8> {
    attributes.object.as_deref().map(json::to_vec).unwrap_or_default()
}

/// One evaluation of a policy.
struct Evaluation<'c> {
    policy: &'c Policy,
    binding: &'c Binding,
    kind: KindRef,
    param: Param,
}

impl Evaluation<'_> {
    fn key(&self) -> Key {
        let param = self.param.as_ref().map(|param| {
            let metadata = param.meta();
            (metadata.namespace.clone(), metadata.name.clone())
        });
        let policy = self.policy.definition().name.clone();
        (policy, self.binding.name.clone(), param)
    }
}

impl MutatingAdmissionPolicy {
    /// That of one server.
    pub fn new(shared: &Arc<Shared>) -> MutatingAdmissionPolicy {
        MutatingAdmissionPolicy {
            policies: Policies::new(Policy::read, Binding::mutating),
            shared: shared.clone(),
        }
    }

    async fn dispatch(
        &self,
        attributes: &mut Attributes<'_>,
        candidates: Candidates<Bound<Policy>>,
    ) -> Result<(), StatusError> {
        let steps = plan(attributes, &candidates, &self.shared).await;
        let (evaluations, mut complaints) = sorted(steps);
        if !evaluations.is_empty() {
            let mut rounds: Rounds = attributes.reinvocation.take(NAME).unwrap_or_default();
            let is_second = attributes.reinvocation.is_second();
            if is_second && rounds.left.as_ref().is_some_and(|left| *left != shown(attributes)) {
                rounds.changed();
            }
            let done = self.evaluate_all(attributes, &evaluations, &mut rounds).await;
            rounds.left = (!rounds.done.is_empty()).then(|| shown(attributes));
            attributes.reinvocation.keep(NAME, rounds);
            complaints.extend(done?);
        }
        refusal(attributes, complaints)
    }

    async fn evaluate_all(
        &self,
        attributes: &mut Attributes<'_>,
        evaluations: &[Evaluation<'_>],
        rounds: &mut Rounds,
    ) -> Result<Vec<Complaint>, StatusError> {
        let is_second = attributes.reinvocation.is_second();
        let namespace = namespace(attributes, &self.shared).await?;
        let (mut complaints, mut changed) = (Vec::new(), false);
        for evaluation in evaluations {
            let policy = evaluation.policy;
            let fails_open = policy.definition().fails_open;
            let complaint = |why: &str| Complaint::new(policy, Some(evaluation.binding), why, reason::INVALID);
            match is_meant(attributes, evaluation).await? {
                Matched::Yes => {}
                Matched::No => continue,
                Matched::Failed(_) if fails_open => continue,
                Matched::Failed(why) => {
                    complaints.push(complaint(&why));
                    continue;
                }
            }
            let key = evaluation.key();
            if is_second && !rounds.again.contains(&key) {
                continue;
            }
            let done = mutate_all(attributes, evaluation, namespace.as_deref()).await?;
            changed |= done.changed;
            complaints.extend(done.failed.iter().filter(|_| !fails_open).map(|why| complaint(why)));
            if policy.is_reinvoked {
                rounds.done.insert(key);
            }
        }
        // Who has changed the object is evaluated again itself.
        if changed {
            rounds.changed();
            attributes.reinvocation.request();
        }
        Ok(complaints)
    }
}

/// What is to be evaluated, and what can't be, as far as that matters.
fn sorted<'c>(steps: Vec<Step<'c, Policy>>) -> (Vec<Evaluation<'c>>, Vec<Complaint>) {
    let (mut evaluations, mut complaints) = (Vec::new(), Vec::new());
    for step in steps {
        let policy = step.policy;
        match (step.what, step.binding) {
            (What::Evaluate(kind, param), Some(binding)) => evaluations.push(Evaluation {
                policy,
                binding,
                kind,
                param,
            }),
            (What::Complain(why), binding) if !policy.definition().fails_open => {
                let what = if binding.is_some() { "binding" } else { "policy" };
                let why = format!("failed to configure {what}: {why}");
                complaints.push(Complaint::new(policy, binding, &why, ""));
            }
            (What::Evaluate(..), None) | (What::Complain(_), _) => {}
        }
    }
    (evaluations, complaints)
}

/// Whether the conditions of a policy hold.
async fn is_meant(attributes: &Attributes<'_>, evaluation: &Evaluation<'_>) -> Result<Matched, StatusError> {
    let definition = evaluation.policy.definition();
    if definition.conditions.is_empty() {
        return Ok(Matched::Yes);
    }
    let versioned = versioned(attributes, &evaluation.kind).await?;
    let inputs = Inputs::new(attributes, &versioned, &evaluation.kind);
    loop {
        let matched = definition
            .conditions
            .once(&definition.scope(inputs.bindings(None), &evaluation.param));
        if !inputs.complete(attributes).await {
            return Ok(matched);
        }
    }
}

/// What came of the mutations of a policy.
#[derive(Default)]
struct Done {
    /// One of them was done.
    changed: bool,
    /// What is wrong with others.
    failed: Vec<String>,
}

async fn mutate_all(
    attributes: &mut Attributes<'_>,
    evaluation: &Evaluation<'_>,
    namespace: Option<&Namespace>,
) -> Result<Done, StatusError> {
    let mut done = Done::default();
    if attributes.object.is_none() {
        return Ok(done);
    }
    for mutation in &evaluation.policy.mutations {
        match mutate(attributes, evaluation, mutation, namespace).await {
            Ok(()) => done.changed = true,
            Err(Failed::Policy(why)) => done.failed.push(why),
            Err(Failed::Request(error)) => return Err(error),
        }
    }
    Ok(done)
}

impl Plugin for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::MUTATES.when(scope.operation != Operation::Delete && !is_exempt(scope))
    }

    fn follows(&self) -> &'static [(&'static str, &'static str)] {
        &[(GROUP, POLICIES), (GROUP, BINDINGS), Namespaces::FOLLOWED]
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        Ok(configuration::mutating(configuration)?)
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.policies.attach(listers, POLICIES, BINDINGS);
        self.shared.namespaces.attach(listers);
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
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
