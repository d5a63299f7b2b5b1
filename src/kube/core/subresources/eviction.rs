//! Deletes a pod unless a disruption budget speaks against it.

use keelson_api::core::v1::{Pod, PodCondition};
use keelson_api::policy::v1::{Eviction, PodDisruptionBudget, PodDisruptionBudgetStatus};
use keelson_machinery::field::{FieldError, Path};
use keelson_machinery::meta::v1::{Condition, DeleteOptions};
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::selector::LabelSelector;
use keelson_machinery::status::{Cause, StatusError};
use keelson_machinery::time::Time;
use keelson_registry::write::{Part, UpdateRequest};
use keelson_registry::{Answer, Call, Client, Context, Handler, Reply};
use keelson_server::rest::options::checked_delete_options;

use super::binding::set_condition;
use crate::typed::{body, typed, typed_mut};

/// Pods that a budget remembers as being evicted.
const MAX_DISRUPTED_PODS: usize = 2000;
/// When to ask again while a budget is not up to date, in seconds.
const RETRY_SECONDS: i32 = 10;
/// How often a pod is looked at again that others write at the same time.
const MAX_ATTEMPTS: usize = 20;
/// The condition of a budget that says whether it has any disruption left.
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub struct Evictor;

impl Handler for Evictor {
    fn also_takes(&self) -> &'static [&'static str] {
        &["policy/v1beta1"]
    }

    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let eviction: Eviction = *body(object)?;
            let name = call.name();
            if eviction.metadata.name != name {
                return Err(StatusError::bad_request(
                    "name in URL does not match name in Eviction object",
                ));
            }
            let options = eviction.delete_options.map(|o| *o).unwrap_or_default();
            check_options(call, name, &options)?;
            let mut context = call.context.clone();
            context.dry_run |= !options.dry_run.is_empty();
            let eviction = Evicting {
                call,
                context: &context,
                options,
            };
            eviction.run(name).await?;
            Ok(Reply::success(201))
        })
    }
}

/// What an eviction can't be asked for, though a deletion can.
fn check_options(call: &Call<'_>, name: &str, options: &DeleteOptions) -> Result<(), StatusError> {
    if options.ignore_store_read_error_with_cluster_breaking_potential == Some(true) {
        let path = Path::new("deleteOptions").child("ignoreStoreReadErrorWithClusterBreakingPotential");
        let text = "can not be set for pod eviction, try after removing the option";
        let errors = FieldError::invalid(&path, true, text).into();
        return Err(StatusError::invalid("policy", "Eviction", name, &errors));
    }
    let of_request: Vec<&str> = call.query.all("dryRun").collect();
    if !of_request.is_empty() && !options.dry_run.is_empty() && of_request != options.dry_run {
        let (of_request, of_body) = (of_request.join(" "), options.dry_run.join(" "));
        let text = format!("Non-matching dry-run options in request and content: [{of_request}] and [{of_body}]");
        return Err(StatusError::unknown(text));
    }
    Ok(())
}

/// An eviction that is under way.
struct Evicting<'a> {
    call: &'a Call<'a>,
    context: &'a Context,
    /// Those of the client.
    options: DeleteOptions,
}

