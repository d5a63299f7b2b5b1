//! Statuses of containers: what ended stays ended unless it is to be started again, and what is said of users and
//! devices.

use std::collections::{HashMap, HashSet};

use keelson_api::core::v1::{Container, ContainerStatus, LinuxContainerUser, Pod, PodSpec, PodStatus, ResourceStatus};

use crate::faults::Faults;

const ENDED: &str = "may not be transitioned to non-terminated state";
const NO_REQUEST: &str = "must match one of the container's resource requests";
const NO_CLAIM: &str = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
    'claim:<claimName>' if request is empty";
const HEALTHS: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
/// Longest text about the health of a device, in bytes.
const MESSAGE_MAX: usize = 1024;

/// Containers by their names, of several with one name the first.
type ByName<'a> = HashMap<&'a str, &'a Container>;

fn by_name(containers: &[Container]) -> ByName<'_> {
    let all = containers.iter().rev();
    all.map(|container| (container.name.as_str(), container)).collect()
}

/// Checks transitions of all containers.
pub fn transitions(f: &mut Faults<'_>, new: &Pod, old: &Pod) {
    let (now, was, spec) = (&new.status, &old.status, &old.spec);
    let all_start_again = spec
        .init_containers
        .iter()
        .chain(&spec.containers)
        .flat_map(|container| &container.restart_policy_rules)
        .any(|rule| rule.action == "RestartAllContainers");
    let starts_again = |containers: &ByName<'_>, status: &ContainerStatus, code: i32| {
        let container = containers.get(status.name.as_str());
        all_start_again || container.is_some_and(|container| restarts(container, spec, code))
    };
    let (containers, init_containers) = (by_name(&spec.containers), by_name(&spec.init_containers));
    for ((list, now), (_, was)) in lists(now).into_iter().zip(lists(was)) {
        let mut running: HashMap<&str, usize> = HashMap::new();
        for status in now.iter().filter(|status| status.state.terminated.is_none()) {
            *running.entry(&status.name).or_default() += 1;
        }
        f.each(list, was, |f, before| {
            let Some(ended) = before.state.terminated.as_deref() else {
                return;
            };
            let runs = running.get(before.name.as_str()).copied().unwrap_or(0);
            let (told, may) = match list {
                "containerStatuses" => (runs.min(1), starts_again(&containers, before, ended.exit_code)),
                "initContainerStatuses" => (runs.min(1), starts_again(&init_containers, before, ended.exit_code)),
                _ => (runs, false),
            };
            let told = if may { 0 } else { told };
            f.at("state").while_room(0..told, |f, _| f.forbidden(ENDED));
        });
    }
}

