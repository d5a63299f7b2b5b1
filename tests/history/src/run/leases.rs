//! Objects that end by themselves, many of them together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use keelson_history::{Action, Key, Operation, Outcome, Version};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;
use tokio::task::JoinSet;

use super::client::{Client, Failure};
use super::etcd::Etcd;
use super::object::{self, Kind};
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
const PUTTING: Duration = Duration::from_secs(3);

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
async fn put(world: &World, etcd: &Etcd, number: usize, count: u32) -> Result<(), String> {
    let time = LIFETIME + PUTTING;
    let lease = etcd.ask("/v3/lease/grant", json!({"TTL": time.as_secs()})).await?;
    let (lease, since) = (lease["ID"].clone(), Instant::now());
    let mut connection = etcd.connect().await?;
    for _ in 0..count {
        if since.elapsed() + Duration::from_secs(1) > PUTTING {
            break;
        }
        let (key, id, begin) = (world.new_key(), world.new_id(), world.now());
        let mut event = object::event(key, id);
        event["metadata"]["uid"] = format!("00000000-0000-4000-8000-{key:012}").into();
        event["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        let name = Kind::Event.name(key);
        let done = connection.put(&format!("/registry/events/history/{name}"), &event.to_string(), &lease).await;
        let outcome = done.as_ref().map_or(Outcome::Unknown, |revision| {
            let version = Version { revision: *revision, id };
            world.lane(Kind::Event).saw(key, version);
            Outcome::Done(Some(version))
        });
        let lane = world.lane(Kind::Event);
        lane.history.lock().unwrap().operations.push(Operation {
            client: number,
            server: usize::MAX,
            key,
            action: Action::Create(id),
            begin,
            end: world.now(),
            outcome,
        });
        done?;
    }
    Ok(())
}
