//! Background tasks of a server: they go on beside requests for as long as the `LocalSet` runs of the thread that
//! started it.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use keelson_access::flowcontrol::{self, FlowControl};
use keelson_registry::{Backend, Held};
use keelson_storage::encryption::Transformer;

use crate::lifecycle::Hooks;
use crate::state::ServerState;

/// Has stores hold in memory what decisions read there. A store that lies elsewhere tries on by itself.
pub(super) fn hold(held: Vec<Held>) {
    tokio::task::spawn_local(async move {
        for Held {
            store,
            prefix,
            transformer,
        } in held
        {
            match store.snapshot(&prefix).await {
                Ok(held) => {
                    // So that no decision has to wait for a key management service.
                    for asked in held
                        .range(&prefix, &prefix)
                        .filter_map(|e| transformer.prepare(&e.value))
                    {
                        asked.await;
                    }
                }
                Err(error) => tracing::warn!(%error, prefix, "reading what decisions need"),
            }
        }
    });
}

/// Shows how large the stores are, for as long as this thread's `LocalSet` runs.
pub(super) fn follow_sizes(state: &Data<ServerState>, backend: Backend) {
    let Some(interval) = backend.placement.size_interval else {
        return;
    };
    let state = state.clone();
    tokio::task::spawn_local(async move {
        loop {
            for (n, store) in backend.stores().enumerate() {
                match store.size().await {
                    Ok(Some(bytes)) => state.metrics.set_store_size(n, bytes),
                    Ok(None) => {}
                    Err(error) => tracing::warn!(%error, "asking a store for its size"),
                }
            }
            tokio::time::sleep(interval).await;
        }
    });
}

/// Forgets the metrics of resources that have gone, for as long as this thread's `LocalSet` runs.
pub(super) fn forget_metrics(state: &Data<ServerState>) {
    /// Requests that are under way when a resource goes still count.
    const PAUSE: Duration = Duration::from_secs(1);
    let state = state.clone();
    let mut changes = state.rest.registry.changes();
    tokio::task::spawn_local(async move {
        while changes.changed().await.is_ok() {
            tokio::time::sleep(PAUSE).await;
            changes.mark_unchanged();
            let is_served = |group: &str, version: &str, plural: &str| {
                let mut delegates = state.delegates.iter();
                delegates.any(|delegate| delegate.lookup(group, version, plural).is_some())
            };
            state.metrics.requests.retain(is_served);
        }
    });
}

/// Shares seats out anew again and again, for as long as this thread's `LocalSet` runs.
pub(super) fn share_seats(control: Arc<FlowControl>, hooks: &Hooks) {
    hooks.finish("priority-and-fairness-filter", Ok(()));
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(flowcontrol::PERIOD).await;
            control.adjust();
        }
    });
}