/// The statuses of all containers, by the names of their lists.
fn lists(status: &PodStatus) -> [(&'static str, &[ContainerStatus]); 3] {
    [
        ("containerStatuses", &status.container_statuses),
        ("initContainerStatuses", &status.init_container_statuses),
        ("ephemeralContainerStatuses", &status.ephemeral_container_statuses),
    ]
}

/// Whether a container is started again that ended with a code.
fn restarts(container: &Container, spec: &PodSpec, code: i32) -> bool {
    let by_rule = container.restart_policy_rules.iter().find(|rule| {
        let codes = rule.exit_codes.as_deref();
        codes.is_some_and(|codes| match codes.operator.as_str() {
            "In" => codes.values.contains(&code),
            "NotIn" => !codes.values.contains(&code),
            _ => false,
        })
    });
    let own = container.restart_policy.as_deref();
    if own.is_some() && by_rule.is_some_and(|rule| rule.action == "Restart") {
        return true;
    }
    let known = |policy: &&str| matches!(*policy, "Always" | "OnFailure" | "Never");
    match own.filter(known).unwrap_or(&spec.restart_policy) {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

/// Checks users and devices of all containers.
pub fn details(f: &mut Faults<'_>, pod: &Pod) {
    let (status, spec) = (&pod.status, &pod.spec);
    let system = spec.os.as_ref().map_or("linux", |os| os.name.as_str());
    for (list, statuses) in lists(status) {
        f.each(list, statuses, |f, status| {
            let user = status.user.as_deref().and_then(|user| user.linux.as_deref());
            let Some(user) = user else { return };
            let mut f = f.at("user");
            match system {
                "windows" => f.at("linux").forbidden("cannot be set for a windows pod"),
                "linux" => linux_user(&mut f.at("linux"), user),
                _ => {}
            }
        });
    }
    for ((list, statuses), containers) in lists(status).into_iter().zip([&spec.containers, &spec.init_containers]) {
        let containers = by_name(containers);
        f.each(list, statuses, |f, status| {
            let container = containers.get(status.name.as_str()).copied();
            let told = &status.allocated_resources_status;
            f.each("allocatedResourcesStatus", told, |f, of| devices(f, of, container));
        });
    }
    let added = &status.ephemeral_container_statuses;
    f.each("ephemeralContainerStatuses", added, |f, status| {
        let text = "must not be specified in container status";
        f.at("allocatedResourcesStatus")
            .forbidden_if(!status.allocated_resources_status.is_empty(), text);
    });
}

fn linux_user(f: &mut Faults<'_>, user: &LinuxContainerUser) {
    f.at("uid").user_id(Some(user.uid));
    f.at("gid").user_id(Some(user.gid));
    f.each("supplementalGroups", &user.supplemental_groups, |f, group| {
        f.user_id(Some(*group))
    });
}

/// The health of devices that a container has been given.
fn devices(f: &mut Faults<'_>, of: &ResourceStatus, container: Option<&Container>) {
    let is_claimed = |container: &Container, name: &str| {
        container
            .resources
            .claims
            .iter()
            .any(|claim| match claim.request.as_str() {
                "" => claim.name == name,
                request => name.split_once('/') == Some((claim.name.as_str(), request)),
            })
    };
    let text = match (container, of.name.strip_prefix("claim:")) {
        (Some(container), Some(name)) if !is_claimed(container, name) => NO_CLAIM,
        (Some(container), None) if !container.resources.requests.contains_key(&of.name) => NO_REQUEST,
        _ => "",
    };
    if !text.is_empty() {
        f.at("name").invalid(&of.name, text);
    }
    let mut ids = HashSet::new();
    f.each("resources", &of.resources, |f, device| {
        f.at("health").one_of(&device.health, &HEALTHS);
        match device.message.as_deref() {
            Some("") => f.at("message").required("must be non-empty if specified"),
            Some(text) if text.len() > MESSAGE_MAX => f.at("message").too_long(MESSAGE_MAX),
            _ => {}
        }
        if !ids.insert(&device.resource_id) {
            f.at("resourceID").duplicate(&device.resource_id);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    fn told(spec: &str, list: &str, code: i32) -> String {
        let pod = |state: &str| -> Pod {
            read(&format!(
                r#"{{"spec":{spec},"status":{{"{list}":[{{"name":"c","state":{state}}}]}}}}"#
            ))
        };
        let old = pod(&format!(r#"{{"terminated":{{"exitCode":{code}}}}}"#));
        lines(&of_object(|f| transitions(f, &pod(r#"{"running":{}}"#), &old)))
    }

    #[test]
    fn what_ended_stays_ended() {
        let of = |policy: &str, container: &str| {
            format!(r#"{{"restartPolicy":"{policy}","containers":[{{"name":"c"{container}}}]}}"#)
        };
        let rule = |action: &str| {
            format!(
                r#","restartPolicy":"Never","restartPolicyRules":[{{"action":"{action}",
                "exitCodes":{{"operator":"In","values":[3]}}}}]"#
            )
        };
        for (spec, code, is_fine) in [
            (of("Always", ""), 0, true),
            (of("Never", ""), 1, false),
            (of("OnFailure", ""), 0, false),
            (of("OnFailure", ""), 1, true),
            (of("Never", r#","restartPolicy":"Always""#), 0, true),
            (of("Always", &rule("Restart")), 3, true),
            (of("Always", &rule("Restart")), 4, false),
            (of("Always", &rule("RestartAllContainers")), 4, true),
        ] {
            assert_eq!(
                told(&spec, "containerStatuses", code).is_empty(),
                is_fine,
                "{spec} {code}"
            );
        }
        assert_eq!(
            told(&of("Always", ""), "ephemeralContainerStatuses", 0),
            format!("ephemeralContainerStatuses[0].state: Forbidden: {ENDED}")
        );
    }

    #[test]
    fn devices_are_those_of_the_container() {
        let container = r#"{"name":"c","resources":{"requests":{"a.b/d":"1"},"claims":[{"name":"x","request":"r"}]}}"#;
        let told = |name: &str, device: &str| {
            let pod: Pod = read(&format!(
                r#"{{"spec":{{"containers":[{container}]}},"status":{{"containerStatuses":[{{"name":"c",
                "allocatedResourcesStatus":[{{"name":"{name}","resources":[{device}]}}]}}]}}}}"#
            ));
            let found = lines(&of_object(|f| details(f, &pod)));
            let fields = found
                .lines()
                .filter_map(|line| line.split(": ").next()?.rsplit('.').next());
            fields.collect::<Vec<_>>().join(" ")
        };
        let good = r#"{"resourceID":"i","health":"Healthy"}"#;
        assert_eq!(told("a.b/d", good), "");
        assert_eq!(told("claim:x/r", good), "");
        assert_eq!(told("claim:x", good), "name");
        assert_eq!(told("a.b/e", good), "name");
        assert_eq!(told("a.b/d", r#"{"health":"Ill","message":""}"#), "health message");
        assert_eq!(told("a.b/d", &format!("{good},{good}")), "resourceID");
    }
}
