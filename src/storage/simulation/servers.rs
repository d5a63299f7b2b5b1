//! Servers: each has an etcd store of its own, and may be begun anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::etcd::cluster::Cluster;
use super::etcd::network::{Network, Reached};
use super::truth::{self, Now, Truth};
use super::world::World;
use crate::Store;
use crate::etcd::EtcdStore;
use crate::etcd::calls::Calls;
use crate::etcd::tasks::Tasks;

pub struct Server {
    inner: Mutex<Inner>,
}

struct Inner {
    store: Arc<EtcdStore>,
    /// The last writes of keys that the store has answered.
    wrote: BTreeMap<String, Now>,
}

impl Server {
    /// Begins, however long it takes to reach etcd.
    pub async fn begin(world: &World, cluster: &Arc<Cluster>, network: &Network, compacts: Option<Duration>) -> Server {
        let inner = Inner {
            store: connect(world, cluster, network, compacts).await,
            wrote: BTreeMap::new(),
        };
        Server {
            inner: Mutex::new(inner),
        }
    }

    /// Ends the store, and begins another one in its place.
    pub async fn restart(&self, world: &World, cluster: &Arc<Cluster>, network: &Network, compacts: Option<Duration>) {
        self.store().close().await;
        let store = connect(world, cluster, network, compacts).await;
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.store = store;
        inner.wrote.clear();
    }

    pub fn store(&self) -> Arc<EtcdStore> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).store.clone()
    }

    /// Notes a write that `store` has answered.
    pub fn note(&self, store: &Arc<EtcdStore>, key: &str, at: Now) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&inner.store, store) {
            return;
        }
        let noted = inner.wrote.entry(key.to_owned()).or_insert(at);
        if noted.timeline != at.timeline || noted.revision < at.revision {
            *noted = at;
        }
    }

    /// The last write of a key that was answered.
    pub fn wrote(&self, key: &str) -> Option<Now> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.wrote.get(key).copied()
    }

    /// What memory holds of a prefix is what there is now. (It may not know that this is so: members that can't be
    /// asked don't tell.)
    pub fn is_current(&self, prefix: &str, truth: &Truth) -> bool {
        let Some(held) = self.store().held(prefix) else {
            return true;
        };
        let now = truth.now();
        let keys = truth.keys(now.timeline, now.revision).unwrap_or_default();
        held.range(prefix, prefix).eq(truth::below(&keys, prefix))
    }
}

async fn connect(
    world: &World,
    cluster: &Arc<Cluster>,
    network: &Network,
    compacts: Option<Duration>,
) -> Arc<EtcdStore> {
    loop {
        let spawner = world.spawner.clone();
        let api = Arc::new(Reached {
            cluster: cluster.clone(),
            network: network.clone(),
        });
        let calls = Calls::over(api, Tasks::Own(Arc::new(move |task| spawner.spawn(task))));
        match EtcdStore::begin(calls, compacts).await {
            Ok(store) => return Arc::new(store),
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}
