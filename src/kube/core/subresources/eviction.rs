//! Deletes a pod unless a disruption budget speaks against it.

use keelson_api::core::v1::{Pod, PodCondition};
use keelson_api::policy::v1::{Eviction, PodDisruptionBudget};
use keelson_machinery::meta::v1::{Condition, DeleteOptions, Preconditions};
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
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub struct Evictor;

impl Handler for Evictor {
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
            let mut context = call.context.clone();
            context.dry_run |= !options.dry_run.is_empty();
            evict(call, &context, name, options).await?;
            Ok(Reply::success(201))
        })
    }
}

async fn evict(call: &Call<'_>, context: &Context, name: &str, options: DeleteOptions) -> Result<(), StatusError> {
    let pods = call.stored("", "pods")?;
    let stored = pods.get(&context.namespace, name).await?.object;
    let Some(pod) = typed::<Pod>(&*stored) else {
        return Err(pods.not_found(name));
    };
    if !is_over_or_pending(pod)
        && let Some(budget) = budget_of(call, context, pod).await?
    {
        let free = !is_ready(pod) && may_go_unready(&budget);
        if !free {
            spend(call, context, &budget, name).await?;
        }
    }
    delete(call, context, pod, options).await
}

/// Of such pods no budget counts the loss.
fn is_over_or_pending(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed" | "Pending") || pod.metadata.deletion_timestamp.is_some()
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

/// The one budget that selects the pod.
async fn budget_of(call: &Call<'_>, context: &Context, pod: &Pod) -> Result<Option<PodDisruptionBudget>, StatusError> {
    let budgets = call.stored("policy", "poddisruptionbudgets")?;
    let all = budgets.all(&context.namespace).await?;
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

/// Takes one disruption off the budget and notes the pod there, in the name of the server: who may evict need not have a
/// right to budgets.
async fn spend(call: &Call<'_>, context: &Context, budget: &PodDisruptionBudget, pod: &str) -> Result<(), StatusError> {
    let client = Client::of_server(call.verbs.clone(), "").untracked();
    let client = client.dry_run(context.dry_run);
    let budgets = client.objects("policy", "poddisruptionbudgets", &context.namespace);
    let budgets = budgets
        .ok_or_else(StatusError::no_such_resource)?
        .subresource("status")?;
    let name = budget.metadata.name.as_str();
    let mut updater = |current: Option<&dyn Object>| {
        let current = current.ok_or_else(|| budgets.resource.not_found(name))?;
        let mut object = current.clone_object();
        if let Some(budget) = typed_mut::<PodDisruptionBudget>(&mut *object) {
            check(budget)?;
            take(budget, pod, context.now);
        }
        Ok(object)
    };
    budgets.update_internal(name, &mut updater).await.map(drop)
}

fn check(budget: &PodDisruptionBudget) -> Result<(), StatusError> {
    let (name, status) = (&budget.metadata.name, &budget.status);
    let forbidden = |why: &str| Err(StatusError::forbidden("policy", "poddisruptionbudget", name, why));
    if status.observed_generation < budget.metadata.generation {
        let text = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(text).retry_after(RETRY_SECONDS));
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
    let (healthy, desired) = (status.current_healthy, status.desired_healthy);
    Err(refused(match healthy <= desired {
        true => format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"),
        false => format!("The disruption budget {name} does not allow evicting pods currently"),
    }))
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
        r#type: "DisruptionAllowed".to_owned(),
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

/// Marks the pod as being evicted, then deletes it.
async fn delete(call: &Call<'_>, context: &Context, pod: &Pod, mut options: DeleteOptions) -> Result<(), StatusError> {
    let pods = call.stored("", "pods")?;
    let name = pod.metadata.name.as_str();
    pods.check_delete_preconditions(pod, &options)?;
    if !context.dry_run {
        mark(call, context, name).await?;
    }
    options.dry_run.clear();
    let options = checked_delete_options(with_uid(options, pod))?;
    let target = call.nested(&pods, "eviction", name, context);
    call.verbs.delete(&target, &options).await.map(drop)
}

/// What is deleted must be the pod that was looked at. The version that the client named is older than the mark.
fn with_uid(mut options: DeleteOptions, pod: &Pod) -> DeleteOptions {
    options.preconditions = Some(Box::new(Preconditions {
        uid: Some(pod.metadata.uid.clone()),
        ..Preconditions::default()
    }));
    options
}

async fn mark(call: &Call<'_>, context: &Context, name: &str) -> Result<(), StatusError> {
    let pods = call.stored("", "pods")?;
    let target = call.nested(&pods, "eviction", name, context);
    let mut updater = |current: Option<&dyn Object>| {
        let mut object = current.ok_or_else(|| pods.not_found(name))?.clone_object();
        if let Some(pod) = typed_mut::<Pod>(&mut *object) {
            let target = PodCondition {
                r#type: "DisruptionTarget".to_owned(),
                status: "True".to_owned(),
                reason: "EvictionByEvictionAPI".to_owned(),
                message: "Eviction API: evicting".to_owned(),
                ..PodCondition::default()
            };
            set_condition(&mut pod.status.conditions, target, context.now);
        }
        Ok(object)
    };
    let request = UpdateRequest::of(Part::Internal);
    call.verbs.update(&target, &request, &mut updater).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn budget(status: &str) -> PodDisruptionBudget {
        read(&format!(
            r#"{{"metadata":{{"name":"b","generation":2}},"status":{status}}}"#
        ))
    }

    #[test]
    fn budgets_say_why_they_refuse() {
        for (status, why, retry) in [
            (
                r#"{"observedGeneration":1,"disruptionsAllowed":1}"#,
                "The disruption budget b is still being processed by the server.",
                RETRY_SECONDS,
            ),
            (
                r#"{"observedGeneration":2,"currentHealthy":4,"desiredHealthy":4}"#,
                "The disruption budget b needs 4 healthy pods and has 4 currently",
                0,
            ),
            (
                r#"{"observedGeneration":2,"currentHealthy":5,"desiredHealthy":4}"#,
                "The disruption budget b does not allow evicting pods currently",
                0,
            ),
        ] {
            let error = check(&budget(status)).unwrap_err();
            let details = error.details.unwrap();
            assert_eq!((error.code, details.retry_after_seconds), (429, retry));
            assert_eq!(details.causes[0].message, why);
        }
    }

    #[test]
    fn the_last_disruption_is_noted_as_such() {
        let mut budget = budget(r#"{"observedGeneration":2,"disruptionsAllowed":2}"#);
        take(&mut budget, "p", Time::from_unix(5, 0));
        assert!(budget.status.conditions.is_empty());
        take(&mut budget, "q", Time::from_unix(6, 0));
        assert_eq!(budget.status.disruptions_allowed, 0);
        assert_eq!(budget.status.disrupted_pods.len(), 2);
        let condition = &budget.status.conditions[0];
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            ("False", "InsufficientPods")
        );
        assert_eq!(check(&budget).unwrap_err().code, 429);
    }

    #[test]
    fn unready_pods_go_when_enough_others_are_healthy() {
        for (spec, status, want) in [
            ("{}", r#"{"currentHealthy":4,"desiredHealthy":4}"#, true),
            ("{}", r#"{"currentHealthy":4}"#, false),
            ("{}", r#"{"currentHealthy":3,"desiredHealthy":4}"#, false),
            (r#"{"unhealthyPodEvictionPolicy":"AlwaysAllow"}"#, "{}", true),
            (r#"{"unhealthyPodEvictionPolicy":"IfHealthyBudget"}"#, "{}", false),
        ] {
            let budget: PodDisruptionBudget = read(&format!(r#"{{"spec":{spec},"status":{status}}}"#));
            assert_eq!(may_go_unready(&budget), want, "{spec} {status}");
        }
    }
}
