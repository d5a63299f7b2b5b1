//! Clients that write and read single objects.

use std::time::Duration;

use http::Method;
use keelson_history::{Action, Key, Operation, Outcome};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::Shared;
use super::client::{Client, Failure};
use super::object::{self, KEYS, PATH};
use super::world::{Phase, World};

/// The pause between two requests is up to so many milliseconds.
const PAUSE: u64 = 25;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// Who asks whom for what.
struct Request {
    key: Key,
    action: Action,
    /// Updates that expect nothing are merge patches.
    patch: bool,
}

pub async fn write(world: Shared, number: usize, mut rng: SmallRng) {
    let targets = world.targets.iter();
    let mut clients: Vec<_> = targets
        .map(|target| Client::new(target.clone(), rng.random()))
        .collect();
    while world.phase() == Phase::Running {
        let server = rng.random_range(0..clients.len());
        let request = choose(&world, &mut rng);
        let outcome = perform(&world, &mut clients[server], (number, server), &request).await;
        let lost = matches!(outcome, Outcome::Unknown | Outcome::Refused);
        let pause = rng.random_range(0..=PAUSE) * if lost { 4 } else { 1 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

fn choose(world: &World, rng: &mut SmallRng) -> Request {
    let key = rng.random_range(0..KEYS);
    let expected = Some(world.latest(key));
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
    perform(world, client, (usize::MAX, server), &request).await
}

async fn perform(world: &World, client: &mut Client, who: (usize, usize), request: &Request) -> Outcome {
    let Request { key, action, patch } = *request;
    let path = format!("{PATH}/{}", object::name(key));
    let begin = world.now();
    let answer = match action {
        Action::Create(id) => {
            let body = object::object(key, id, None).to_string();
            client.call(Method::POST, PATH, JSON, body).await
        }
        Action::Update { id, expected: None } if patch => {
            let body = object::patch(id).to_string();
            client.call(Method::PATCH, &path, MERGE, body).await
        }
        Action::Update { id, expected } => {
            let body = object::object(key, id, expected).to_string();
            client.call(Method::PUT, &path, JSON, body).await
        }
        Action::Delete { expected } => {
            let expected = expected.map(|expected| expected.to_string());
            let body = match expected {
                Some(expected) => json!({"preconditions": {"resourceVersion": expected}}).to_string(),
                None => String::new(),
            };
            client.call(Method::DELETE, &path, JSON, body).await
        }
        Action::Read => client.get(&path).await,
    };
    let end = world.now();
    let outcome = classify(world, action, answer);
    world.history.lock().unwrap().operations.push(Operation {
        client: who.0,
        server: who.1,
        key,
        action,
        begin,
        end,
        outcome,
    });
    outcome
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
            .read(&body)
            .map_or(Outcome::Unknown, |(_, version)| Outcome::Done(Some(version))),
        (404, Action::Create(_)) => Outcome::Refused,
        (404, _) => Outcome::Absent,
        (409, Action::Create(_)) if body["reason"] == "AlreadyExists" => Outcome::Exists,
        (409, Action::Update { expected: Some(_), .. } | Action::Delete { expected: Some(_) }) => Outcome::Conflict,
        (408, _) => Outcome::Unknown,
        (400..500, _) => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}
