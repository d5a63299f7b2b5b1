//! Candidates for leases.

use keelson_registry::{Kept, KindCode};

use crate::cells;
use keelson_api::coordination_k8s_io::v1beta1::LeaseCandidate;

/// Registers the rules of candidates.
pub fn register(code: &mut KindCode) {
    code.kind::<LeaseCandidate>()
        .kept([Kept::at("spec.leaseName")])
        .cells(cells::scheduling::LEASE_CANDIDATE);
}
