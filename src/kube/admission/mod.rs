//! Admission plug-ins of Kubernetes, each named as kube-apiserver names it. Behind every one stands a file of its name.

mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod cluster_trust_bundle_attest;
mod default_toleration_seconds;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use std::sync::Arc;

use keelson_registry::admission::{Admission, Plugin};
use keelson_server::admission;

/// The plug-ins that are on where nobody says anything.
pub fn chain() -> Admission {
    Admission::new(plugins())
}

/// Plug-ins that kube-apiserver has and this server has not, by name.
pub const UNBUILT: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// All plug-ins, generic ones too, in the order in which kube-apiserver calls them.
pub fn plugins() -> Vec<Arc<dyn Plugin>> {
    let mut plugins = admission::plugins();
    plugins.extend([
        Arc::new(taint_nodes_by_condition::TaintNodesByCondition) as Arc<dyn Plugin>,
        Arc::new(default_toleration_seconds::DefaultTolerationSeconds),
        Arc::new(storage_object_in_use_protection::StorageObjectInUseProtection),
        Arc::new(certificate_approval::CertificateApproval),
        Arc::new(certificate_signing::CertificateSigning),
        Arc::new(cluster_trust_bundle_attest::ClusterTrustBundleAttest),
        Arc::new(certificate_subject_restriction::CertificateSubjectRestriction),
    ]);
    plugins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--help` of kube-apiserver v1.36 names 41 plug-ins.
    const KNOWN: usize = 41;

    #[test]
    fn plugins_are_those_of_kube_apiserver() {
        let built: Vec<&str> = plugins().iter().map(|plugin| plugin.name()).collect();
        assert!(built.iter().all(|name| !UNBUILT.contains(name)), "{built:?}");
        assert_eq!(built.len() + UNBUILT.len(), KNOWN);
    }
}
