//! Cells of kinds that hold settings: ConfigMap, Secret, Lease; and namespaces.

use keelson_machinery::table::CellFunctions;

use super::count;
use crate::api::coordination_k8s_io::v1::Lease;
use crate::api::core::v1::{ConfigMap, Namespace, Secret};

pub fn register(cells: &mut CellFunctions) {
    cells! { cells, ConfigMap:
        "config_map_data" => config_map_data,
    }
    cells! { cells, Secret:
        "secret_data" => secret_data,
        "secret_type" => |o| o.r#type.clone(),
    }
    cells! { cells, Lease:
        "lease_holder" => lease_holder,
    }
    cells! { cells, Namespace:
        "namespace_status" => |o| o.status.phase.clone(),
    }
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
