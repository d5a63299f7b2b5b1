//! Objects that end by themselves, many of them together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use keelson_history::{Action, Key, Operation, Outcome, Version};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Client, Failure};
use super::etcd::{Etcd, Gateway};
use super::object::{self, Kind, NAMESPACE};
use super::world::{Phase, World};
use super::{Shared, Site};

/// Events live for so long, or a little longer.
pub const LIFETIME: Duration = Duration::from_secs(5);
/// What lies between two single events, in milliseconds: history is not to grow old between them.
const PAUSE: u64 = 300;
/// So many milliseconds lie between two bursts.
const QUIET: std::ops::Range<u64> = 2000..6000;
/// Events of a burst that servers make.
const BURST: u32 = 300;
/// Events that are put into etcd under one lease: fewer and more than a server takes in at once.
const BURSTS: [u32; 3] = [300, 1100, 2500];
/// Connections that make a burst.
const CONNECTIONS: usize = 8;
/// What is put into etcd takes up to so long; the lease is longer by that.
const PUTTING: Duration = Duration::from_secs(4);
/// Nothing is put in the last part of that time.
const MARGIN: Duration = Duration::from_millis(500);

/// Single events, again and again.
pub async fn trickle(world: Shared, number: usize, mut rng: SmallRng) {
    while world.phase() == Phase::Running {
        let server = rng.random_range(0..world.targets.len());
        let mut client = Client::new(world.targets[server].clone(), rng.random());
        make(&world, &mut client, (number, server)).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..=PAUSE))).await;
    }
}

/// Many at once.
pub async fn burst(site: Arc<Site>, world: Shared, number: usize, mut rng: SmallRng) {
    while world.phase() == Phase::Running {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(rng.random_range(QUIET))) => {}
            () = world.until(Phase::Settling) => return,
        }
        let turn = world.gate.read().await;
        match &site.etcd {
            Some(etcd) => {
                let count = BURSTS[rng.random_range(0..BURSTS.len())];
                // a refusal ends it early
                let _ = put(&world, etcd, number, count).await;
            }
            None => make_many(&world, number).await,
        }
        drop(turn);
    }
}

async fn make_many(world: &Shared, number: usize) {
    let (made, mut makers) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    for n in 0..CONNECTIONS {
        let (world, made) = (world.clone(), made.clone());
        makers.spawn(async move {
            let server = n % world.targets.len();
            let mut client = Client::new(world.targets[server].clone(), false);
            while made.fetch_add(1, Ordering::Relaxed) < BURST {
                let (_, outcome) = create(&world, &mut client, (number, server)).await;
                if !matches!(outcome, Outcome::Done(_)) {
                    return;
                }
            }
        });
    }
    while makers.join_next().await.is_some() {}
}

async fn make(world: &World, client: &mut Client, who: (usize, usize)) {
    let _turn = world.gate.read().await;
    create(world, client, who).await;
}

/// Makes one event. Which, and what it was answered.
pub async fn create(world: &World, client: &mut Client, who: (usize, usize)) -> (Key, Outcome) {
    let (key, id, begin) = (world.new_key(), world.new_id(), world.now());
    let (path, body) = (Kind::Event.path(), object::event(key, id).to_string());
    let lane = world.lane(Kind::Event);
    let outcome = match client.call(Method::POST, path, "application/json", body).await {
        Ok((201, body)) => lane
            .read(world, &body)
            .map_or(Outcome::Unknown, |(_, version)| Outcome::Done(Some(version))),
        Ok((400..500, _)) | Err(Failure::NotSent) => Outcome::Refused,
        Ok(_) | Err(Failure::Lost) => Outcome::Unknown,
    };
    lane.history.lock().unwrap().operations.push(Operation {
        client: who.0,
        server: who.1,
        key,
        action: Action::Create(id),
        begin,
        end: world.now(),
        outcome,
    });
    (key, outcome)
}

/// Puts so many events into etcd under one lease, as another server would.
async fn put(world: &Shared, etcd: &Etcd, number: usize, count: u32) -> Result<(), String> {
    let time = LIFETIME + PUTTING;
    let end = Instant::now() + PUTTING;
    let lease = etcd.ask("/v3/lease/grant", json!({"TTL": time.as_secs()})).await?;
    let (made, mut makers) = (Arc::new(AtomicU32::new(0)), JoinSet::new());
    for _ in 0..CONNECTIONS {
        let (world, made, lease) = (world.clone(), made.clone(), lease["ID"].clone());
        let mut connection = etcd.connect().await?;
        makers.spawn(async move {
            let mut goes_on = true;
            while goes_on && made.fetch_add(1, Ordering::Relaxed) < count {
                // what is put later would end too early
                let put =
                    tokio::time::timeout_at((end - MARGIN).into(), put_one(&world, &mut connection, number, &lease));
                goes_on = put.await.is_ok_and(|done| done.is_ok());
            }
        });
    }
    while makers.join_next().await.is_some() {}
    Ok(())
}

async fn put_one(world: &World, connection: &mut Gateway, number: usize, lease: &Value) -> Result<(), String> {
    let (key, id, begin) = (world.new_key(), world.new_id(), world.now());
    let lane = world.lane(Kind::Event);
    let record = |end, outcome| Operation {
        client: number,
        server: usize::MAX,
        key,
        action: Action::Create(id),
        begin,
        end,
        outcome,
    };
    // Who is not answered in time is not heard again.
    let index = {
        let mut history = lane.history.lock().unwrap();
        history.operations.push(record(begin, Outcome::Unknown));
        history.operations.len() - 1
    };
    let mut event = object::event(key, id);
    event["metadata"]["uid"] = format!("00000000-0000-4000-8000-{key:012}").into();
    event["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let name = format!("/registry/events/{NAMESPACE}/{}", Kind::Event.name(key));
    let revision = connection.put(&name, &event.to_string(), lease).await?;
    let version = Version { revision, id };
    lane.saw(key, version);
    lane.history.lock().unwrap().operations[index] = record(world.now(), Outcome::Done(Some(version)));
    Ok(())
}
