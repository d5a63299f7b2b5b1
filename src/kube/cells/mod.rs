//! What `kubectl get` shows of the built-in kinds: the cells that definitions name and no path can say.
//!
//! The texts are those of kube-apiserver's own tables, since people and scripts read them.

mod autoscaling;
mod config;
mod event;
mod node;
mod pod;
mod service;
mod workload;

use std::collections::BTreeMap;

use keelson_machinery::object::Object;
use keelson_machinery::table::{Cell, CellFunctions, age};
use keelson_machinery::time::Time;

use crate::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use crate::api::coordination_k8s_io::v1::Lease;
use crate::api::core::v1::{ConfigMap, Endpoints, Event, Node, Pod, Secret, Service};

/// Shown where there is nothing.
const NONE: &str = "<none>";

/// Registers `$function` of `$module` for objects of one type; an object of another has an empty cell.
macro_rules! cells {
    ($cells:ident: $($name:literal => $module:ident::$function:ident($kind:ty)),* $(,)?) => {$(
        $cells.register($name, |object: &dyn Object, now: Time| {
            object.downcast_ref::<$kind>().map_or(Cell::Null, |o| $module::$function(o, now).into())
        });
    )*};
}

/// All cell functions of the built-in kinds.
pub fn all() -> CellFunctions {
    let mut cells = CellFunctions::default();
    of_core(&mut cells);
    of_apps(&mut cells);
    of_autoscaling(&mut cells);
    cells
}

fn of_core(cells: &mut CellFunctions) {
    cells! { cells:
        "config_map_data" => config::config_map_data(ConfigMap),
        "endpoints_endpoints" => service::endpoints(Endpoints),
        "event_count" => event::count(Event),
        "event_first_seen" => event::first_seen(Event),
        "event_last_seen" => event::last_seen(Event),
        "event_message" => event::message(Event),
        "event_object" => event::object(Event),
        "event_reason" => event::reason(Event),
        "event_source" => event::source(Event),
        "event_subobject" => event::subobject(Event),
        "event_type" => event::kind(Event),
        "lease_holder" => config::lease_holder(Lease),
        "node_container_runtime" => node::container_runtime(Node),
        "node_external_ip" => node::external_ip(Node),
        "node_internal_ip" => node::internal_ip(Node),
        "node_kernel_version" => node::kernel_version(Node),
        "node_os_image" => node::os_image(Node),
        "node_roles" => node::roles(Node),
        "node_status" => node::status(Node),
        "node_version" => node::version(Node),
        "pod_ip" => pod::ip(Pod),
        "pod_node" => pod::node(Pod),
        "pod_nominated_node" => pod::nominated_node(Pod),
        "pod_readiness_gates" => pod::readiness_gates(Pod),
        "pod_ready" => pod::ready(Pod),
        "pod_restarts" => pod::restarts(Pod),
        "pod_status" => pod::status(Pod),
        "secret_data" => config::secret_data(Secret),
        "service_cluster_ip" => service::cluster_ip(Service),
        "service_external_ip" => service::external_ip(Service),
        "service_port_s" => service::ports(Service),
        "service_selector" => service::selector(Service),
    }
}

fn of_apps(cells: &mut CellFunctions) {
    cells.register("containers", |object, _| workload::containers(object).into());
    cells.register("images", |object, _| workload::images(object).into());
    cells! { cells:
        "controller_revision_controller" => workload::controller_revision_controller(ControllerRevision),
        "controller_revision_revision" => workload::controller_revision_revision(ControllerRevision),
        "daemon_set_available" => workload::daemon_set_available(DaemonSet),
        "daemon_set_current" => workload::daemon_set_current(DaemonSet),
        "daemon_set_desired" => workload::daemon_set_desired(DaemonSet),
        "daemon_set_node_selector" => workload::daemon_set_node_selector(DaemonSet),
        "daemon_set_ready" => workload::daemon_set_ready(DaemonSet),
        "daemon_set_selector" => workload::daemon_set_selector(DaemonSet),
        "daemon_set_up_to_date" => workload::daemon_set_up_to_date(DaemonSet),
        "deployment_available" => workload::deployment_available(Deployment),
        "deployment_ready" => workload::deployment_ready(Deployment),
        "deployment_selector" => workload::deployment_selector(Deployment),
        "deployment_up_to_date" => workload::deployment_up_to_date(Deployment),
        "replica_set_current" => workload::replica_set_current(ReplicaSet),
        "replica_set_desired" => workload::replica_set_desired(ReplicaSet),
        "replica_set_ready" => workload::replica_set_ready(ReplicaSet),
        "replica_set_selector" => workload::replica_set_selector(ReplicaSet),
        "stateful_set_ready" => workload::stateful_set_ready(StatefulSet),
    }
}

fn of_autoscaling(cells: &mut CellFunctions) {
    macro_rules! autoscaler {
        ($($name:literal => $function:ident),* $(,)?) => {$(
            cells.register($name, |object: &dyn Object, _| {
                autoscaling::as_v2(object).map_or(Cell::Null, |o| autoscaling::$function(&o).into())
            });
        )*};
    }
    autoscaler! {
        "horizontal_pod_autoscaler_maxpods" => max_pods,
        "horizontal_pod_autoscaler_minpods" => min_pods,
        "horizontal_pod_autoscaler_reference" => reference,
        "horizontal_pod_autoscaler_replicas" => replicas,
        "horizontal_pod_autoscaler_targets" => targets,
    }
}

/// How long ago, `5m`; `<unknown>` for a time that is not set.
fn since(then: Time, now: Time) -> String {
    age(then, now)
}

/// `a=1,b=2`.
fn pairs(labels: &BTreeMap<String, String>) -> String {
    match labels.len() {
        0 => NONE.to_owned(),
        _ => labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SCHEME;

    #[test]
    fn every_function_that_a_definition_names_is_there() {
        let cells = all();
        let versions = SCHEME.groups.iter().flat_map(|g| g.versions);
        for kind in versions.flat_map(|v| v.kinds) {
            for column in kind.columns.iter().filter(|c| !c.function.is_empty()) {
                let cell = cells
                    .get(column.function)
                    .unwrap_or_else(|| panic!("{}: {}", kind.kind, column.function));
                // Registered for this very type: an empty object has a cell.
                assert_ne!(
                    cell(&*(kind.new)(), Time::default()),
                    Cell::Null,
                    "{}: {}",
                    kind.kind,
                    column.name
                );
            }
        }
    }
}
