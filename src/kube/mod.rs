//! What is particular to the built-in kinds of Kubernetes: their strategies, defaults, conversions and table cells,
//! and what the server makes when it starts.
//!
//! A kind's rules stand in its definition; here is only what no definition can say.

pub mod admission;
mod admissionregistration;
pub mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
pub mod autoscaling;
mod batch;
pub mod bootstrap;
mod cells;
mod certificates;
mod coordination;
mod core;
mod discovery;
pub mod flowcontrol;
mod kept;
mod metadata;
mod networking;
mod node;
pub mod rbac;
pub mod resource;
mod scheduling;
mod status_alone;
mod storage;
#[cfg(test)]
mod testing;
mod typed;
mod versions;

pub use bootstrap::node_rules;
pub use core::node_graph::Reader as NodeGraph;
pub use versions::KNOWN_VERSIONS;

use std::time::Duration;

use keelson_machinery::table::CellFunctions;
use keelson_server::registry::{CodeDefaults, KindCode};

/// Strategies and defaults of all built-in kinds.
pub fn code() -> KindCode {
    let mut code = KindCode::default();
    metadata::register(&mut code);
    kept::register(&mut code);
    core_kinds(&mut code);
    events(&mut code, &core::event::EventStrategy::default());
    volume_kinds(&mut code);
    apps_kinds(&mut code);
    batch_kinds(&mut code);
    cluster_kinds(&mut code);
    for (group, plural) in STATUS_ALONE {
        code.strategy(group, plural, status_alone::StatusAlone);
    }
    resource_kinds(&mut code);
    admissionregistration::register(&mut code);
    authentication::register(&mut code);
    authorization::register(&mut code);
    core::subresources::register(&mut code);
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

/// Sets how long events are kept after their last write; `None`: for ever.
pub fn set_event_time_to_live(code: &mut KindCode, time_to_live: Option<Duration>) {
    events(code, &core::event::EventStrategy { time_to_live });
}

/// Events are the same objects in two groups.
fn events(code: &mut KindCode, strategy: &core::event::EventStrategy) {
    for group in ["", "events.k8s.io"] {
        code.strategy(group, "events", strategy.clone());
    }
}

fn core_kinds(code: &mut KindCode) {
    code.strategy("", "configmaps", core::config_map::ConfigMapStrategy);
    code.strategy("", "endpoints", core::endpoints::EndpointsStrategy);
    code.strategy("", "namespaces", core::namespace::NamespaceStrategy);
    code.strategy("", "nodes", core::node::NodeStrategy);
    code.strategy("", "pods", core::pod::PodStrategy);
    code.strategy("", "podtemplates", core::pod_template::PodTemplateStrategy);
    code.strategy("", "resourcequotas", core::resource_quota::ResourceQuotaStrategy);
    code.strategy("", "secrets", core::secret::SecretStrategy);
    code.strategy("", "services", core::service::ServiceStrategy);
    code.strategy("", "serviceaccounts", core::service_account::ServiceAccountStrategy);
    code.strategy(
        "",
        "replicationcontrollers",
        core::replication_controller::ReplicationControllerStrategy,
    );
    code.defaults("", "v1", "limitranges", core::limit_range::defaults);
    code.defaults("", "v1", "namespaces", core::namespace::defaults);
    code.defaults("", "v1", "nodes", core::node::defaults);
    code.defaults("", "v1", "pods", core::pod::defaults);
    code.defaults("", "v1", "podtemplates", core::pod_template::defaults);
    code.defaults(
        "",
        "v1",
        "replicationcontrollers",
        core::replication_controller::defaults,
    );
    code.defaults("", "v1", "resourcequotas", core::resource_quota::defaults);
    code.defaults("", "v1", "secrets", core::secret::defaults);
    code.defaults("", "v1", "services", core::service::defaults);
}

fn volume_kinds(code: &mut KindCode) {
    code.strategy(
        "",
        "persistentvolumes",
        core::persistent_volume::PersistentVolumeStrategy,
    );
    code.strategy(
        "",
        "persistentvolumeclaims",
        core::persistent_volume_claim::PersistentVolumeClaimStrategy,
    );
    code.defaults("", "v1", "persistentvolumes", core::persistent_volume::defaults);
    code.defaults(
        "",
        "v1",
        "persistentvolumeclaims",
        core::persistent_volume_claim::defaults,
    );
    let group = "storage.k8s.io";
    code.strategy(group, "csidrivers", storage::csi_driver::CsiDriverStrategy);
    code.strategy(group, "csinodes", storage::csi_node::CsiNodeStrategy);
    code.defaults(group, "v1", "volumeattachments", storage::volume_attachment::defaults);
}

fn batch_kinds(code: &mut KindCode) {
    code.strategy("batch", "jobs", batch::job::JobStrategy);
    code.strategy("batch", "cronjobs", batch::cron_job::CronJobStrategy);
    code.defaults("batch", "v1", "jobs", batch::job::defaults);
    code.defaults("batch", "v1", "cronjobs", batch::cron_job::defaults);
}

fn cluster_kinds(code: &mut KindCode) {
    code.strategy(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        apiextensions::custom_resource_definition::CustomResourceDefinitionStrategy,
    );
    code.defaults(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        apiextensions::custom_resource_definition::defaults,
    );
    code.strategy(
        "apiregistration.k8s.io",
        "apiservices",
        apiregistration::api_service::ApiServiceStrategy,
    );
    code.strategy(
        "certificates.k8s.io",
        "certificatesigningrequests",
        certificates::certificate_signing_request::CertificateSigningRequestStrategy,
    );
    code.strategy(
        "discovery.k8s.io",
        "endpointslices",
        discovery::endpoint_slice::EndpointSliceStrategy,
    );
    code.strategy(
        "networking.k8s.io",
        "servicecidrs",
        networking::service_cidr::ServiceCidrStrategy,
    );
    code.strategy("networking.k8s.io", "ingresses", networking::ingress::IngressStrategy);
    code.defaults(
        "networking.k8s.io",
        "v1",
        "networkpolicies",
        networking::network_policy::defaults,
    );
    code.defaults("node.k8s.io", "v1", "runtimeclasses", node::runtime_class::defaults);
    flowcontrol::register(code);
    rbac::register(code);
    code.strategy(
        "scheduling.k8s.io",
        "priorityclasses",
        scheduling::priority_class::PriorityClassStrategy,
    );
}

/// Kinds whose only rule is about their status.
const STATUS_ALONE: [(&str, &str); 6] = [
    ("certificates.k8s.io", "podcertificaterequests"),
    ("internal.apiserver.k8s.io", "storageversions"),
    ("resource.k8s.io", "resourcepoolstatusrequests"),
    ("scheduling.k8s.io", "podgroups"),
    ("storage.k8s.io", "volumeattachments"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
];

fn resource_kinds(code: &mut KindCode) {
    use resource::claim;
    let group = "resource.k8s.io";
    code.strategy(group, "resourceclaims", resource::claim_strategy::ClaimStrategy);
    code.strategy(
        group,
        "resourceclaimtemplates",
        resource::claim_strategy::ClaimTemplateStrategy,
    );
    code.strategy(group, "resourceslices", resource::slice::ResourceSliceStrategy);
    code.strategy(
        group,
        "devicetaintrules",
        resource::device_taint_rule::DeviceTaintRuleStrategy,
    );
    for (version, of_claim, of_template) in [
        (
            "v1",
            claim::v1::claim as CodeDefaults,
            claim::v1::template as CodeDefaults,
        ),
        ("v1beta2", claim::v1beta2::claim, claim::v1beta2::template),
        ("v1beta1", claim::v1beta1::claim, claim::v1beta1::template),
    ] {
        code.defaults(group, version, "resourceclaims", of_claim);
        code.defaults(group, version, "resourceclaimtemplates", of_template);
    }
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
