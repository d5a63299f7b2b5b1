//! Clients that apply the same absent object at once, on any server.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use tokio::task::JoinSet;

use super::client::Client;
use super::object::KEYS;
use super::world::Phase;
use super::{Shared, writers};

/// So many apply at once.
const APPLIERS: usize = 4;
/// The pause between two rounds, in milliseconds.
const PAUSE: u64 = 400;

pub async fn apply(world: Shared, number: usize, mut rng: SmallRng) {
    while world.phase() == Phase::Running {
        let turn = world.gate.read().await;
        let (key, mut appliers) = (rng.random_range(0..KEYS), JoinSet::new());
        let server = rng.random_range(0..world.targets.len());
        let mut client = Client::new(world.targets[server].clone(), false);
        writers::delete(&world, &mut client, (number, server), key).await;
        for n in 0..APPLIERS {
            let (world, server) = (world.clone(), rng.random_range(0..world.targets.len()));
            appliers.spawn(async move {
                let mut client = Client::new(world.targets[server].clone(), false);
                // connected before the others ask
                let _ = client.get("/livez").await;
                writers::apply(&world, &mut client, (number + n, server), key).await
            });
        }
        while appliers.join_next().await.is_some() {}
        drop(turn);
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..=PAUSE))).await;
    }
}
