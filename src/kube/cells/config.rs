//! Cells of kinds that hold settings: ConfigMap, Secret, Lease.

use keelson_machinery::time::Time;

use crate::api::coordination_k8s_io::v1::Lease;
use crate::api::core::v1::{ConfigMap, Secret};

/// Number of entries.
pub fn config_map_data(o: &ConfigMap, _now: Time) -> i64 {
    count(o.data.len() + o.binary_data.len())
}

/// Number of entries.
pub fn secret_data(o: &Secret, _now: Time) -> i64 {
    count(o.data.len())
}

/// Who holds the lease.
pub fn lease_holder(o: &Lease, _now: Time) -> String {
    o.spec.holder_identity.clone().unwrap_or_default()
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
