//! Reservations: what a write takes is given back unless the write commits, whatever comes between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keelson_codegen_sample::api::shop_example_com::v1::Order;
use keelson_machinery::status::StatusError;
use keelson_registry::reservation::Reservation;
use keelson_registry::{Answer, Context, Reserving, Strategy};
use keelson_storage::StoreError;
use serde_json::{Value, json};

use crate::faulty_store::Meddled;
use crate::faulty_store::Meddling::{Failed, Late, Touched};
use crate::setting::{Client, ORDERS, Server};

const ONE: &str = "/apis/shop.example.com/v1/namespaces/default/orders/one";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// The label that holds the number that an order was given.
const NUMBER: &str = "number";

/// Numbers, and what has become of each.
#[derive(Default)]
struct Numbers(Mutex<BTreeMap<u32, State>>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Held,
    Taken,
    Unsure,
}

impl Numbers {
    fn take(&self) -> u32 {
        let mut all = self.0.lock().unwrap();
        let free = (1..).find(|number| !all.contains_key(number)).unwrap();
        all.insert(free, State::Held);
        free
    }

    fn states(&self) -> Vec<(u32, State)> {
        self.0.lock().unwrap().iter().map(|(n, s)| (*n, *s)).collect()
    }
}

/// Gives each order a number, which it has to wait for.
struct Numbering(Arc<Numbers>);

impl Strategy for Numbering {
    type Object = Order;

    fn reserve<'a>(
        &'a self,
        _context: &'a Context,
        write: Reserving<'a, Order>,
    ) -> Option<Answer<'a, Box<dyn Reservation>>> {
        if write.new.metadata.labels.contains_key(NUMBER) {
            return None;
        }
        Some(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let number = self.0.take();
            let guard = Guard(self.0.clone(), number);
            if write.new.metadata.labels.contains_key("none") {
                return Err(StatusError::service_unavailable("there are no numbers"));
            }
            write.new.metadata.labels.insert(NUMBER.to_owned(), number.to_string());
            Ok(Box::new(guard) as Box<dyn Reservation>)
        }))
    }

    fn frees(&self, _context: &Context, order: &Order) -> Option<Box<dyn Reservation>> {
        let number = order.metadata.labels.get(NUMBER)?.parse().ok()?;
        Some(Box::new(Freed(self.0.clone(), number)))
    }
}

/// The number of an order that is removed.
struct Freed(Arc<Numbers>, u32);

impl Reservation for Freed {
    fn commit(self: Box<Self>) {
        self.0.0.lock().unwrap().remove(&self.1);
    }
    fn uncertain(self: Box<Self>) {}
}

struct Guard(Arc<Numbers>, u32);

impl Reservation for Guard {
    fn commit(self: Box<Self>) {
        self.0.0.lock().unwrap().insert(self.1, State::Taken);
    }
    fn uncertain(self: Box<Self>) {
        self.0.0.lock().unwrap().insert(self.1, State::Unsure);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut all = self.0.0.lock().unwrap();
        if all.get(&self.1) == Some(&State::Held) {
            all.remove(&self.1);
        }
    }
}

struct Setting {
    _server: Server,
    client: Client,
    store: Arc<Meddled>,
    numbers: Arc<Numbers>,
}

impl Setting {
    async fn new() -> Setting {
        let numbers = Arc::<Numbers>::default();
        let (sender, receiver) = std::sync::mpsc::channel();
        let strategy = Numbering(numbers.clone());
        let server = Server::configured(move |config| {
            sender.send(Meddled::of(config)).unwrap();
            config.resources.code.kind::<Order>().strategy(strategy);
        });
        let client = server.client().await;
        Setting {
            _server: server,
            client,
            store: receiver.recv().unwrap(),
            numbers,
        }
    }

    async fn create(&mut self, query: &str, change: impl FnOnce(&mut Value)) -> (u16, Value) {
        let mut order = json!({
            "metadata": {"name": "one", "labels": {}},
            "spec": {
                "customer": "ann", "street": "s", "items": [{"article": "a"}], "price": 1,
                "extra": {"apiVersion": "v1", "kind": "X"},
            },
        });
        change(&mut order);
        let path = format!("{ORDERS}{query}");
        self.client.send("POST", &path, JSON, &order.to_string()).await
    }
}

#[tokio::test]
async fn a_write_keeps_what_it_took_when_it_commits() {
    let mut setting = Setting::new().await;
    let (code, told) = setting.create("", |_| {}).await;
    assert_eq!(
        (code, &told["metadata"]["labels"][NUMBER]),
        (201, &json!("1")),
        "{told}"
    );
    assert_eq!(setting.numbers.states(), [(1, State::Taken)]);
}

