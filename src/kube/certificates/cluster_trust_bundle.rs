//! Cluster trust bundles.

use keelson_server::registry::{Kept, KindCode};

use crate::api::certificates_k8s_io::v1beta1::ClusterTrustBundle;
use crate::kube::cells;

/// Registers the rules of cluster trust bundles.
pub fn register(code: &mut KindCode) {
    code.kind::<ClusterTrustBundle>()
        .kept([Kept::at("spec.signerName")])
        .cells(cells::certificates::CLUSTER_TRUST_BUNDLE);
}
