//! Cells of kinds that hold settings: ConfigMap, Secret, Lease; and namespaces.

use keelson_api::coordination_k8s_io::v1::Lease;
use keelson_api::core::v1::{ConfigMap, Namespace, Secret};

use super::count;

cells! { pub const CONFIG_MAP: ConfigMap =
    "config_map_data" => config_map_data,
}
cells! { pub const SECRET: Secret =
    "secret_data" => secret_data,
    "secret_type" => |o| o.r#type.clone(),
}
cells! { pub const LEASE: Lease =
    "lease_holder" => lease_holder,
}
cells! { pub const NAMESPACE: Namespace =
    "namespace_status" => |o| o.status.phase.clone(),
}

/// Number of entries.
fn config_map_data(o: &ConfigMap) -> i64 {
    count(o.data.len() + o.binary_data.len())
}

/// Number of entries.
fn secret_data(o: &Secret) -> i64 {
    count(o.data.len())
}

/// Who holds the lease.
fn lease_holder(o: &Lease) -> String {
    o.spec.holder_identity.clone().unwrap_or_default()
}
