//! The verb layer in simulation: writers of the same few objects, whose admission and reservations wait, whose store is
//! slow and fails, and some of whom vanish amid their requests. All is measured by what the store was given.
//!
//! `KEELSON_SEED=<seed> cargo test -p keelson-registry simulation::verbs::one -- --nocapture` repeats a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use keelson_access::authn::Authentication;
use keelson_access::authz::{AlwaysAllow, Authorization};
use keelson_base::cooperative::yield_everywhere;
use keelson_base::env::{SystemClock, SystemEntropy};
use keelson_codegen_sample::api::shop_example_com::v1::Order;
use keelson_machinery::json;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::encryption::Encryption;
use keelson_storage::memory::MemoryStore;
use keelson_storage::simulation::Outcome;
use keelson_storage::simulation::dice::Dice;
use keelson_storage::simulation::executor;
use keelson_storage::simulation::seeds::{one_seed, run, sweep};
use keelson_storage::simulation::world::World;
use keelson_storage::{Entry, HistoryLimits, Revision, Store, Version};
use tokio::time::{sleep, timeout};

use super::slow::{Done, Slow};
use crate::admission::{Admission, Attributes, Handles, Operation, Plugin, Scope};
use crate::cache::Budget;
use crate::generic::{
    Answer, Backend, Client, Context, KindCode, Objects, Registry, Reserving, Resource, RuntimeConfig, Strategy, Verbs,
};
use crate::outcome::{Outcome as Told, later};
use crate::reservation::Reservation;

const GROUP: &str = "shop.example.com";
/// The annotation with the number of the attempt that admission saw.
const ATTEMPT: &str = "attempt";
/// The annotation with the number that the object was given when it was made.
const NUMBER: &str = "number";
/// The annotation to which each update adds its mark.
const MARKS: &str = "marks";

/// What the writers' world knows beside the store.
struct Shop {
    dice: Dice,
    attempts: AtomicU64,
    /// Attempts that were let pass, with the marks that they would store.
    passed: Mutex<BTreeMap<u64, String>>,
    numbers: Mutex<BTreeMap<u64, State>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Held,
    Taken,
    Unsure,
}

impl Shop {
    async fn pause(&self) {
        if self.dice.chance(600) {
            sleep(self.dice.millis(6)).await;
        }
    }
}

fn annotation(object: &dyn Object, name: &str) -> String {
    let annotations = &object.meta().annotations;
    annotations.get(name).map(ToString::to_string).unwrap_or_default()
}

/// Numbers each attempt before, and lets most of them pass behind.
struct Inspection(Arc<Shop>);

impl Plugin for Inspection {
    fn name(&self) -> &'static str {
        "Inspection"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::BOTH.when(writes && scope.is(GROUP, "orders"))
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Told<'a, ()> {
        later(async move {
            self.0.pause().await;
            let attempt = self.0.attempts.fetch_add(1, Ordering::Relaxed);
            if let Some(metadata) = attributes.metadata_mut() {
                metadata.annotations.insert(ATTEMPT.to_owned(), attempt.to_string());
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Told<'a, ()> {
        later(async move {
            self.0.pause().await;
            if self.0.dice.chance(30) {
                return Err(attributes.forbidden("not today"));
            }
            let annotations = attributes.metadata().map(|metadata| &metadata.annotations);
            let text = |name: &str| annotations.and_then(|all| all.get(name)).map(ToString::to_string);
            let attempt = text(ATTEMPT).unwrap_or_default().parse().unwrap();
            let marks = text(MARKS).unwrap_or_default();
            self.0.passed.lock().unwrap().insert(attempt, marks);
            Ok(())
        })
    }
}

/// Gives each new order a number of its own, which has to be waited for.
struct Numbering(Arc<Shop>);

impl Strategy for Numbering {
    type Object = Order;

    fn reserve<'a>(
        &'a self,
        _context: &'a Context,
        write: Reserving<'a, Order>,
    ) -> Option<Answer<'a, Box<dyn Reservation>>> {
        if write.old.is_some() {
            return None;
        }
        Some(Box::pin(async move {
            self.0.pause().await;
            let mut numbers = self.0.numbers.lock().unwrap();
            let free = (1..).find(|number| !numbers.contains_key(number)).unwrap();
            numbers.insert(free, State::Held);
            let annotations = &mut write.new.metadata.annotations;
            annotations.insert(NUMBER.to_owned(), free.to_string());
            Ok(Box::new(Guard(self.0.clone(), free)) as Box<dyn Reservation>)
        }))
    }
}

