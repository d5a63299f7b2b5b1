//! Capacities of storage.

use keelson_api::storage_k8s_io::v1::CSIStorageCapacity;
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::core::pod_spec::warnings;
use crate::faults::{self, Faults};
use crate::metadata;

/// Registers the rules of capacities.
pub fn register(code: &mut KindCode) {
    code.kind::<CSIStorageCapacity>()
        .strategy(CsiStorageCapacityStrategy)
        .metadata_checks(metadata::WHOLE_FIRST)
        .kept([Kept::at("nodeTopology"), Kept::at("storageClassName")]);
}

/// The rules of capacities.
struct CsiStorageCapacityStrategy;

impl Strategy for CsiStorageCapacityStrategy {
    type Object = CSIStorageCapacity;

    fn warnings(&self, new: &CSIStorageCapacity, _old: Option<&CSIStorageCapacity>) -> Vec<String> {
        let Some(nodes) = &new.node_topology else {
            return Vec::new();
        };
        let path = Path::new("nodeTopology");
        let expressions = nodes.match_expressions.iter().enumerate();
        let of_expressions = expressions.filter_map(|(i, e)| {
            let path = path.child("matchExpressions").index(i).child("key");
            Some(format!("{path}: {} is {}", e.key, warnings::of_node_label(&e.key)?))
        });
        let of_labels = nodes.match_labels.keys().filter_map(|key| {
            let path = path.child("matchLabels");
            Some(format!("{path}.{key}: {}", warnings::of_node_label(key)?))
        });
        of_expressions.chain(of_labels).collect()
    }

    fn validate(&self, _context: &Context, new: &CSIStorageCapacity, old: Option<&CSIStorageCapacity>) -> ErrorList {
        let was = old.and_then(|old| old.node_topology.as_deref());
        let is_odd = faults::are_in(|f| f.selector("", was));
        faults::of_object(|f| check(f, new, is_odd))
    }
}

fn check(f: &mut Faults<'_>, capacity: &CSIStorageCapacity, lenient: bool) {
    f.selector_as_stored("nodeTopology", capacity.node_topology.as_deref(), lenient);
    f.at("storageClassName").subdomain(&capacity.storage_class_name);
    if let Some(amount) = &capacity.capacity {
        f.at("capacity").amount(amount);
    }
}
