//! Many new keys at once, and then nothing: what a store puts off until there is enough of it, or until it has time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;
use tokio::task::JoinSet;

use super::Shared;
use super::client::Client;
use super::object::NAMESPACE;
use super::world::Phase;

/// More than a store leaves waiting for its table of current keys, and not much more.
const BURST: u32 = 560;
/// Connections of a burst without refused writes.
const CONNECTIONS: usize = 8;
/// Nothing happens for up to so many milliseconds, and at least two rounds of upkeep.
const REST: std::ops::Range<u64> = 1100..1500;
/// The pause between two bursts, in milliseconds.
const PAUSE: std::ops::Range<u64> = 1000..10_000;
/// A burst that takes longer ends early.
const LONGEST: Duration = Duration::from_secs(8);

/// Every other burst has each object made twice, one request after the other: each second request has nothing to write.
/// What that may have brought into disorder shows when the next burst has none such. No faults come in between.
pub async fn burst(world: Shared, mut rng: SmallRng) {
    let round = AtomicU32::new(0);
    while world.phase() == Phase::Running {
        let pause = Duration::from_millis(rng.random_range(PAUSE));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = world.until(Phase::Settling) => return,
        }
        let calm = world.calm.lock().await;
        for twice in [true, false] {
            let quiet = world.gate.write().await;
            let server = rng.random_range(0..world.targets.len());
            let round = round.fetch_add(1, Ordering::Relaxed);
            let made = make(&world, server, round, twice);
            let _ = tokio::time::timeout(LONGEST, made).await;
            tokio::time::sleep(Duration::from_millis(rng.random_range(REST))).await;
            drop(quiet);
        }
        drop(calm);
        forget(&world).await;
    }
}

/// Gives up at the first request that is not answered.
async fn make(world: &Shared, server: usize, round: u32, twice: bool) {
    let connections = if twice { 1 } else { CONNECTIONS };
    let (next, mut makers) = (std::sync::Arc::new(AtomicU32::new(0)), JoinSet::new());
    for _ in 0..connections {
        let (target, next) = (world.targets[server].clone(), next.clone());
        makers.spawn(async move {
            let mut client = Client::new(target, false);
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= BURST {
                    return;
                }
                let body = json!({"metadata": {"name": format!("burst-{round}-{n}")}}).to_string();
                for _ in 0..if twice { 2 } else { 1 } {
                    let made = client
                        .call(Method::POST, &path(), "application/json", body.clone())
                        .await;
                    if made.is_err() {
                        return;
                    }
                }
            }
        });
    }
    while makers.join_next().await.is_some() {}
}

/// Deletes them all, by one request.
async fn forget(world: &Shared) {
    let _turn = world.gate.read().await;
    let mut client = Client::new(world.targets[0].clone(), false);
    // whether it is done is no matter: the next one does the rest
    let _ = client
        .call(Method::DELETE, &path(), "application/json", String::new())
        .await;
}

/// Nobody looks at them: service accounts, of which the run has no others.
fn path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts")
}
