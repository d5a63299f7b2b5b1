//! The kinds of Kubernetes, by the modules of `k8s-openapi`.

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use schemars::SchemaGenerator;

use crate::root;

/// Registers one kind after the other.
macro_rules! kinds {
    ($generator:ident; $($group:ident::$version:ident: $($kind:ident),+;)+) => {
        $($(root::<api::$group::$version::$kind>($generator);)+)+
    };
}

/// Registers all kinds that have a resource, and bodies of subresources.
pub fn add(generator: &mut SchemaGenerator) {
    root::<apiextensions::v1::CustomResourceDefinition>(generator);
    root::<apiregistration::v1::APIService>(generator);
    kinds! { generator;
        admissionregistration::v1: MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration;
        admissionregistration::v1alpha1: MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding;
        admissionregistration::v1beta1: MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding;
        apiserverinternal::v1alpha1: StorageVersion;
        apps::v1: ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet;
        authentication::v1: SelfSubjectReview, TokenRequest, TokenReview;
        authorization::v1: LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview;
        autoscaling::v1: HorizontalPodAutoscaler, Scale;
        autoscaling::v2: HorizontalPodAutoscaler;
        batch::v1: CronJob, Job;
        certificates::v1: CertificateSigningRequest;
        certificates::v1alpha1: ClusterTrustBundle;
        certificates::v1beta1: ClusterTrustBundle, PodCertificateRequest;
        coordination::v1: Lease;
        coordination::v1alpha2: LeaseCandidate;
        coordination::v1beta1: LeaseCandidate;
        core::v1: Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount;
        discovery::v1: EndpointSlice;
        events::v1: Event;
        flowcontrol::v1: FlowSchema, PriorityLevelConfiguration;
        networking::v1: IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR;
        networking::v1beta1: IPAddress, ServiceCIDR;
        node::v1: RuntimeClass;
        policy::v1: Eviction, PodDisruptionBudget;
        rbac::v1: ClusterRole, ClusterRoleBinding, Role, RoleBinding;
        resource::v1: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice;
        resource::v1alpha3: DeviceTaintRule, ResourcePoolStatusRequest;
        resource::v1beta1: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice;
        resource::v1beta2: DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice;
        scheduling::v1: PriorityClass;
        scheduling::v1alpha2: PodGroup, Workload;
        storage::v1: CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass;
        storage::v1beta1: VolumeAttributesClass;
        storagemigration::v1beta1: StorageVersionMigration;
    }
}
