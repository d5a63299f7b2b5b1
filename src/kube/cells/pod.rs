//! Cells of pods: what a pod's status comes to in one word.

use std::collections::BTreeMap;

use keelson_api::core::v1::{Container, ContainerStatus, Pod, PodStatus};
use keelson_machinery::table::{Cell, RowCondition};
use keelson_machinery::time::Time;

use super::NONE;

cells! { pub const POD: Pod =
    "pod_ip" => ip,
    "pod_node" => node,
    "pod_nominated_node" => nominated_node,
    "pod_readiness_gates" => readiness_gates,
    "pod_ready" => ready,
    "pod_restarts" => restarts,
    "pod_status" => status,
}

/// All that the cells and the condition look at.
pub const READS: &[&str] = &[
    "metadata.deletionTimestamp",
    "spec.containers.name",
    "spec.initContainers.name",
    "spec.initContainers.restartPolicy",
    "spec.nodeName",
    "spec.readinessGates",
    "status",
];

/// Tells clients that the pod has ended, which then may hide it.
pub fn completed(pod: &Pod) -> Option<RowCondition> {
    let (reason, message) = match pod.status.phase.as_str() {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(RowCondition {
        ty: "Completed",
        status: "True",
        reason,
        message,
    })
}

/// Ready containers of all, `1/2`. Init containers that keep running count too.
fn ready(pod: &Pod) -> String {
    let summary = Summary::of(pod);
    format!("{}/{}", summary.ready, summary.total)
}

/// The word for where the pod stands: its phase unless something more telling is known.
fn status(pod: &Pod) -> String {
    Summary::of(pod).reason
}

/// How often containers were started again, and how long ago the last time was: `3 (5m ago)`.
fn restarts(pod: &Pod) -> Cell {
    let summary = Summary::of(pod);
    match summary.last_restart {
        at if summary.restarts == 0 || at.is_zero() => summary.restarts.to_string().into(),
        at => Cell::Elapsed {
            before: format!("{} (", summary.restarts),
            since: at,
            after: " ago)",
        },
    }
}

/// The first address.
fn ip(pod: &Pod) -> String {
    let first = pod.status.pod_ips.first().map_or(&pod.status.pod_ip, |ip| &ip.ip);
    or_none(first)
}

/// The node that the pod is bound to.
fn node(pod: &Pod) -> String {
    or_none(&pod.spec.node_name)
}

/// The node that others may be evicted from for this pod.
fn nominated_node(pod: &Pod) -> String {
    or_none(&pod.status.nominated_node_name)
}

/// Readiness gates whose condition is true, of all.
fn readiness_gates(pod: &Pod) -> String {
    let gates = &pod.spec.readiness_gates;
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let passed = gates
        .iter()
        .filter(|gate| condition(&pod.status, &gate.condition_type) == Some("True"))
        .count();
    format!("{passed}/{}", gates.len())
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text.to_owned()
    }
}

fn condition<'a>(status: &'a PodStatus, ty: &str) -> Option<&'a str> {
    status
        .conditions
        .iter()
        .find(|c| c.r#type == ty)
        .map(|c| c.status.as_str())
}

/// What the cells of a pod are made of; the same walk over the containers finds all of it.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Time,
}

