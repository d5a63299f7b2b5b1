//! A store over the simulated etcd, on a clock that is turned forward when nobody has anything to do.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::Revision;
use crate::etcd::EtcdStore;
use crate::etcd::calls::Calls;
use crate::etcd::tasks::Tasks;
use crate::simulation::dice::Dice;
use crate::simulation::etcd::cluster::Cluster;
use crate::simulation::etcd::network::{Network, Reached};
use crate::simulation::truth::Op;

/// etcd, the way to it, and a store.
pub struct Simulated {
    pub cluster: Arc<Cluster>,
    pub network: Network,
    pub store: Arc<EtcdStore>,
}

impl Simulated {
    /// With so many members of a version. For tests whose clock is paused.
    pub async fn begin(members: usize, version: &'static str) -> Simulated {
        let dice = Dice::new(1);
        let cluster = Cluster::new(dice.clone(), members, version);
        for member in 0..members {
            tokio::spawn(cluster.clone().apply(member));
        }
        let network = Network::new(dice, None);
        let api = Arc::new(Reached {
            cluster: cluster.clone(),
            network: network.clone(),
        });
        let calls = Calls::over(api, Tasks::of_this_runtime());
        let store = Arc::new(EtcdStore::begin(calls, None).await.unwrap());
        Simulated {
            cluster,
            network,
            store,
        }
    }

    /// What others write.
    pub fn put(&self, key: &str, value: &str) -> Revision {
        let put = Some((value.to_owned().into(), None));
        self.cluster.commit(&[Op { key: key.into(), put }])
    }

    /// The streams that are open answer no more.
    pub fn mute(&self) {
        for stream in self.cluster.state().streams.values_mut() {
            stream.mute_since = Some(Instant::now());
        }
    }
}

/// Lets everybody do what can be done now.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