#[tokio::test]
async fn what_is_not_written_gives_back_what_it_took() {
    let mut setting = Setting::new().await;
    for (query, change, status) in [
        ("?dryRun=All", json!({}), 201),
        ("", json!({"metadata": {"name": "NO"}}), 422),
        ("", json!({"metadata": {"labels": {"none": ""}}}), 503),
    ] {
        let (code, told) = setting
            .create(query, |order| {
                for (path, value) in [
                    ("name", &change["metadata"]["name"]),
                    ("labels", &change["metadata"]["labels"]),
                ] {
                    if !value.is_null() {
                        order["metadata"][path] = value.clone();
                    }
                }
            })
            .await;
        assert_eq!(code, status, "{told}");
        assert_eq!(setting.numbers.states(), [], "{query} {change}");
    }
    assert_eq!(setting.create("", |_| {}).await.0, 201);
    assert_eq!(setting.create("", |_| {}).await.0, 409, "its name is taken");
    assert_eq!(setting.numbers.states(), [(1, State::Taken)]);
}

/// An attempt that loses to another writer gives back what it took before the next one takes something.
#[tokio::test]
async fn a_lost_attempt_gives_back_what_it_took() {
    let mut setting = Setting::new().await;
    assert_eq!(setting.create("", |_| {}).await.0, 201);
    let unnumbered = json!({"metadata": {"labels": {NUMBER: null, "a": "b"}}}).to_string();
    setting.store.plan([Touched, Touched]);
    let (code, told) = setting.client.send("PATCH", ONE, MERGE_PATCH, &unnumbered).await;
    assert_eq!(
        (code, &told["metadata"]["labels"][NUMBER]),
        (200, &json!("2")),
        "{told}"
    );
    assert_eq!(setting.numbers.states(), [(1, State::Taken), (2, State::Taken)]);
}

/// What may have been written must not be given to somebody else.
#[tokio::test]
async fn a_write_of_which_nothing_is_known_keeps_what_it_took() {
    let mut setting = Setting::new().await;
    setting.store.plan([Failed(StoreError::Unavailable("gone".to_owned()))]);
    assert_eq!(setting.create("", |_| {}).await.0, 503);
    assert_eq!(setting.numbers.states(), [(1, State::Unsure)]);
    // The client leaves while the store writes.
    setting.store.plan([Late(Duration::from_secs(1))]);
    let patience = Duration::from_millis(300);
    let left = tokio::time::timeout(patience, setting.create("", |_| {})).await;
    assert!(left.is_err());
    let is_told = || setting.numbers.states().contains(&(2, State::Unsure));
    for _ in 0..500 {
        if is_told() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", setting.numbers.states());
}

/// Whichever request removes the object: what it had is free then, and not before.
#[tokio::test]
async fn a_deletion_frees_what_the_object_took() {
    let mut setting = Setting::new().await;
    assert_eq!(setting.create("", |_| {}).await.0, 201);
    let deletions = [
        (json!({"dryRun": ["All"]}), 200),
        (json!({"preconditions": {"uid": "other"}}), 409),
    ];
    for (options, status) in deletions {
        let told = setting.client.send("DELETE", ONE, JSON, &options.to_string()).await;
        assert_eq!(told.0, status, "{told:?}");
        assert_eq!(setting.numbers.states(), [(1, State::Taken)]);
    }
    setting.store.plan([Failed(StoreError::Unavailable("gone".to_owned()))]);
    assert_eq!(setting.client.send("DELETE", ONE, JSON, "").await.0, 503);
    assert_eq!(setting.numbers.states(), [(1, State::Taken)], "it may be there still");
    let hold = json!({"metadata": {"finalizers": ["example.test/hold"]}}).to_string();
    assert_eq!(setting.client.send("PATCH", ONE, MERGE_PATCH, &hold).await.0, 200);
    assert_eq!(setting.client.send("DELETE", ONE, JSON, "").await.0, 200);
    assert_eq!(setting.numbers.states(), [(1, State::Taken)], "it is held");
    // What the last write would give it is given back with the rest.
    let release = json!({"metadata": {"finalizers": null, "labels": {NUMBER: null}}}).to_string();
    assert_eq!(setting.client.send("PATCH", ONE, MERGE_PATCH, &release).await.0, 200);
    assert_eq!(setting.numbers.states(), []);
    assert_eq!(setting.create("", |_| {}).await.0, 201);
    assert_eq!(setting.client.send("DELETE", ONE, JSON, "").await.0, 200);
    assert_eq!(setting.numbers.states(), []);
}