struct Guard(Arc<Shop>, u64);

impl Guard {
    fn becomes(&self, state: State) {
        self.0.numbers.lock().unwrap().insert(self.1, state);
    }
}

impl Reservation for Guard {
    fn commit(self: Box<Self>) {
        self.becomes(State::Taken);
    }
    fn uncertain(self: Box<Self>) {
        self.becomes(State::Unsure);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut numbers = self.0.numbers.lock().unwrap();
        if numbers.get(&self.1) == Some(&State::Held) {
            numbers.remove(&self.1);
        }
    }
}

/// What one writer was told of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Done(Revision),
    Refused,
    /// Its store failed, or it went away.
    Unknown,
}

/// A request and what came of it.
struct Request {
    /// The mark of an update.
    mark: Option<String>,
    word: Word,
}

/// One client.
struct Writer {
    world: Arc<World>,
    shop: Arc<Shop>,
    store: Arc<Slow>,
    orders: Objects,
    names: usize,
    number: usize,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Writer {
    async fn run(self) {
        for round in 0..self.world.dice.between(4, 12) {
            let name = format!("order-{}", self.world.dice.below(self.names));
            let begun = self.store.inner.current_revision().await.unwrap();
            let mark = format!("{}.{round}", self.number);
            let request = self.request(&name, &mark);
            let answer = match self.world.dice.chance(200) {
                true => timeout(self.world.dice.millis(25), request).await.ok(),
                false => Some(request.await),
            };
            let ended = self.store.inner.current_revision().await.unwrap();
            self.judge(&name, &mark, answer, (begun, ended));
            self.shop.pause().await;
        }
    }

    /// What is asked for, its mark, and what was answered.
    async fn request(&self, name: &str, mark: &str) -> Answered {
        match self.world.dice.below(12) {
            10 => {
                let mut updater = |stored: Option<&dyn Object>| {
                    let object = stored.ok_or_else(|| self.orders.resource.not_found(name))?;
                    Ok(object.clone_object())
                };
                (What::Keep, self.orders.update(name, &mut updater).await.map(Some))
            }
            11 => {
                let mut updater = |stored: Option<&dyn Object>| {
                    let object = stored.ok_or_else(|| self.orders.resource.not_found(name))?;
                    match object.meta().annotations.contains_key(MARKS) {
                        true => Err(StatusError::conflict(GROUP, "orders", name, "it is marked")),
                        false => Ok(object.clone_object()),
                    }
                };
                (What::Keep, self.orders.update(name, &mut updater).await.map(Some))
            }
            0..=2 => (What::Create, self.orders.create(order(name)).await.map(Some)),
            3..=7 => {
                let mut updater = |stored: Option<&dyn Object>| {
                    let mut object = stored
                        .ok_or_else(|| self.orders.resource.not_found(name))?
                        .clone_object();
                    let marks = format!("{} {mark}", annotation(&*object, MARKS));
                    object.meta_mut().annotations.insert(MARKS.to_owned(), marks);
                    Ok(object)
                };
                (What::Update, self.orders.update(name, &mut updater).await.map(Some))
            }
            8 => (What::Get, self.orders.get(name).await.map(|stored| Some(stored.object))),
            _ => {
                let deleted = self.orders.delete(name, &DeleteOptions::default()).await;
                (What::Delete, deleted.map(|_| None))
            }
        }
    }

    /// Whether the answer can be: `during` is what the store was at before and behind the request.
    fn judge(&self, name: &str, mark: &str, answer: Option<Answered>, during: (Revision, Revision)) {
        let key = format!("{}default/{name}", self.orders.resource.key_prefix);
        let moments = self.moments(&key, during);
        let there = moments.iter().any(Option::is_some);
        let absent = moments.iter().any(Option::is_none);
        self.world.say(|| {
            let shown = answer
                .as_ref()
                .map(|(what, told)| (what, told.as_ref().map(|_| ()).map_err(|e| e.code)));
            format!("writer {} {name} {mark}: {shown:?} {during:?}", self.number)
        });
        let Some((what, told)) = answer else {
            // Whatever it was.
            return self.note(Some(mark), Word::Unknown);
        };
        let word = match &told {
            Ok(object) => Word::Done(object.as_ref().map_or(during.1, |object| revision(&**object))),
            Err(error) if error.code >= 500 => Word::Unknown,
            Err(_) => Word::Refused,
        };
        let code = told.as_ref().err().map(|error| error.code);
        let marked = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.marked);
        let shown = told
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .map(|object| revision(&**object));
        let is_shown = |seen: &Option<Seen>| seen.as_ref().map(|seen| seen.revision) == shown;
        let possible = match (what, code) {
            (What::Create, Some(409)) => there,
            (What::Update | What::Keep | What::Get | What::Delete, Some(404)) => absent,
            (What::Update, Some(409)) => false,
            (What::Keep, Some(409)) => moments.iter().any(marked),
            (What::Get | What::Keep, None) => moments.iter().any(is_shown),
            (What::Delete, None) => absent,
            _ => true,
        };
        if !possible {
            let told = format!("{what:?} of {name}: {code:?} between {during:?}");
            self.world
                .fail("an answer was true while the request was under way", told);
        }
        self.note((what == What::Update).then_some(mark), word);
    }

