//! Requests of kubelets for certificates of pods.

use keelson_server::registry::{Kept, KindCode};

use crate::api::certificates_k8s_io::v1beta1::PodCertificateRequest;
use crate::kube::cells;
use crate::kube::status_alone::StatusAlone;

/// Registers the rules of these requests.
pub fn register(code: &mut KindCode) {
    code.kind::<PodCertificateRequest>()
        .any_strategy(StatusAlone)
        .kept([Kept::at("spec")])
        .cells(cells::certificates::POD_CERTIFICATE_REQUEST);
}
