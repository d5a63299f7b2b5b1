//! Candidates for leases.

use keelson_server::registry::{Kept, KindCode};

use crate::api::coordination_k8s_io::v1beta1::LeaseCandidate;
use crate::kube::cells;

/// Registers the rules of candidates.
pub fn register(code: &mut KindCode) {
    code.kind::<LeaseCandidate>()
        .kept([Kept::at("spec.leaseName")])
        .cells(cells::scheduling::LEASE_CANDIDATE);
}