impl Evicting<'_> {
    async fn run(&self, name: &str) -> Result<(), StatusError> {
        let mut attempts = 0;
        let pod = loop {
            attempts += 1;
            let pod = self.pod(name).await?;
            if !is_over_or_pending(&pod) {
                break pod;
            }
            // What is pending now may be ready when it goes, and then a budget counts it.
            let held = is_pending(&pod) && self.wanted_version().is_none();
            match self.delete(&pod, held).await {
                Err(error) if error.code == 409 && self.wanted_version().is_none() && attempts < MAX_ATTEMPTS => {}
                done => return done,
            }
        };
        let Some(budget) = self.budget_of(&pod).await? else {
            return self.delete(&pod, false).await;
        };
        if is_ready(&pod) || !may_go_unready(&budget) {
            self.spend(&budget, name).await?;
            return self.delete(&pod, false).await;
        }
        match self.delete(&pod, true).await {
            // It may have become ready meanwhile.
            Err(error) if error.code == 409 && self.wanted_version().is_none() => {
                Err(still_processed(&budget.metadata.name))
            }
            done => done,
        }
    }

    /// The version that the client wants the pod to have.
    fn wanted_version(&self) -> Option<&String> {
        self.options.preconditions.as_ref()?.resource_version.as_ref()
    }

    async fn pod(&self, name: &str) -> Result<Pod, StatusError> {
        let pods = self.call.stored("", "pods")?;
        let stored = pods.get(&self.context.namespace, name).await?.object;
        typed::<Pod>(&*stored).cloned().ok_or_else(|| pods.not_found(name))
    }

    /// The one budget that selects the pod.
    async fn budget_of(&self, pod: &Pod) -> Result<Option<PodDisruptionBudget>, StatusError> {
        let budgets = self.call.stored("policy", "poddisruptionbudgets")?;
        let all = budgets.all(&self.context.namespace).await?;
        let mut found = all
            .iter()
            .filter_map(|o| typed::<PodDisruptionBudget>(&**o))
            .filter(|b| {
                let selector = LabelSelector::from_message(b.spec.selector.as_deref());
                selector.is_ok_and(|s| s.matches(&pod.metadata.labels))
            });
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(StatusError::unknown(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
            (one, None) => Ok(one.cloned()),
        }
    }

    /// Takes one disruption off the budget and notes the pod there, in the name of the server: who may evict need not
    /// have a right to budgets.
    async fn spend(&self, budget: &PodDisruptionBudget, pod: &str) -> Result<(), StatusError> {
        let client = Client::of_server(self.call.verbs.clone(), "").untracked();
        let client = client.dry_run(self.context.dry_run);
        let budgets = client.objects("policy", "poddisruptionbudgets", &self.context.namespace);
        let budgets = budgets
            .ok_or_else(StatusError::no_such_resource)?
            .subresource("status")?;
        let name = budget.metadata.name.as_str();
        let mut updater = |current: Option<&dyn Object>| {
            let current = current.ok_or_else(|| budgets.resource.not_found(name))?;
            let mut object = current.clone_object();
            if let Some(budget) = typed_mut::<PodDisruptionBudget>(&mut *object) {
                check(budget)?;
                take(budget, pod, self.context.now);
            }
            Ok(object)
        };
        budgets.update_internal(name, &mut updater).await.map(drop)
    }

    /// Marks the pod as being evicted, then deletes it. What goes must be the pod that was looked at, `held`:
    /// unchanged.
    async fn delete(&self, pod: &Pod, held: bool) -> Result<(), StatusError> {
        let pods = self.call.stored("", "pods")?;
        let name = pod.metadata.name.as_str();
        let mut options = self.options.clone();
        let wanted = options.preconditions.get_or_insert_default();
        if held {
            wanted.resource_version = Some(pod.metadata.resource_version.clone());
        }
        if wanted.uid.is_none() {
            wanted.uid = Some(pod.metadata.uid.clone());
        }
        if !self.context.dry_run {
            let marked = self.mark(&options, name).await?;
            if let Some(wanted) = options.preconditions.as_mut().filter(|p| p.resource_version.is_some()) {
                wanted.resource_version = Some(marked);
            }
        }
        let mut options = checked_delete_options(options)?;
        options.dry_run.clear();
        let target = self.call.nested(&pods, "eviction", name, self.context);
        self.call.verbs.delete(&target, &options).await.map(drop)
    }

    /// The version that the pod has by then.
    async fn mark(&self, options: &DeleteOptions, name: &str) -> Result<String, StatusError> {
        let pods = self.call.stored("", "pods")?;
        let target = self.call.nested(&pods, "eviction", name, self.context);
        let mut updater = |current: Option<&dyn Object>| {
            let current = current.ok_or_else(|| pods.not_found(name))?;
            pods.check_delete_preconditions(current, options)?;
            let mut object = current.clone_object();
            if let Some(pod) = typed_mut::<Pod>(&mut *object) {
                let target = PodCondition {
                    r#type: "DisruptionTarget".to_owned(),
                    status: "True".to_owned(),
                    reason: "EvictionByEvictionAPI".to_owned(),
                    message: "Eviction API: evicting".to_owned(),
                    ..PodCondition::default()
                };
                set_condition(&mut pod.status.conditions, target, self.context.now);
            }
            Ok(object)
        };
        let request = UpdateRequest::of(Part::Internal);
        let updated = self.call.verbs.update(&target, &request, &mut updater).await?;
        Ok(updated.object.meta().resource_version.clone())
    }
}

