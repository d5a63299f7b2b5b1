//! Resources of a pod: the sums of what its containers ask for and may use, as schedulers, quotas and limit ranges
//! count them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use keelson_api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use keelson_machinery::quantity::Quantity;

use super::resource_name::is_huge_pages;

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// Which amounts of a container or a pod.
pub type Side = fn(&ResourceRequirements) -> &Amounts;

/// What is asked for.
pub const REQUESTS: Side = |resources| &resources.requests;
/// What may be used.
pub const LIMITS: Side = |resources| &resources.limits;

/// What a pod asks for, with its overhead.
pub fn requests(spec: &PodSpec) -> Amounts {
    let mut sum = of_containers(spec, |container| Cow::Borrowed(&container.resources.requests));
    put_whole(&mut sum, spec, REQUESTS, is_of_pods);
    add(&mut sum, &spec.overhead);
    sum
}

/// What a running pod asks for: what its containers have got counts where they ask for less by now.
pub fn requests_of(pod: &Pod) -> Amounts {
    let mut sum = of_containers(&pod.spec, |container| effective_requests(pod, container));
    put_whole(&mut sum, &pod.spec, REQUESTS, is_of_pods);
    add(&mut sum, &pod.spec.overhead);
    sum
}

/// The same of what it may use.
pub fn limits_of(pod: &Pod) -> Amounts {
    let mut sum = of_containers(&pod.spec, |container| effective_limits(pod, container));
    if states_whole(&pod.spec, LIMITS) || states_whole(&pod.spec, REQUESTS) {
        put_whole(&mut sum, &pod.spec, LIMITS, is_of_pods);
    }
    for (name, amount) in &pod.spec.overhead {
        if let Some(limit) = sum.get_mut(name).filter(|limit| !limit.is_zero()) {
            *limit = limit.plus(amount);
        }
    }
    sum
}

/// Whether a resource can be stated of a whole pod.
pub fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// Whether resources of the whole pod are stated.
pub fn states_whole(spec: &PodSpec, side: Side) -> bool {
    let stated = spec.resources.as_deref().map(side);
    stated.is_some_and(|amounts| amounts.keys().any(|name| is_of_pods(name)))
}

/// What is stated of the whole pod counts in the place of the sums.
pub fn put_whole(sum: &mut Amounts, spec: &PodSpec, side: Side, counts: fn(&str) -> bool) {
    let stated = spec.resources.as_deref().map(side);
    for (name, amount) in stated.into_iter().flatten().filter(|(name, _)| counts(name)) {
        sum.insert(name.clone(), amount.clone());
    }
}

/// The sum over containers, but at least what it takes until the last of those is done that run before. `of`: the
/// amounts of a container.
pub fn of_containers<'a>(spec: &'a PodSpec, of: impl Fn(&'a Container) -> Cow<'a, Amounts>) -> Amounts {
    let mut sum = Amounts::new();
    for container in &spec.containers {
        add(&mut sum, &of(container));
    }
    let (mut staying, mut peak) = (Amounts::new(), Amounts::new());
    for container in &spec.init_containers {
        let amounts = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sum, &amounts);
            add(&mut staying, &amounts);
            raise(&mut peak, &staying);
        } else {
            let mut meanwhile = amounts.into_owned();
            add(&mut meanwhile, &staying);
            raise(&mut peak, &meanwhile);
        }
    }
    raise(&mut sum, &peak);
    sum
}

/// Adds amounts to a sum.
pub fn add(sum: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        match sum.get_mut(name) {
            Some(known) => *known = known.plus(amount),
            None => drop(sum.insert(name.clone(), amount.clone())),
        }
    }
}

fn raise(least: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        match least.get_mut(name) {
            Some(known) if *known >= *amount => {}
            Some(known) => known.clone_from(amount),
            None => drop(least.insert(name.clone(), amount.clone())),
        }
    }
}

/// What a container has got, by the node's word, if that has said anything.
fn told<'a>(pod: &'a Pod, container: &Container) -> Option<(&'a ResourceRequirements, &'a Amounts)> {
    let mut statuses = pod
        .status
        .container_statuses
        .iter()
        .chain(&pod.status.init_container_statuses);
    let status = statuses.rfind(|status| status.name == container.name)?;
    Some((status.resources.as_deref()?, &status.allocated_resources))
}

