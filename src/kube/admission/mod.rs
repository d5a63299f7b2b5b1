//! Admission plug-ins that set something in new objects, each named as kube-apiserver names it.

mod default_toleration_seconds;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use keelson_server::registry::KindCode;

/// Adds the plug-ins, in the order in which kube-apiserver has them.
pub fn register(code: &mut KindCode) {
    code.mutation("", "nodes", taint_nodes_by_condition::PLUGIN);
    code.mutation("", "pods", default_toleration_seconds::PLUGIN);
    storage_object_in_use_protection::register(code);
}
