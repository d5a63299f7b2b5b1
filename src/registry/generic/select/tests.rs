//! Lists by selectors that are interrupted anywhere, while others list and write.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Waker};

use keelson_access::authn::Authentication;
use keelson_access::authz::{AlwaysAllow, Authorization};
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_codegen_sample::api::shop_example_com::v1::{Item, Order};
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_storage::memory::MemoryStore;
use keelson_storage::{Expect, HistoryLimits, Revision, Store, Write, Written};

use std::sync::Arc;

use super::*;
use crate::cache::{Budget, Derived};
use crate::generic::{Backend, Client, KindCode, Registry, RuntimeConfig, Strategy, Verbs};

/// More than are looked through one by one.
const COUNT: usize = 230;
const VALUES: [&str; 3] = ["a", "b", "c"];

/// The same numbers for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

struct Setting {
    store: Arc<MemoryStore>,
    resource: Arc<Resource>,
    /// The label of each order, by the revisions of the store.
    past: BTreeMap<Revision, BTreeMap<String, &'static str>>,
}

fn backend(store: Arc<MemoryStore>) -> Backend {
    Backend {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: Budget::new(0),
        encryption: keelson_storage::encryption::Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    }
}

impl Setting {
    fn new() -> Setting {
        keelson_base::cooperative::yield_everywhere();
        let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
        let backend = backend(store.clone());
        let schemes = [&keelson_codegen_sample::api::SCHEME];
        let registry = Registry::new(
            &schemes,
            &KindCode::default(),
            &backend,
            "/registry",
            &RuntimeConfig::all(),
        )
        .unwrap();
        Setting {
            store,
            resource: registry.resource("shop.example.com", "orders").unwrap(),
            past: BTreeMap::new(),
        }
    }

    fn present(&self) -> BTreeMap<String, &'static str> {
        self.past.values().next_back().cloned().unwrap_or_default()
    }

    /// Gives an order a label, or removes the order.
    async fn write(&mut self, number: usize, label: Option<&'static str>) {
        let name = format!("order-{number:03}");
        let key = format!("{}default/{name}", self.resource.key_prefix);
        let there = self.store.get(&key).await.unwrap().entry;
        let expect = there.map_or(Expect::Absent, |entry| Expect::Revision(entry.mod_revision));
        let write = match label {
            None => Write::Delete,
            Some(label) => Write::Put {
                value: format!(
                    r#"{{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{{"name":"{name}","namespace":"default","labels":{{"l":"{label}","m":"{label}"}}}},"spec":{{"customer":"{label}"}}}}"#
                )
                .into(),
                lease: None,
            },
        };
        let Written::Done { revision } = self.store.write(&key, expect, write).await.unwrap() else {
            panic!("nobody else writes");
        };
        let mut present = self.present();
        match label {
            Some(label) => drop(present.insert(name, label)),
            None => drop(present.remove(&name)),
        }
        self.past.insert(revision, present);
    }
}

/// What a list selects by, and the values that it wants.
type Wanted = (&'static str, &'static str, &'static [&'static str]);

const LISTS: [Wanted; 6] = [
    ("l=a", "", &["a"]),
    ("l in (a,b)", "", &["a", "b"]),
    ("m=b", "", &["b"]),
    ("", "spec.customer=c", &["c"]),
    ("l=a", "spec.customer=a", &["a"]),
    ("l!=a", "", &["b", "c"]),
];

type List = (Wanted, Pin<Box<dyn Future<Output = (Revision, Vec<String>)>>>);

fn list(resource: Arc<Resource>, wanted: Wanted) -> List {
    let listing = async move {
        let (labels, fields) = (
            LabelSelector::parse(wanted.0).unwrap(),
            FieldSelector::parse(wanted.1).unwrap(),
        );
        let query = Query {
            namespace: "default",
            labels: &labels,
            fields: &fields,
            limit: 0,
            revision: None,
            from: None,
            left: None,
        };
        let chosen = resource.select(&query).await.unwrap();
        let names = chosen
            .items
            .entries()
            .map(|entry| entry.key.rsplit('/').next().unwrap().to_owned());
        (chosen.revision, names.collect())
    };
    (wanted, Box::pin(listing))
}

