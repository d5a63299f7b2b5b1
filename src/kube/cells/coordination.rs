//! Cells of leases and their candidates.

use keelson_api::coordination_k8s_io::v1::Lease;
use keelson_api::coordination_k8s_io::v1beta1::LeaseCandidate;

cells! { pub const LEASE: Lease =
    "lease_holder" => lease_holder,
}
cells! { pub const LEASE_CANDIDATE: LeaseCandidate =
    "lease_candidate_binary_version" => |o| o.spec.binary_version.clone(),
    "lease_candidate_emulation_version" => |o| o.spec.emulation_version.clone(),
    "lease_candidate_lease_name" => |o| o.spec.lease_name.clone(),
}

/// Who holds the lease.
fn lease_holder(o: &Lease) -> String {
    o.spec.holder_identity.clone().unwrap_or_default()
}
