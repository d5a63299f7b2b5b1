//! Nodes as drivers of volumes know them.

use std::collections::HashMap;

use keelson_api::storage_k8s_io::v1::{CSINode, CSINodeDriver};
use keelson_machinery::equality;
use keelson_machinery::field::ErrorList;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::core::volume_source;
use crate::faults::{self, Faults, Unique};
use crate::metadata;
use crate::typed::{IMMUTABLE, shown};

/// Longest name that a driver has for a node, in bytes.
const ID_MAX: usize = 256;

/// Registers the rules of these nodes.
pub fn register(code: &mut KindCode) {
    code.kind::<CSINode>()
        .strategy(CsiNodeStrategy)
        .metadata_checks(metadata::WHOLE)
        .cells(cells::storage::CSI_NODE);
}

/// The rules of these nodes.
struct CsiNodeStrategy;

impl Strategy for CsiNodeStrategy {
    type Object = CSINode;

    fn validate(&self, _context: &Context, new: &CSINode, old: Option<&CSINode>) -> ErrorList {
        let mut names = Unique::default();
        faults::of_spec(|f| {
            f.each("drivers", &new.spec.drivers, |f, one| {
                driver(f, one);
                names.check(&mut f.at("name"), &one.name);
            });
            // Names are unique: another rule says so.
            let drivers = new.spec.drivers.iter();
            let by_name: HashMap<&str, &CSINodeDriver> = drivers.map(|new| (new.name.as_str(), new)).collect();
            let were = old.iter().flat_map(|old| &old.spec.drivers);
            let pairs = were.filter_map(|old| Some((lasting(by_name.get(old.name.as_str())?), lasting(old))));
            for (new, _) in pairs.filter(|(new, old)| !equality::equal(new, old)) {
                f.at("drivers").invalid(shown(&new), IMMUTABLE);
            }
        })
    }
}

fn driver(f: &mut Faults<'_>, driver: &CSINodeDriver) {
    volume_source::driver(&mut f.at("name"), &driver.name);
    let id = driver.node_id.as_str();
    f.at("nodeID").filled(id);
    if id.len() > ID_MAX {
        f.at("nodeID")
            .invalid(id, format!("must be {ID_MAX} characters or less"));
    }
    let count = driver.allocatable.as_ref().and_then(|a| a.count);
    f.at("allocatable").at("count").non_negative(count);
    // Faults of keys are told at the driver.
    let mut keys = Unique::default();
    for key in &driver.topology_keys {
        f.filled(key);
        keys.check(f, key);
        f.qualified(key);
    }
}

/// What a driver that comes and goes always says of the node: all but how many volumes it still takes.
fn lasting(driver: &CSINodeDriver) -> CSINodeDriver {
    CSINodeDriver {
        allocatable: None,
        ..driver.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_driver_knows_a_node_by_one_name() {
        let changed = |new: &str| {
            let read = |drivers: &str| read::<CSINode>(&format!(r#"{{"spec":{{"drivers":[{drivers}]}}}}"#));
            let old = read(r#"{"name":"d","nodeID":"n"}"#);
            lines(&CsiNodeStrategy.validate(&context(), &read(new), Some(&old)))
        };
        assert_eq!(changed(r#"{"name":"d","nodeID":"n","allocatable":{"count":3}}"#), "");
        assert_eq!(changed(r#"{"name":"e","nodeID":"m"}"#), "");
        assert!(changed(r#"{"name":"d","nodeID":"m"}"#).starts_with("spec.drivers: Invalid value: "));
        assert!(changed(r#"{"name":"d","nodeID":"n","topologyKeys":["k"]}"#).starts_with("spec.drivers: "));
    }
}
