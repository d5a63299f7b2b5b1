//! Clients that write and read single objects.

use std::time::Duration;

use http::Method;
use keelson_history::{Action, Key, Operation, Outcome};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::Shared;
use super::client::{Client, Failure};
use super::object::{self, KEYS, Kind};
use super::vanish::{self, Cut};
use super::world::{Phase, World};

/// The pause between two requests is up to so many milliseconds.
const PAUSE: u64 = 25;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Who asks whom for what.
struct Request {
    key: Key,
    action: Action,
    /// Updates that expect nothing are merge patches.
    patch: bool,
}

/// A request as it is sent.
pub struct Sent {
    pub method: Method,
    pub path: String,
    pub kind: &'static str,
    pub body: String,
}

/// How a request is sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Manner {
    Patient,
    /// The server is given so many milliseconds.
    Hurried(u64),
    /// The client leaves.
    Vanishing(Cut),
}

/// With `vanish`, some clients leave before they have their answer.
pub async fn write(world: Shared, number: usize, vanish: bool, mut rng: SmallRng) {
    let targets = world.targets.iter();
    let mut clients: Vec<_> = targets
        .map(|target| Client::new(target.clone(), rng.random()))
        .collect();
    while world.phase() == Phase::Running {
        let server = rng.random_range(0..clients.len());
        let request = choose(&world, &mut rng);
        let manner = match vanish {
            true => vanish::manner(&mut rng),
            false => Manner::Patient,
        };
        let turn = world.gate.read().await;
        let outcome = perform(&world, &mut clients[server], (number, server), &request, manner).await;
        drop(turn);
        let lost = matches!(outcome, Outcome::Unknown | Outcome::Refused);
        let pause = rng.random_range(0..=PAUSE) * if lost { 4 } else { 1 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

fn choose(world: &World, rng: &mut SmallRng) -> Request {
    let key = rng.random_range(0..KEYS);
    let expected = Some(world.lane(Kind::Map).latest(key));
    let (action, patch) = match rng.random_range(0..100) {
        0..20 => (Action::Create(world.new_id()), false),
        20..50 => (
            Action::Update {
                id: world.new_id(),
                expected,
            },
            false,
        ),
        50..70 => (
            Action::Update {
                id: world.new_id(),
                expected: None,
            },
            rng.random(),
        ),
        70..78 => (Action::Delete { expected: None }, false),
        78..84 => (Action::Delete { expected }, false),
        _ => (Action::Read, false),
    };
    Request { key, action, patch }
}

/// Creates or overwrites an object.
pub async fn put(world: &World, client: &mut Client, server: usize, key: Key, create: bool) -> Outcome {
    let id = world.new_id();
    let action = match create {
        true => Action::Create(id),
        false => Action::Update { id, expected: None },
    };
    let request = Request {
        key,
        action,
        patch: false,
    };
    perform(world, client, (usize::MAX, server), &request, Manner::Patient).await
}

impl Request {
    fn sent(&self) -> Sent {
        let Request { key, action, patch } = *self;
        let path = Kind::Map.object(key);
        let (method, path, kind, body) = match action {
            Action::Create(id) => (
                Method::POST,
                Kind::Map.path().to_owned(),
                JSON,
                object::map(key, id, None).to_string(),
            ),
            Action::Update { id, expected: None } if patch => {
                (Method::PATCH, path, MERGE, object::patch(id).to_string())
            }
            Action::Update { id, expected } => (Method::PUT, path, JSON, object::map(key, id, expected).to_string()),
            Action::Apply(id) => {
                // Each time another manager, of two.
                let path = format!("{path}?fieldManager=m{}&force=true", id % 2);
                (Method::PATCH, path, APPLY, object::map(key, id, None).to_string())
            }
            Action::Delete { expected } => {
                let condition = |expected: u64| json!({"preconditions": {"resourceVersion": expected.to_string()}});
                let body = expected.map_or_else(String::new, |expected| condition(expected).to_string());
                (Method::DELETE, path, JSON, body)
            }
            Action::Read => (Method::GET, path, JSON, String::new()),
        };
        Sent {
            method,
            path,
            kind,
            body,
        }
    }
}

async fn perform(
    world: &World,
    client: &mut Client,
    who: (usize, usize),
    request: &Request,
    manner: Manner,
) -> Outcome {
    let sent = request.sent();
    let begin = world.now();
    let answer = answer(world, client, who.1, sent, manner).await;
    let outcome = classify(world, request.action, answer);
    let operation = Operation {
        client: who.0,
        server: who.1,
        key: request.key,
        action: request.action,
        begin,
        end: world.now(),
        outcome,
    };
    world.lane(Kind::Map).history.lock().unwrap().operations.push(operation);
    outcome
}

/// Sends a request in some manner. Whose client has left has no answer.
pub async fn answer(
    world: &World,
    client: &mut Client,
    server: usize,
    mut sent: Sent,
    manner: Manner,
) -> Result<(u16, Value), Failure> {
    match manner {
        Manner::Patient => {}
        Manner::Hurried(ms) => {
            let first = if sent.path.contains('?') { '&' } else { '?' };
            sent.path = format!("{}{first}timeout={ms}ms", sent.path);
        }
        Manner::Vanishing(cut) => return Err(vanish::send(&world.targets[server], &sent, cut).await),
    }
    client.call(sent.method, &sent.path, sent.kind, sent.body).await
}

/// Server-side apply of an object by force, whether it is there or not.
pub async fn apply(world: &World, client: &mut Client, who: (usize, usize), key: Key) -> Outcome {
    let request = Request {
        key,
        action: Action::Apply(world.new_id()),
        patch: false,
    };
    perform(world, client, who, &request, Manner::Patient).await
}

/// Deletes an object, whatever it holds.
pub async fn delete(world: &World, client: &mut Client, who: (usize, usize), key: Key) -> Outcome {
    let request = Request {
        key,
        action: Action::Delete { expected: None },
        patch: false,
    };
    perform(world, client, who, &request, Manner::Patient).await
}

fn classify(world: &World, action: Action, answer: Result<(u16, Value), Failure>) -> Outcome {
    let (status, body) = match answer {
        Ok(answer) => answer,
        Err(Failure::NotSent) => return Outcome::Refused,
        Err(Failure::Lost) => return Outcome::Unknown,
    };
    match (status, action) {
        (200..300, Action::Delete { .. }) => Outcome::Done(None),
        (200..300, _) => world
            .lane(Kind::Map)
            .read(world, &body)
            .map_or(Outcome::Unknown, |(_, version)| Outcome::Done(Some(version))),
        (404, Action::Create(_)) => Outcome::Refused,
        (404, _) => Outcome::Absent,
        (409, Action::Create(_) | Action::Apply(_)) if body["reason"] == "AlreadyExists" => Outcome::Exists,
        (409, Action::Update { expected: Some(_), .. } | Action::Delete { expected: Some(_) }) => Outcome::Conflict,
        (408, _) => Outcome::Unknown,
        (400..500, _) => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}