    fn note(&self, mark: Option<&str>, word: Word) {
        let mark = mark.map(str::to_owned);
        self.requests.lock().unwrap().push(Request { mark, word });
    }

    /// What was at the key at the beginning of `during`, and each thing that came to be there until its end.
    fn moments(&self, key: &str, during: (Revision, Revision)) -> Vec<Option<Seen>> {
        let done = self.store.done.lock().unwrap();
        let own = done.iter().filter(|done| done.key == key && done.revision <= during.1);
        let (before, amid): (Vec<&Done>, Vec<&Done>) = own.partition(|done| done.revision <= during.0);
        let first = std::iter::once(before.last().copied());
        let all = first.chain(amid.into_iter().map(Some));
        all.map(|done| self.seen(done?)).collect()
    }

    fn seen(&self, done: &Done) -> Option<Seen> {
        let object = decode(&self.orders.resource, done)?;
        Some(Seen {
            revision: done.revision,
            marked: object.meta().annotations.contains_key(MARKS),
        })
    }
}

/// What was asked for, and what was answered.
type Answered = (What, Result<Option<Box<dyn Object>>, StatusError>);

/// An object at a moment.
struct Seen {
    revision: Revision,
    marked: bool,
}

/// `None`: it is gone.
fn decode(resource: &Resource, done: &Done) -> Option<Box<dyn Object>> {
    let version = Version::new(done.value.clone()?, done.revision, done.revision, 1);
    Some(resource.decode(&Entry::new(done.key.clone(), version)).unwrap())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Create,
    Update,
    /// An update that changes nothing, or refuses.
    Keep,
    Get,
    Delete,
}

fn revision(object: &dyn Object) -> Revision {
    Revision(object.meta().resource_version.parse().unwrap())
}

fn order(name: &str) -> Box<dyn Object> {
    let text = format!(
        r#"{{"metadata": {{"name": "{name}", "namespace": "default"}}, "spec": {{"customer": "ann", "street": "s",
        "items": [{{"article": "a"}}], "price": 1, "extra": {{"apiVersion": "v1", "kind": "X"}}}}}}"#
    );
    let mut order = Order::default();
    json::read(text.as_bytes(), &mut order).unwrap();
    Box::new(order)
}