async fn interleaved(seed: u64) {
    let mut random = Random(seed);
    let mut setting = Setting::new();
    for number in 0..COUNT {
        setting.write(number, Some(VALUES[number % VALUES.len()])).await;
    }
    let mut lists: Vec<List> = Vec::new();
    let mut done = 0;
    while done < 60 {
        match random.below(10) {
            0..3 => {
                let label = VALUES.get(random.below(VALUES.len() + 1)).copied();
                for _ in 0..1 + random.below(20) {
                    let (number, label) = (random.below(COUNT + 20), label);
                    if label.is_some() || setting.present().contains_key(&format!("order-{number:03}")) {
                        setting.write(number, label).await;
                    }
                }
            }
            3 if lists.len() < 8 => {
                let wanted = LISTS[random.below(LISTS.len())];
                lists.push(list(setting.resource.clone(), wanted));
            }
            // A client that leaves.
            4 if random.below(10) == 0 && !lists.is_empty() => drop(lists.swap_remove(0)),
            _ if !lists.is_empty() => {
                let at = random.below(lists.len());
                for _ in 0..1 + random.below(400) {
                    let polled = lists[at].1.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    let std::task::Poll::Ready((revision, names)) = polled else {
                        continue;
                    };
                    let wanted = lists.swap_remove(at).0;
                    let present = &setting.past[&revision];
                    let expected = present.iter().filter(|(_, label)| wanted.2.contains(*label));
                    let expected: Vec<&String> = expected.map(|(name, _)| name).collect();
                    assert_eq!(names.iter().collect::<Vec<_>>(), expected, "seed {seed}, {wanted:?}");
                    done += 1;
                    break;
                }
            }
            _ => {}
        }
    }
}

/// Each list shows what there was at its revision, whoever has made or brought forward the indexes, and how far.
#[tokio::test]
async fn lists_by_selectors_show_their_revision_whatever_happens_meanwhile() {
    for seed in 0..10 {
        interleaved(seed).await;
    }
}

/// Reading many objects lets others in, also while an index is made of them; who asks for something else does not wait.
#[tokio::test]
async fn an_index_is_made_in_slices() {
    let mut setting = Setting::new();
    for number in 0..COUNT {
        setting.write(number, Some("a")).await;
    }
    let (by_field, by_label) = (LISTS[3], LISTS[0]);
    let mut cx = Context::from_waker(Waker::noop());
    let mut making = list(setting.resource.clone(), by_field).1;
    assert!(making.as_mut().poll(&mut cx).is_pending());
    let mut beside = list(setting.resource.clone(), by_label).1;
    let mut polls = 0;
    while beside.as_mut().poll(&mut cx).is_pending() {
        polls += 1;
    }
    assert!(polls >= COUNT, "{polls}");
    assert!(making.as_mut().poll(&mut cx).is_pending());
}

/// Who asks for what somebody makes an index of reads nothing, waits, and goes on when the index is there or given up.
#[tokio::test]
async fn an_index_in_the_making_is_waited_for() {
    for given_up in [false, true] {
        let mut setting = Setting::new();
        for number in 0..COUNT {
            setting.write(number, Some("c")).await;
        }
        let mut cx = Context::from_waker(Waker::noop());
        let mut making = list(setting.resource.clone(), LISTS[3]).1;
        assert!(making.as_mut().poll(&mut cx).is_pending());
        let mut beside = list(setting.resource.clone(), LISTS[3]).1;
        for _ in 0..4 * COUNT {
            assert!(beside.as_mut().poll(&mut cx).is_pending());
        }
        match given_up {
            true => drop(making),
            false => assert_eq!(making.await.1.len(), COUNT),
        }
        assert_eq!(beside.await.1.len(), COUNT, "given up: {given_up}");
    }
}

struct Indexed;

impl Strategy for Indexed {
    type Object = Order;

    fn is_indexed(&self) -> bool {
        true
    }
}

/// What selectors ask of an object of an indexed kind is known when it is written, so that the first who asks for the
/// objects of a node does not read those of all nodes.
#[tokio::test]
async fn what_selectors_ask_is_known_of_what_was_written() {
    let store = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
    let backend = backend(store.clone());
    let mut code = KindCode::default();
    code.kind::<Order>().strategy(Indexed);
    let schemes = [&keelson_codegen_sample::api::SCHEME];
    let registry = Registry::new(&schemes, &code, &backend, "/registry", &RuntimeConfig::all()).unwrap();
    let resource = registry.resource("shop.example.com", "orders").unwrap();
    let verbs = Arc::new(Verbs {
        registry: Arc::new(registry),
        backend,
        authentication: Authentication::default(),
        authorization: Authorization::new(vec![Arc::new(AlwaysAllow)]),
    });
    let orders = Client::of_server(verbs, "test").of::<Order>("default").unwrap();
    let known = async || {
        let entry = store
            .get(&format!("{}default/one", resource.key_prefix))
            .await
            .unwrap()
            .entry
            .unwrap();
        let derived = Derived::of(&entry).unwrap();
        let meta = derived.meta(resource.selectable_id);
        meta.map(|meta| meta.label("l").unwrap_or_default().to_owned())
    };
    let mut order = Order::default();
    order.metadata.name = "one".to_owned();
    order.spec.customer = "c".to_owned();
    order.spec.address.street = "s".to_owned();
    order.spec.items.push(Item {
        article: "a".to_owned(),
        ..Default::default()
    });
    orders.create(order).await.unwrap();
    assert_eq!(known().await.as_deref(), Some(""));
    let label = |order: &mut Order| drop(order.metadata.labels.insert("l".to_owned(), "a".to_owned()));
    orders.update("one", label).await.unwrap();
    assert_eq!(known().await.as_deref(), Some("a"));
}
