//! Generic admission plug-ins: those that know no kind but namespaces. The chain is [`keelson_registry::admission`].

mod namespace_lifecycle;

use std::sync::Arc;

pub use namespace_lifecycle::NamespaceLifecycle;

use keelson_registry::admission::Plugin;

/// The generic plug-ins, in their order.
pub fn plugins() -> Vec<Arc<dyn Plugin>> {
    vec![Arc::new(NamespaceLifecycle)]
}
