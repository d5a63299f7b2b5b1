//! Cells of namespaces.

use keelson_api::core::v1::Namespace;

cells! { pub const NAMESPACE: Namespace =
    "namespace_status" => |o| o.status.phase.clone(),
}
