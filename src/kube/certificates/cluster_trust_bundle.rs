//! Cluster trust bundles.

use keelson_api::certificates_k8s_io::v1beta1::ClusterTrustBundle;
use keelson_registry::{Kept, KindCode};

use crate::cells;

/// Registers the rules of cluster trust bundles.
pub fn register(code: &mut KindCode) {
    code.kind::<ClusterTrustBundle>()
        .kept([Kept::at("spec.signerName")])
        .cells(cells::certificates::CLUSTER_TRUST_BUNDLE);
}
