//! Guard of what a write of a service takes and frees: the one is given back if the write is not made, the other if it
//! is.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join, join_all};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_registry::reservation::Reservation;
use keelson_registry::{Client, NamespacedName, Verbs};
use tokio::sync::oneshot;

use super::super::MANAGER;
use super::super::addresses::{self, Held};
use super::super::ports::Batch;
use super::Allocators;

/// What is given back together.
#[derive(Default)]
pub struct Share {
    pub addresses: Vec<Held>,
    pub ports: Vec<i32>,
    /// Endpoints that go with their service.
    pub endpoints: Option<NamespacedName>,
}

impl Share {
    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty() && self.endpoints.is_none()
    }
}

/// What a write has taken, and what it frees.
pub struct Allocation {
    allocators: Arc<Allocators>,
    verbs: Arc<Verbs>,
    pub taken: Share,
    pub freed: Share,
    /// Dropped when all is given back.
    done: Option<oneshot::Sender<()>>,
    settled: Option<oneshot::Receiver<()>>,
}

impl Allocation {
    /// Nothing yet.
    pub fn new(allocators: &Arc<Allocators>, verbs: &Arc<Verbs>) -> Allocation {
        let (done, settled) = oneshot::channel();
        Allocation {
            allocators: allocators.clone(),
            verbs: verbs.clone(),
            taken: Share::default(),
            freed: Share::default(),
            done: Some(done),
            settled: Some(settled),
        }
    }

    /// Gives something back, in a task of its own: whoever began it may leave.
    fn give_back(&mut self, share: Share) {
        if share.is_empty() {
            return;
        }
        let (allocators, verbs, done) = (self.allocators.clone(), self.verbs.clone(), self.done.take());
        tokio::task::spawn_local(async move {
            give_back(&allocators, &verbs, share).await;
            drop(done);
        });
    }

    /// Gives back what was taken, and returns when that is done.
    pub async fn undo(mut self) {
        let settled = self.settled.take();
        drop(self);
        if let Some(settled) = settled {
            // It ends by being dropped.
            let _ = settled.await;
        }
    }
}

impl Reservation for Allocation {
    fn commit(mut self: Box<Self>) {
        self.taken = Share::default();
        let freed = std::mem::take(&mut self.freed);
        self.give_back(freed);
    }

    /// Whoever repairs finds out later.
    fn uncertain(mut self: Box<Self>) {
        self.taken = Share::default();
    }

    fn settled(&mut self) -> Option<LocalBoxFuture<'static, ()>> {
        let settled = self.settled.take()?;
        Some(settled.map(drop).boxed_local())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.give_back(taken);
    }
}

async fn give_back(allocators: &Allocators, verbs: &Arc<Verbs>, share: Share) {
    if let Some(key) = &share.endpoints {
        remove_endpoints(verbs, key).await;
    }
    let addresses = share.addresses.iter().map(|held| addresses::give_back(verbs, held));
    let ports = async {
        if share.ports.is_empty() {
            return;
        }
        let batch = Batch {
            free: share.ports,
            ..Batch::default()
        };
        if let Err(error) = allocators.ports.change(verbs, batch).await {
            tracing::warn!(%error, "node ports could not be given back; they will be found later");
        }
    };
    join(join_all(addresses), ports).await;
}

/// Nobody else's controller may be as fast: a new service of the name must not lead to the pods of the old one.
async fn remove_endpoints(verbs: &Arc<Verbs>, key: &NamespacedName) {
    let client = Client::of_server(verbs.clone(), MANAGER).untracked().nested();
    let Some(endpoints) = client.objects("", "endpoints", &key.namespace) else {
        return;
    };
    match endpoints.delete(&key.name, &DeleteOptions::default()).await {
        Err(error) if error.code != 404 => {
            tracing::warn!(service = %key, %error, "the endpoints of a service that is gone could not be deleted");
        }
        _ => {}
    }
}
