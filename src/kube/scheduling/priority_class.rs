//! Priority classes.

use keelson_api::scheduling_k8s_io::v1::PriorityClass;
use keelson_registry::{Context, Kept, KindCode, Strategy};

use crate::cells;
use crate::metadata;

const KEPT: &[Kept] = &[
    Kept {
        forbidden: Some("may not be changed in an update."),
        ..Kept::at("value")
    },
    Kept::at("preemptionPolicy"),
];

/// Registers the rules of priority classes.
pub fn register(code: &mut KindCode) {
    code.kind::<PriorityClass>()
        .strategy(PriorityClassStrategy)
        .metadata_checks(metadata::CHANGE)
        .kept(KEPT)
        .cells(cells::quota::PRIORITY_CLASS);
}

/// The rules of priority classes.
struct PriorityClassStrategy;

impl Strategy for PriorityClassStrategy {
    type Object = PriorityClass;

    /// A class has a first generation and never another.
    fn prepare_for_create(&self, _context: &Context, object: &mut PriorityClass) {
        object.metadata.generation = 1;
    }
}
