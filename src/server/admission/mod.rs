//! Generic admission plug-ins: those that know no kind but namespaces. The chain is [`crate::registry::admission`].

mod namespace_lifecycle;

use std::sync::Arc;

pub use namespace_lifecycle::NamespaceLifecycle;

use crate::registry::admission::Plugin;

/// The generic plug-ins, in their order.
pub fn plugins() -> Vec<Arc<dyn Plugin>> {
    vec![Arc::new(NamespaceLifecycle)]
}
