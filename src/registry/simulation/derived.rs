//! Derived state in the simulation of stores: indexes answer lists by selector, reflectors know which objects there
//! are, informers lose no change. All of them are measured by what was written.
//!
//! `KEELSON_SEED=<seed> cargo test -p keelson-registry simulation::derived::one -- --nocapture` repeats a run and tells
//! what happens.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use keelson_access::lister::{Change, Feed, Place};
use keelson_base::cooperative::yield_everywhere;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_storage::encryption::Encryption;
use keelson_storage::etcd::EtcdStore;
use keelson_storage::simulation::Outcome;
use keelson_storage::simulation::plan::Shape;
use keelson_storage::simulation::seeds::{one_seed, run, sweep};
use keelson_storage::simulation::servers::Server;
use keelson_storage::simulation::shared_etcd::{Run, run_with};
use keelson_storage::simulation::truth::{self, Now, Truth};
use keelson_storage::simulation::world::World;
use keelson_storage::{Entry, Revision, Store};
use tokio::time::{sleep, timeout};

use crate::cache::{Budget, Items};
use crate::generic::select::Query;
use crate::generic::{
    Backend, Change as Told, Changes, Informer, KindCode, Lister, Reflector, Registry, Resource, RuntimeConfig,
};

const PREFIX: &str = "/registry/shop/orders/";

/// Orders, enough of them for indexes.
const ORDERS: Shape = Shape {
    prefixes: &[PREFIX],
    folder: "default/",
    value: order,
    base: 210,
};

/// The labels that lists select.
const APPS: usize = 3;

