//! The two writes of a deletion that waits for nobody, in a task of their own: a client that leaves, or a request whose
//! time is over, must not come between them.

use std::sync::Arc;

use keelson_storage::{Entry, Expect, Store, StoreError, Write, Written};

/// What came of both writes.
pub(super) struct Done {
    pub marked: Result<Written, StoreError>,
    /// Of the removal of what was marked; nothing was to be removed if the mark was not written.
    pub removed: Result<Written, StoreError>,
}

/// Puts `mark` in the place of an entry, and then removes that.
pub(super) async fn mark_and_remove(store: Arc<dyn Store>, entry: &Entry, mark: Write) -> Done {
    let (key, replaced) = (entry.key.clone(), entry.mod_revision);
    let both = tokio::spawn(async move {
        let marked = store.write(&key, Expect::Revision(replaced), mark).await;
        let removed = match &marked {
            Ok(Written::Done { revision }) => store.write(&key, Expect::Revision(*revision), Write::Delete).await,
            other => other.clone(),
        };
        Done { marked, removed }
    });
    both.await.unwrap_or_else(|error| {
        let failed = StoreError::Unavailable(error.to_string());
        Done {
            marked: Err(failed.clone()),
            removed: Err(failed),
        }
    })
}