impl Summary {
    fn of(pod: &Pod) -> Summary {
        let mut summary = Summary {
            reason: starting_reason(&pod.status),
            ready: 0,
            total: pod.spec.containers.len() + pod.spec.init_containers.iter().filter(|c| is_sidecar(c)).count(),
            restarts: 0,
            last_restart: Time::default(),
        };
        let (initializing, sidecars) = summary.init_containers(pod);
        if !initializing || condition(&pod.status, "Initialized") == Some("True") {
            summary.restarts = sidecars.count;
            summary.last_restart = sidecars.last;
            summary.containers(pod);
        }
        if pod.metadata.deletion_timestamp.is_some() {
            let over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
            if pod.status.reason == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !over {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Goes over the init containers up to the first that is not done. Tells whether there is such a one, and the
    /// restarts of those that keep running beside the pod's containers.
    fn init_containers(&mut self, pod: &Pod) -> (bool, Restarts) {
        let specs: BTreeMap<&str, &Container> = pod.spec.init_containers.iter().map(|c| (c.name.as_str(), c)).collect();
        let mut sidecars = Restarts::default();
        for (place, status) in pod.status.init_container_statuses.iter().enumerate() {
            self.count_restarts(status);
            let sidecar = specs.get(status.name.as_str()).is_some_and(|c| is_sidecar(c));
            if sidecar {
                sidecars.add(status);
            }
            if status.state.terminated.as_ref().is_some_and(|t| t.exit_code == 0) {
                continue;
            }
            if sidecar && status.started == Some(true) {
                self.ready += usize::from(status.ready);
                continue;
            }
            self.reason = init_reason(status, place, pod.spec.init_containers.len());
            return (true, sidecars);
        }
        (false, sidecars)
    }

    fn containers(&mut self, pod: &Pod) {
        let mut running = false;
        for status in pod.status.container_statuses.iter().rev() {
            self.count_restarts(status);
            let waiting = status
                .state
                .waiting
                .as_ref()
                .map(|w| &w.reason)
                .filter(|r| !r.is_empty());
            if let Some(reason) = waiting {
                self.reason.clone_from(reason);
            } else if let Some(reason) = terminated_reason(status) {
                self.reason = reason;
            } else if status.ready && status.state.running.is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = condition(&pod.status, "Ready") == Some("True");
            self.reason = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }

    fn count_restarts(&mut self, status: &ContainerStatus) {
        let mut all = Restarts {
            count: self.restarts,
            last: self.last_restart,
        };
        all.add(status);
        (self.restarts, self.last_restart) = (all.count, all.last);
    }
}

#[derive(Default)]
struct Restarts {
    count: i64,
    last: Time,
}

impl Restarts {
    fn add(&mut self, status: &ContainerStatus) {
        self.count += i64::from(status.restart_count);
        if let Some(ended) = &status.last_state.terminated {
            self.last = self.last.max(ended.finished_at);
        }
    }
}

/// The reason of the status, else its phase; a pod that is held back says so.
fn starting_reason(status: &PodStatus) -> String {
    let held = status
        .conditions
        .iter()
        .any(|c| c.r#type == "PodScheduled" && c.reason == "SchedulingGated");
    match status.reason.as_str() {
        _ if held => "SchedulingGated".to_owned(),
        "" => status.phase.clone(),
        reason => reason.to_owned(),
    }
}

fn init_reason(status: &ContainerStatus, place: usize, all: usize) -> String {
    if let Some(reason) = terminated_reason(status) {
        return format!("Init:{reason}");
    }
    match status.state.waiting.as_ref().map(|w| w.reason.as_str()) {
        None | Some("" | "PodInitializing") => format!("Init:{place}/{all}"),
        Some(reason) => format!("Init:{reason}"),
    }
}

fn terminated_reason(status: &ContainerStatus) -> Option<String> {
    let ended = status.state.terminated.as_ref()?;
    Some(match (ended.reason.as_str(), ended.signal) {
        ("", 0) => format!("ExitCode:{}", ended.exit_code),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

/// An init container that runs as long as the pod.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    const NOW: Time = Time::from_unix(1_700_000_000, 0);

    /// ready, status, restarts
    fn cells(json: &str) -> (String, String, Cell) {
        let mut pod = Pod::default();
        json::read(json.as_bytes(), &mut pod).unwrap();
        (ready(&pod), status(&pod), restarts(&pod).at(NOW))
    }

    #[test]
    fn a_pod_comes_to_three_words() {
        let cases = include_str!("testdata/pods.tsv");
        for line in cases.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [ready, status, restarts, pod] = columns[..] else {
                panic!("{line}")
            };
            let expected = (ready.to_owned(), status.to_owned(), restarts.into());
            assert_eq!(cells(pod), expected, "{pod}");
        }
    }

    #[test]
    fn what_is_absent_shows_as_none() {
        let pod = Pod::default();
        for cell in [ip, node, nominated_node, readiness_gates] {
            assert_eq!(cell(&pod), "<none>");
        }
        let mut pod = Pod::default();
        let text = br#"{"spec":{"readinessGates":[{"conditionType":"a"},{"conditionType":"b"}]},
            "status":{"podIP":"10.0.0.1","conditions":[{"type":"a","status":"True"},{"type":"b","status":"False"}]}}"#;
        json::read(text, &mut pod).unwrap();
        assert_eq!(readiness_gates(&pod), "1/2");
        assert_eq!(ip(&pod), "10.0.0.1");
    }
}
