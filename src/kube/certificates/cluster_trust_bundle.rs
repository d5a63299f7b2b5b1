//! Cluster trust bundles.

use keelson_server::registry::{Kept, KindCode};

use crate::api::certificates_k8s_io::v1beta1::ClusterTrustBundle;

/// Registers the rules of cluster trust bundles.
pub fn register(code: &mut KindCode) {
    code.kind::<ClusterTrustBundle>().kept([Kept::at("spec.signerName")]);
}