/// Whether a node has said that it can't give what is asked for.
fn is_infeasible(pod: &Pod) -> bool {
    let mut conditions = pod.status.conditions.iter();
    let pending = conditions.find(|condition| condition.r#type == "PodResizePending");
    pending.is_some_and(|condition| condition.reason == "Infeasible")
}

fn effective_requests<'a>(pod: &'a Pod, container: &'a Container) -> Cow<'a, Amounts> {
    let asked = &container.resources.requests;
    let stays = container.restart_policy.as_deref() == Some("Always");
    let is_init = pod
        .spec
        .init_containers
        .iter()
        .any(|init| std::ptr::eq(init, container));
    let Some((got, allocated)) = told(pod, container).filter(|_| !is_init || stays) else {
        return Cow::Borrowed(asked);
    };
    let mut most = got.requests.clone();
    raise(&mut most, allocated);
    if !is_infeasible(pod) {
        raise(&mut most, asked);
    }
    Cow::Owned(most)
}

fn effective_limits<'a>(pod: &'a Pod, container: &'a Container) -> Cow<'a, Amounts> {
    let asked = &container.resources.limits;
    let stays = container.restart_policy.as_deref() == Some("Always");
    let is_init = pod
        .spec
        .init_containers
        .iter()
        .any(|init| std::ptr::eq(init, container));
    let Some((got, _)) = told(pod, container).filter(|_| !is_init || stays) else {
        return Cow::Borrowed(asked);
    };
    let mut most = got.limits.clone();
    if !is_infeasible(pod) {
        raise(&mut most, asked);
    }
    Cow::Owned(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn short(amounts: &Amounts) -> String {
        let texts = amounts.iter().map(|(name, amount)| format!("{name}={amount}"));
        texts.collect::<Vec<_>>().join(",")
    }

    fn container(cpu: &str, more: &str) -> String {
        let amounts = format!(r#"{{"requests":{{"cpu":"{cpu}"}},"limits":{{"cpu":"{cpu}"}}}}"#);
        format!(r#"{{"name":"c{cpu}","resources":{amounts}{more}}}"#)
    }

    #[test]
    fn containers_that_run_before_count_as_their_greatest() {
        let stays = r#","restartPolicy":"Always""#;
        for (containers, init, expected) in [
            (vec![container("1", ""), container("500m", "")], vec![], "cpu=1500m"),
            (
                vec![container("1", "")],
                vec![container("3", ""), container("2", "")],
                "cpu=3",
            ),
            (
                vec![container("1", "")],
                vec![container("2", stays), container("2", "")],
                "cpu=4",
            ),
            (
                vec![container("3", "")],
                vec![container("2", stays), container("2", "")],
                "cpu=5",
            ),
            (
                vec![container("1", "")],
                vec![container("2", ""), container("2", stays)],
                "cpu=3",
            ),
        ] {
            let text = format!(
                r#"{{"spec":{{"containers":[{}],"initContainers":[{}]}}}}"#,
                containers.join(","),
                init.join(",")
            );
            let pod: Pod = read(&text);
            assert_eq!(short(&requests(&pod.spec)), expected, "{text}");
            assert_eq!(short(&limits_of(&pod)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_said_of_the_pod_stands_above_its_containers() {
        let pod: Pod = read(&format!(
            r#"{{"spec":{{"containers":[{}],"overhead":{{"cpu":"1","memory":"1Mi"}},
                "resources":{{"requests":{{"cpu":"5","ephemeral-storage":"1"}},"limits":{{"memory":"2Mi"}}}}}}}}"#,
            container("1", "")
        ));
        assert_eq!(short(&requests(&pod.spec)), "cpu=6,memory=1Mi");
        assert_eq!(short(&limits_of(&pod)), "cpu=2,memory=3Mi");
    }

    #[test]
    fn a_container_that_shrinks_counts_until_it_has() {
        for (reason, expected) in [("Deferred", "cpu=3"), ("Infeasible", "cpu=2")] {
            let pod: Pod = read(&format!(
                r#"{{"spec":{{"containers":[{}]}},"status":{{
                    "conditions":[{{"type":"PodResizePending","reason":"{reason}"}}],
                    "containerStatuses":[{{"name":"c3","allocatedResources":{{"cpu":"1"}},
                                          "resources":{{"requests":{{"cpu":"2"}},"limits":{{"cpu":"2"}}}}}}]}}}}"#,
                container("3", "")
            ));
            assert_eq!(short(&requests_of(&pod)), expected, "{reason}");
            assert_eq!(short(&limits_of(&pod)), expected, "{reason}");
            assert_eq!(short(&requests(&pod.spec)), "cpu=3");
        }
    }
}
