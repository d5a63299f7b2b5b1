//! Cells of kinds that hold settings: ConfigMap and Secret.

use keelson_api::core::v1::{ConfigMap, Secret};

use super::count;

cells! { pub const CONFIG_MAP: ConfigMap =
    "config_map_data" => config_map_data,
}
cells! { pub const SECRET: Secret =
    "secret_data" => secret_data,
    "secret_type" => |o| o.r#type.clone(),
}

/// Number of entries.
fn config_map_data(o: &ConfigMap) -> i64 {
    count(o.data.len() + o.binary_data.len())
}

/// Number of entries.
fn secret_data(o: &Secret) -> i64 {
    count(o.data.len())
}
