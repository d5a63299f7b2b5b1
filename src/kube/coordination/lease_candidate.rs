//! Candidates for leases.

use keelson_api::coordination_k8s_io::v1beta1::LeaseCandidate;
use keelson_registry::{Kept, KindCode};

use crate::cells;

/// Registers the rules of candidates.
pub fn register(code: &mut KindCode) {
    code.kind::<LeaseCandidate>()
        .kept([Kept::at("spec.leaseName")])
        .cells(cells::coordination::LEASE_CANDIDATE);
}
