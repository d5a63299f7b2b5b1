//! Priority classes.

use keelson_machinery::object::Object;
use keelson_server::registry::{Context, Strategy};

/// The rules of priority classes.
pub struct PriorityClassStrategy;

impl Strategy for PriorityClassStrategy {
    /// A class has a first generation and never another.
    fn prepare_for_create(&self, _context: &Context, object: &mut dyn Object) {
        object.meta_mut().generation = 1;
    }
}
