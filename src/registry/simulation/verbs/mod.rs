//! The verb layer in simulation: writers of the same few objects, whose admission and reservations wait, whose store is
//! slow and fails, whose objects may have to be converted by others, and some of whom vanish amid their requests. All
//! is measured by what the store was given.
//!
//! `KEELSON_SEED=<seed> cargo test -p keelson-registry simulation::verbs::one -- --nocapture` repeats a run.

mod history;
mod shop;
mod versions;
mod writer;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use keelson_access::authn::Authentication;
use keelson_access::authz::{AlwaysAllow, Authorization};
use keelson_base::cooperative::yield_everywhere;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_codegen_sample::api::shop_example_com::v1::Order;
use keelson_storage::HistoryLimits;
use keelson_storage::encryption::Encryption;
use keelson_storage::memory::MemoryStore;
use keelson_storage::simulation::Outcome;
use keelson_storage::simulation::executor;
use keelson_storage::simulation::random::Dice;
use keelson_storage::simulation::seeds::{one_seed, run, sweep};
use keelson_storage::simulation::world::World;
use tokio::time::sleep;

use self::shop::{Inspection, Numbering, Shop};
use self::writer::{Request, Writer};
use super::slow::Slow;
use crate::admission::Admission;
use crate::cache::Budget;
use crate::generic::{Backend, Client, KindCode, Registry, RuntimeConfig, Verbs};

const GROUP: &str = "shop.example.com";
/// The resources that the writers write: one of a single version, and one of two, which have to be converted.
const PLURALS: [&str; 2] = ["orders", versions::PLURAL];
/// The annotation with the number of the attempt that admission saw.
const ATTEMPT: &str = "attempt";
/// The annotation with the number that the object was given when it was made.
const NUMBER: &str = "number";
/// The annotation to which each update adds its mark.
const MARKS: &str = "marks";

fn verbs(shop: &Arc<Shop>, store: &Arc<Slow>) -> Arc<Verbs> {
    let backend = Backend {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: Budget::new(1 << 20),
        encryption: Encryption::none(),
        placement: Arc::default(),
        corrupt: Default::default(),
    };
    let mut code = KindCode::default();
    code.kind::<Order>().any_strategy(Numbering(shop.clone()));
    code.admission(Admission::new(vec![Arc::new(Inspection(shop.clone()))]));
    let schemes = [&keelson_codegen_sample::api::SCHEME];
    let registry = Registry::new(&schemes, &code, &backend, "/registry", &RuntimeConfig::all()).unwrap();
    Arc::new(Verbs {
        registry: Arc::new(registry),
        backend,
        authentication: Authentication::default(),
        authorization: Authorization::new(vec![Arc::new(AlwaysAllow)]),
    })
}

fn play(seed: u64, talks: bool) -> Outcome {
    yield_everywhere();
    let dice = Dice::new(seed);
    let (writers, names) = (dice.between(2, 5), dice.between(1, 3));
    let failing = *dice.pick(&[0, 0, 40, 200]);
    let plural = *dice.pick(&PLURALS);
    let plan = format!("{writers} writers of {names} {plural}, {failing} of 1000 writes fail");
    let done = executor::run(dice.clone(), |spawner| async move {
        let world = World::new(dice.clone(), spawner, talks);
        let shop = Arc::new(Shop {
            dice: dice.clone(),
            attempts: AtomicU64::new(1),
            passed: Mutex::default(),
            numbers: Mutex::default(),
        });
        let inner = Arc::new(MemoryStore::new(HistoryLimits::default()).unwrap());
        let store = Arc::new(Slow::new(inner, dice.clone(), failing));
        let verbs = verbs(&shop, &store);
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let [stored, other] = versions::install(&verbs.registry, &shop).await;
        let objects = Client::of_server(verbs, "writer")
            .objects(GROUP, plural, "default")
            .unwrap();
        let clients = (0..writers).map(|number| {
            let mut writer = Writer {
                world: world.clone(),
                shop: shop.clone(),
                store: store.clone(),
                stored: objects.resource.clone(),
                objects: objects.clone(),
                names,
                number,
                requests: requests.clone(),
            };
            if Arc::ptr_eq(&objects.resource, &stored) && dice.chance(500) {
                writer.objects.resource = other.clone();
            }
            writer.run()
        });
        join_all(clients).await;
        // What those began who went away.
        sleep(Duration::from_secs(5)).await;
        let (done, requests) = (store.done.lock().unwrap(), requests.lock().unwrap());
        history::judge(&world, &shop, &objects.resource, &done, &requests);
        world.violation()
    });
    Outcome {
        violation: done.output,
        trace: done.trace,
        steps: done.steps,
        plan,
    }
}

#[test]
fn verbs_keep_their_promises() {
    sweep(play, 1_000, "keelson-registry", "simulation::verbs::one");
}

#[test]
fn one() {
    let Some(seed) = one_seed() else { return };
    let outcome = run(play, seed, true);
    println!("{}", outcome.plan);
    assert_eq!(outcome.violation, None);
}
