//! What is particular to the built-in kinds of Kubernetes: their strategies, defaults, conversions and table cells,
//! and what the server makes when it starts.
//!
//! A kind's rules stand in its definition; here is only what no definition can say.

pub mod apiextensions;
mod apps;
pub mod autoscaling;
mod cells;
mod coordination;
mod core;
pub mod resource;
mod system_namespaces;
#[cfg(test)]
mod testing;
mod typed;

use keelson_machinery::table::CellFunctions;
use keelson_server::registry::KindCode;
use keelson_server::server::Hook;

/// Strategies and defaults of all built-in kinds.
pub fn code() -> KindCode {
    let mut code = KindCode::default();
    core_kinds(&mut code);
    apps_kinds(&mut code);
    code.strategy("coordination.k8s.io", "leases", coordination::lease::LeaseStrategy);
    code.strategy(
        "autoscaling",
        "horizontalpodautoscalers",
        autoscaling::horizontal_pod_autoscaler::AutoscalerStrategy,
    );
    code.defaults(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        autoscaling::horizontal_pod_autoscaler::defaults,
    );
    code
}

fn core_kinds(code: &mut KindCode) {
    code.strategy("", "configmaps", core::config_map::ConfigMapStrategy);
    code.strategy("", "endpoints", core::endpoints::EndpointsStrategy);
    code.strategy("", "events", core::event::EventStrategy);
    code.strategy("", "namespaces", core::namespace::NamespaceStrategy);
    code.strategy("", "nodes", core::node::NodeStrategy);
    code.strategy("", "pods", core::pod::PodStrategy);
    code.strategy("", "secrets", core::secret::SecretStrategy);
    code.strategy("", "services", core::service::ServiceStrategy);
    code.strategy("", "serviceaccounts", core::service_account::ServiceAccountStrategy);
    code.defaults("", "v1", "namespaces", core::namespace::defaults);
    code.defaults("", "v1", "nodes", core::node::defaults);
    code.defaults("", "v1", "pods", core::pod::defaults);
    code.defaults("", "v1", "secrets", core::secret::defaults);
    code.defaults("", "v1", "services", core::service::defaults);
}

fn apps_kinds(code: &mut KindCode) {
    code.strategy(
        "apps",
        "controllerrevisions",
        apps::controller_revision::ControllerRevisionStrategy,
    );
    code.strategy("apps", "daemonsets", apps::daemon_set::DaemonSetStrategy);
    code.strategy("apps", "deployments", apps::deployment::DeploymentStrategy);
    code.strategy("apps", "replicasets", apps::replica_set::ReplicaSetStrategy);
    code.strategy("apps", "statefulsets", apps::stateful_set::StatefulSetStrategy);
    code.defaults("apps", "v1", "daemonsets", apps::daemon_set::defaults);
    code.defaults("apps", "v1", "deployments", apps::deployment::defaults);
    code.defaults("apps", "v1", "replicasets", apps::replica_set::defaults);
    code.defaults("apps", "v1", "statefulsets", apps::stateful_set::defaults);
}

/// Cell functions of all built-in kinds.
pub fn cells() -> CellFunctions {
    cells::all()
}

/// What runs once after the server is up.
pub fn hooks() -> Vec<Hook> {
    vec![system_namespaces::hook()]
}