/// Judges what was stored by what was asked for and let pass.
fn judge_history(world: &World, shop: &Shop, resource: &Resource, done: &[Done], requests: &[Request]) {
    let passed = shop.passed.lock().unwrap();
    let numbers = shop.numbers.lock().unwrap();
    let (mut attempts, mut owners) = (BTreeSet::new(), BTreeMap::<u64, String>::new());
    let mut marked: BTreeMap<String, Revision> = BTreeMap::new();
    let mut last: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for write in done {
        let Some(object) = decode(resource, write) else {
            last.remove(&*write.key);
            continue;
        };
        let (uid, marks) = (object.meta().uid.clone(), annotation(&*object, MARKS));
        let attempt: u64 = annotation(&*object, ATTEMPT).parse().unwrap();
        let at = format!("{}@{}", write.key, write.revision);
        if passed.get(&attempt) != Some(&marks) {
            world.fail("what is stored was let pass as it is", at.clone());
        }
        if !attempts.insert(attempt) {
            world.fail("admission sees each attempt", at.clone());
        }
        let number: u64 = annotation(&*object, NUMBER).parse().unwrap_or_default();
        if owners.insert(number, uid.clone()).is_some_and(|owner| owner != uid) {
            world.fail("no two objects have the same number", format!("{number}: {at}"));
        }
        if !matches!(numbers.get(&number), Some(State::Taken | State::Unsure)) {
            world.fail("what a stored object has taken stays taken", format!("{number}: {at}"));
        }
        let before = last.insert(&write.key, (uid.clone(), marks.clone()));
        let known = before.filter(|(owner, _)| *owner == uid).map(|(_, marks)| marks);
        match marks.strip_prefix(known.unwrap_or_default().as_str()).map(str::trim) {
            Some("") => {}
            Some(mark) if !mark.contains(' ') && marked.insert(mark.to_owned(), write.revision).is_none() => {}
            _ => world.fail(
                "each update is made of what was there, and stored once",
                format!("{marks}: {at}"),
            ),
        }
    }
    for (number, state) in numbers.iter() {
        let stored = owners.contains_key(number);
        if *state == State::Held || (*state == State::Taken && !stored) {
            world.fail(
                "what is not written gives back what it took",
                format!("{number}: {state:?}"),
            );
        }
    }
    for request in requests {
        let Some(mark) = &request.mark else { continue };
        let stored = marked.get(mark).copied();
        let right = match request.word {
            Word::Done(revision) => stored == Some(revision),
            Word::Refused => stored.is_none(),
            Word::Unknown => true,
        };
        if !right {
            let what = format!("{mark}: {:?}, stored at {stored:?}", request.word);
            world.fail(
                "an update that was answered is stored, one that was refused is not",
                what,
            );
        }
    }
}

fn verbs(shop: &Arc<Shop>, store: &Arc<Slow>) -> Arc<Verbs> {
    let backend = Backend {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        budget: Budget::new(1 << 20),
        encryption: Encryption::none(),
        placement: Arc::default(),
    };
    let mut code = KindCode::default();
    code.kind::<Order>().strategy(Numbering(shop.clone()));
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
    let plan = format!("{writers} writers of {names} objects, {failing} of 1000 writes fail");
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
        let orders = Client::of_server(verbs, "writer")
            .objects(GROUP, "orders", "default")
            .unwrap();
        let clients = (0..writers).map(|number| {
            let writer = Writer {
                world: world.clone(),
                shop: shop.clone(),
                store: store.clone(),
                orders: orders.clone(),
                names,
                number,
                requests: requests.clone(),
            };
            writer.run()
        });
        join_all(clients).await;
        // What those began who went away.
        sleep(Duration::from_secs(5)).await;
        let (done, requests) = (store.done.lock().unwrap(), requests.lock().unwrap());
        judge_history(&world, &shop, &orders.resource, &done, &requests);
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