/// Of such pods no budget counts the loss.
fn is_over_or_pending(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed" | "Pending") || pod.metadata.deletion_timestamp.is_some()
}

/// Of what is neither over nor going, that which has not begun.
fn is_pending(pod: &Pod) -> bool {
    pod.status.phase == "Pending" && pod.metadata.deletion_timestamp.is_none()
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.conditions.iter();
    conditions.any(|c| c.r#type == "Ready" && c.status == "True")
}

/// Whether the budget lets a pod go that is not ready anyway.
fn may_go_unready(budget: &PodDisruptionBudget) -> bool {
    let status = &budget.status;
    match budget.spec.unhealthy_pod_eviction_policy.as_deref() {
        Some("AlwaysAllow") => true,
        _ => status.current_healthy >= status.desired_healthy && status.desired_healthy > 0,
    }
}

fn check(budget: &PodDisruptionBudget) -> Result<(), StatusError> {
    let (name, status) = (&budget.metadata.name, &budget.status);
    let forbidden = |why: &str| Err(StatusError::forbidden("policy", "poddisruptionbudget", name, why));
    if status.observed_generation < budget.metadata.generation {
        return Err(still_processed(name));
    }
    if status.disruptions_allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status.disrupted_pods.len() > MAX_DISRUPTED_PODS {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if status.disruptions_allowed > 0 {
        return Ok(());
    }
    Err(refused(why_none(name, status)))
}

/// Why a budget allows no disruption.
fn why_none(name: &str, status: &PodDisruptionBudgetStatus) -> String {
    let (healthy, desired) = (status.current_healthy, status.desired_healthy);
    let mut conditions = status.conditions.iter();
    let said = conditions.find(|c| c.r#type == DISRUPTION_ALLOWED);
    let said = said.filter(|c| c.status == "False" && !c.message.is_empty());
    let not_now = format!("The disruption budget {name} does not allow evicting pods currently");
    match said {
        Some(failed) if failed.reason == "SyncFailed" => {
            format!("{not_now} because it failed sync: {}", failed.message)
        }
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some(said) => format!("{not_now} ({}): {}", said.reason, said.message),
        None => not_now,
    }
}

fn still_processed(name: &str) -> StatusError {
    let text = format!("The disruption budget {name} is still being processed by the server.");
    refused(text).retry_after(RETRY_SECONDS)
}

fn refused(why: String) -> StatusError {
    let mut error = StatusError::too_many_requests(REFUSED, 0);
    error.details_mut().causes.push(Cause {
        reason: "DisruptionBudget".into(),
        message: why,
        field: String::new(),
    });
    error
}

fn take(budget: &mut PodDisruptionBudget, pod: &str, now: Time) {
    let now = now.truncate_to_seconds();
    let status = &mut budget.status;
    status.disruptions_allowed -= 1;
    status.disrupted_pods.insert(pod.to_owned(), now);
    if status.disruptions_allowed > 0 {
        return;
    }
    let mut used_up = Condition {
        r#type: DISRUPTION_ALLOWED.to_owned(),
        status: "False".to_owned(),
        observed_generation: budget.metadata.generation,
        last_transition_time: now,
        reason: "InsufficientPods".to_owned(),
        ..Condition::default()
    };
    match status.conditions.iter_mut().find(|c| c.r#type == used_up.r#type) {
        Some(old) => {
            if old.status == used_up.status {
                used_up.last_transition_time = old.last_transition_time;
            }
            *old = used_up;
        }
        None => status.conditions.push(used_up),
    }
}

#[cfg(test)]
mod tests;
