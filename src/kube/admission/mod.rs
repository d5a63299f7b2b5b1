//! Admission plug-ins of Kubernetes, each named as kube-apiserver names it. Behind every one stands a file of its name.

mod always;
mod always_pull_images;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod cluster_trust_bundle_attest;
mod default_class;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod event_rate_limit;
mod extended_resource_toleration;
mod image_policy_webhook;
mod job_validation;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod lookup;
mod namespace_auto_provision;
mod namespace_exists;
mod node_declared_feature_validator;
mod node_restriction;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_group_protection;
mod pod_group_workload_exists;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_security;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod priority;
mod recent;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
#[cfg(test)]
mod testing;
mod tolerations;

use std::sync::Arc;

use keelson_admission::{
    MutatingAdmissionPolicy, MutatingAdmissionWebhook, Shared, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook,
};
use keelson_net::client::Egress;
use keelson_registry::admission::{Admission, Plugin};
use keelson_server::admission::NamespaceLifecycle;

/// The plug-ins that are on where nobody says anything.
pub fn chain() -> Admission {
    Admission::new(plugins(&Egress::default()))
}

/// All plug-ins, generic ones too, in the order in which kube-apiserver calls them. Webhooks are called on these ways.
pub fn plugins(egress: &Egress) -> Vec<Arc<dyn Plugin>> {
    let shared = Shared::new();
    vec![
        Arc::new(always::AlwaysAdmit),
        Arc::new(namespace_auto_provision::NamespaceAutoProvision::default()),
        Arc::new(NamespaceLifecycle),
        Arc::new(namespace_exists::NamespaceExists),
        Arc::new(limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology),
        Arc::new(limit_ranger::LimitRanger::default()),
        Arc::new(service_account::ServiceAccount::default()),
        Arc::new(node_restriction::NodeRestriction),
        Arc::new(taint_nodes_by_condition::TaintNodesByCondition),
        Arc::new(always_pull_images::AlwaysPullImages),
        Arc::new(image_policy_webhook::ImagePolicyWebhook::default()),
        Arc::new(pod_security::PodSecurity::default()),
        Arc::new(pod_node_selector::PodNodeSelector::default()),
        Arc::new(priority::Priority::default()),
        Arc::new(default_toleration_seconds::DefaultTolerationSeconds),
        Arc::new(pod_toleration_restriction::PodTolerationRestriction::default()),
        Arc::new(event_rate_limit::EventRateLimit::default()),
        Arc::new(extended_resource_toleration::ExtendedResourceToleration),
        Arc::new(default_storage_class::DefaultStorageClass::default()),
        Arc::new(storage_object_in_use_protection::StorageObjectInUseProtection),
        Arc::new(pod_group_protection::PodGroupProtection),
        Arc::new(owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement),
        Arc::new(persistent_volume_claim_resize::PersistentVolumeClaimResize),
        Arc::new(runtime_class::RuntimeClass),
        Arc::new(certificate_approval::CertificateApproval),
        Arc::new(certificate_signing::CertificateSigning),
        Arc::new(cluster_trust_bundle_attest::ClusterTrustBundleAttest),
        Arc::new(certificate_subject_restriction::CertificateSubjectRestriction),
        Arc::new(default_ingress_class::DefaultIngressClass::default()),
        Arc::new(deny_service_external_ips::DenyServiceExternalIPs),
        Arc::new(pod_topology_labels::PodTopologyLabels),
        Arc::new(pod_group_workload_exists::PodGroupWorkloadExists),
        Arc::new(node_declared_feature_validator::NodeDeclaredFeatureValidator),
        Arc::new(job_validation::JobValidation::default()),
        Arc::new(pod_resize_validator::PodResizeValidator),
        Arc::new(MutatingAdmissionPolicy::new(&shared)),
        Arc::new(MutatingAdmissionWebhook::new(&shared, egress)),
        Arc::new(ValidatingAdmissionPolicy::new(&shared)),
        Arc::new(ValidatingAdmissionWebhook::new(&shared, egress)),
        Arc::new(resource_quota::ResourceQuota::default()),
        Arc::new(always::AlwaysDeny),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `--help` of kube-apiserver v1.36 names 41 plug-ins.
    const KNOWN: usize = 41;

    #[test]
    fn plugins_are_those_of_kube_apiserver() {
        let built: BTreeSet<&str> = plugins(&Egress::default()).iter().map(|plugin| plugin.name()).collect();
        assert_eq!(built.len(), KNOWN, "{built:?}");
    }
}
