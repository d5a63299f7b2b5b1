//! A store over the simulated etcd, whose requests are counted, on a clock that is turned forward when nobody has
//! anything to do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::etcd::EtcdStore;
use crate::etcd::api::{Alarm, Answers, Api, ApiError, Header, Range, Ranged, Status, Txn, TxnDone, WatchRequest};
use crate::etcd::calls::Calls;
use crate::etcd::tasks::Tasks;
use crate::simulation::etcd::cluster::Cluster;
use crate::simulation::etcd::network::{Network, Reached};
use crate::simulation::random::Dice;
use crate::simulation::truth::Op;
use crate::{LeaseId, Revision};

/// etcd, the way to it, and a store.
pub struct Simulated {
    pub cluster: Arc<Cluster>,
    pub network: Network,
    pub store: Arc<EtcdStore>,
    lists: Arc<Mutex<Vec<(String, usize)>>>,
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
        let lists: Arc<Mutex<Vec<_>>> = Arc::default();
        let api = Arc::new(Counted {
            api: Reached {
                cluster: cluster.clone(),
                network: network.clone(),
            },
            lists: lists.clone(),
        });
        let calls = Calls::over(api, Tasks::of_this_runtime());
        let store = Arc::new(EtcdStore::begin(calls, None).await.unwrap());
        Simulated {
            cluster,
            network,
            store,
            lists,
        }
    }

    /// Requests for more than one key since the last call: the first key and the limit.
    pub fn lists(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut self.lists.lock().unwrap())
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

struct Counted {
    api: Reached,
    lists: Arc<Mutex<Vec<(String, usize)>>>,
}

impl Api for Counted {
    fn range<'a>(&'a self, range: &'a Range<'a>) -> BoxFuture<'a, Result<Ranged, ApiError>> {
        if range.end.is_some() {
            self.lists.lock().unwrap().push((range.key.to_owned(), range.limit));
        }
        self.api.range(range)
    }
    fn txn<'a>(&'a self, txn: &'a Txn<'a>) -> BoxFuture<'a, Result<TxnDone, ApiError>> {
        self.api.txn(txn)
    }
    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], lease: Option<LeaseId>) -> BoxFuture<'a, PutDone> {
        self.api.put(key, value, lease)
    }
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), ApiError>> {
        self.api.compact(revision)
    }
    fn grant(&self, seconds: i64) -> BoxFuture<'_, Result<LeaseId, ApiError>> {
        self.api.grant(seconds)
    }
    fn time_to_live(&self, id: LeaseId) -> BoxFuture<'_, Result<i64, ApiError>> {
        self.api.time_to_live(id)
    }
    fn status(&self) -> BoxFuture<'_, Result<Status, ApiError>> {
        self.api.status()
    }
    fn statuses(&self) -> BoxFuture<'_, Vec<(String, Result<Status, ApiError>)>> {
        self.api.statuses()
    }
    fn alarms(&self) -> BoxFuture<'_, Result<Vec<Alarm>, ApiError>> {
        self.api.alarms()
    }
    fn watch<'a>(&'a self, watch: &'a WatchRequest<'a>) -> BoxFuture<'a, Result<Box<dyn Answers>, ApiError>> {
        self.api.watch(watch)
    }
}

type PutDone = Result<Header, ApiError>;

/// Lets everybody do what can be done now.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