fn order(name: &str, text: &str) -> Bytes {
    let app = text.bytes().map(usize::from).sum::<usize>() % APPS;
    let labels = format!(r#"{{"app":"{app}","text":"{text}"}}"#);
    let metadata = format!(r#"{{"name":"{name}","namespace":"default","labels":{labels}}}"#);
    format!(r#"{{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{metadata}}}"#).into()
}

/// What one server derives from one store.
struct Derived {
    store: Arc<EtcdStore>,
    resource: Arc<Resource>,
    reflector: Reflector,
    /// The texts of the objects that the reflector has told of.
    known: BTreeMap<Place, String>,
}

impl Derived {
    fn of(store: Arc<EtcdStore>) -> Derived {
        yield_everywhere();
        let backend = Backend {
            store: store.clone(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            budget: Budget::new(0),
            encryption: Encryption::none(),
            placement: Arc::default(),
            corrupt: Default::default(),
        };
        let schemes = [&keelson_codegen_sample::api::SCHEME];
        let registry = Registry::new(
            &schemes,
            &KindCode::default(),
            &backend,
            "/registry",
            &RuntimeConfig::all(),
        )
        .unwrap();
        let resource = registry.resource("shop.example.com", "orders").unwrap();
        assert_eq!(resource.key_prefix, PREFIX);
        Derived {
            store,
            resource,
            reflector: Reflector::of(registry.resource("shop.example.com", "orders").unwrap()),
            known: BTreeMap::new(),
        }
    }

    fn text(&self, entry: &Entry) -> String {
        let meta = self.resource.meta(entry).unwrap();
        meta.label("text").unwrap_or_default().to_owned()
    }

    fn follow(&mut self) {
        let known = &mut self.known;
        self.reflector.catch_up(&mut |changes| {
            for change in changes {
                match change {
                    Change::Reset => known.clear(),
                    Change::Put(place, object) => {
                        let text = object.meta().labels.get("text").map(|text| text.to_string());
                        known.insert(place, text.unwrap_or_default());
                    }
                    Change::Gone(place) => drop(known.remove(&place)),
                }
            }
        });
    }
}

/// A client of one server that lists by selector, and asks what its reflectors know.
struct Guest {
    world: Arc<World>,
    truth: Arc<Truth>,
    servers: Arc<Vec<Server>>,
    number: usize,
}

impl Guest {
    async fn run(self) {
        let mut derived = Derived::of(self.servers[self.number].store());
        loop {
            let store = self.servers[self.number].store();
            if !Arc::ptr_eq(&store, &derived.store) {
                derived = Derived::of(store);
            }
            match self.world.dice.chance(600) {
                true => self.list(&derived).await,
                false => self.follow(&mut derived),
            }
            match self.world.is_busy() {
                true => {
                    sleep(Duration::from_millis(20)).await;
                    self.world.pause().await;
                }
                false => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    async fn list(&self, derived: &Derived) {
        let app = self.world.dice.below(APPS).to_string();
        let labels = LabelSelector::parse(&format!("app={app}")).unwrap();
        let query = Query {
            namespace: "",
            labels: &labels,
            fields: &FieldSelector::everything(),
            limit: 0,
            revision: None,
            from: None,
            left: None,
        };
        let before = self.truth.now();
        let Ok(chosen) = derived.resource.select(&query).await else {
            return;
        };
        let Items::These(entries) = chosen.items else {
            return self.world.fail("a list by selector is a selection", "a range");
        };
        let after = self.truth.now();
        let right = (before.timeline..=after.timeline).any(|timeline| {
            let keys = self.truth.keys(timeline, chosen.revision).unwrap_or_default();
            let all = truth::below(&keys, PREFIX).into_iter();
            let selected = all.filter(|entry| derived.resource.meta(entry).unwrap().label("app") == Some(&*app));
            selected.eq(entries.iter().cloned())
        });
        let stale = before.timeline == after.timeline && chosen.revision < before.revision;
        if !right || stale {
            let what = format!("{} at {}, asked for at {before:?}", entries.len(), chosen.revision);
            self.world.fail("a list by selector shows what was written", what);
        }
    }

    fn follow(&self, derived: &mut Derived) {
        derived.follow();
        let Some(held) = derived.store.held(PREFIX) else { return };
        let expected = held.range(PREFIX, PREFIX).map(|entry| derived.text(&entry));
        let mut expected: Vec<String> = expected.collect();
        let mut known: Vec<String> = derived.known.values().cloned().collect();
        expected.sort_unstable();
        known.sort_unstable();
        if known != expected {
            let now: Now = self.truth.now();
            let what = format!(
                "{} of {} at {}, now {now:?}",
                known.len(),
                expected.len(),
                held.revision()
            );
            self.world.fail("a reflector knows what memory holds", what);
        }
    }
}

/// What a reader knows of each object: the revision of its last change, or that it is gone.
type Known = Arc<Mutex<BTreeMap<String, Option<Revision>>>>;

/// The code of one server that is told what changes by an informer, and then reads what is there.
struct Observer {
    world: Arc<World>,
    truth: Arc<Truth>,
    servers: Arc<Vec<Server>>,
    number: usize,
    known: Known,
}

impl Observer {
    async fn run(self) {
        loop {
            let store = self.servers[self.number].store();
            let mut informer = Informer::new(Derived::of(store.clone()).resource);
            let lister = informer.lister();
            while let Some(changes) = self.told(&store, &mut informer).await {
                // Of several changes of an object the last one. What is gone etcd is asked about, so all at once.
                let last: BTreeMap<_, _> = changes.all.iter().map(|change| (&change.key, change)).collect();
                join_all(last.values().map(|change| self.read(&store, &lister, change))).await;
            }
            // What the next server is not told of is gone.
            self.known.lock().unwrap().clear();
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// `None`: the store is closed, or the server has another one.
    async fn told(&self, store: &Arc<EtcdStore>, informer: &mut Informer) -> Option<Changes> {
        let mut next = pin!(informer.next());
        while self.is_current(store) {
            if let Ok(told) = timeout(Duration::from_secs(1), &mut next).await {
                return told;
            }
        }
        None
    }

    fn is_current(&self, store: &Arc<EtcdStore>) -> bool {
        Arc::ptr_eq(store, &self.servers[self.number].store())
    }

    /// Reads until it is answered.
    async fn read(&self, store: &Arc<EtcdStore>, lister: &Lister, change: &Told) {
        let key = format!("{PREFIX}{}", change.key);
        while self.is_current(store) {
            let (before, own) = (self.truth.now(), self.servers[self.number].wrote(&key));
            let Ok(shown) = lister.entry(&change.key).await else {
                sleep(Duration::from_millis(200)).await;
                continue;
            };
            let now = self.truth.now();
            let shown = shown.map(|entry| entry.mod_revision);
            if before.timeline == now.timeline {
                let own = own.filter(|own| own.timeline == now.timeline).map(|own| own.revision);
                // What was told may be of a past that was lost since.
                let told = change.entry().filter(|told| {
                    let then = self.truth.keys(now.timeline, told.mod_revision).unwrap_or_default();
                    then.get(&*key) == Some(told)
                });
                let least = own.max(told.map(|told| told.mod_revision));
                if shown.is_some() && shown < least {
                    let what = format!("{key}@{shown:?}, told or written at {least:?}");
                    self.world
                        .fail("a lister shows what was told, and what its server has written", what);
                }
            }
            self.known.lock().unwrap().insert(key, shown);
            return;
        }
    }

    /// What is not known yet.
    fn missing(known: &Known, truth: &Truth, number: usize) -> Option<String> {
        let now = truth.now();
        let keys = truth.keys(now.timeline, now.revision).unwrap_or_default();
        let there = truth::below(&keys, PREFIX).into_iter();
        let there: BTreeMap<_, _> = there
            .map(|entry| (entry.key.to_string(), Some(entry.mod_revision)))
            .collect();
        let mut known = known.lock().unwrap().clone();
        known.retain(|_, shown| shown.is_some());
        (known != there).then(|| {
            format!(
                "the informer of server {number} knows {} of {}",
                known.len(),
                there.len()
            )
        })
    }
}

fn play(seed: u64, talks: bool) -> Outcome {
    run_with(seed, talks, ORDERS, |run: &Run| {
        for number in 0..run.plan.servers {
            let observer = Observer {
                world: run.world.clone(),
                truth: run.cluster.truth.clone(),
                servers: run.servers.clone(),
                number,
                known: Known::default(),
            };
            let (known, truth) = (observer.known.clone(), observer.truth.clone());
            let missing = move || Observer::missing(&known, &truth, number);
            run.guests.lock().unwrap().push(Box::new(missing));
            run.world.spawner.spawn(observer.run());
            let guest = Guest {
                world: run.world.clone(),
                truth: run.cluster.truth.clone(),
                servers: run.servers.clone(),
                number,
            };
            run.world.spawner.spawn(guest.run());
        }
    })
}

#[test]
fn what_is_derived_is_right() {
    sweep(play, 500, "keelson-registry", "simulation::derived::one");
}

#[test]
fn one() {
    let Some(seed) = one_seed() else { return };
    let outcome = run(play, seed, true);
    println!("{}", outcome.plan);
    assert_eq!(outcome.violation, None);
}
