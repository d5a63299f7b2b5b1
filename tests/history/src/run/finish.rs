//! The end of a run: what ends by itself has ended, and each watch has something last to hear of.

use std::time::{Duration, Instant};

use keelson_history::{Ask, COLORS, Filter, Key, Outcome, Version, color_of};

use super::client::Client;
use super::object::{KEYS, Kind};
use super::readers::list;
use super::world::World;
use super::{deletions, leases, writers};

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Objects with a time to live may end so much later.
const LATE: Duration = Duration::from_secs(30);

/// Makes the last writes of every kind.
pub async fn finish(world: &World) {
    for lane in &world.lanes {
        match lane.kind {
            Kind::Map => maps(world).await,
            Kind::Event => events(world).await,
            Kind::Pod => pods(world).await,
        }
    }
}

/// Writes every key in every color.
async fn maps(world: &World) {
    let mut finals = Vec::new();
    for key in 0..KEYS {
        for _ in 0..COLORS {
            finals.push((key, write_for_sure(world, key).await));
        }
    }
    world.lane(Kind::Map).finish(finals);
}

async fn write_for_sure(world: &World, key: Key) -> Version {
    let since = Instant::now();
    let targets = world.targets.iter();
    let mut clients: Vec<_> = targets.map(|target| Client::new(target.clone(), false)).collect();
    let server = key as usize % clients.len();
    loop {
        for create in [false, true] {
            let outcome = writers::put(world, &mut clients[server], server, key, create).await;
            if let Outcome::Done(Some(version)) = outcome {
                return version;
            }
            assert!(since.elapsed() < PATIENCE, "no write succeeds: {outcome:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until all have ended, and makes one of each color.
async fn events(world: &World) {
    let since = Instant::now();
    let mut client = Client::new(world.targets[0].clone(), false);
    let longest = leases::LIFETIME * 2 + LATE;
    loop {
        let left = count(world, Kind::Event, &mut client).await;
        if left == Some(0) {
            break;
        }
        if since.elapsed() > longest {
            let text = format!("{left:?} events are left {longest:?} after the last was made");
            world.violation("what has a time to live ends", text);
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (since, mut finals) = (Instant::now(), Vec::new());
    while !has_all_colors(&finals) {
        if let (key, Outcome::Done(Some(version))) = leases::create(world, &mut client, (usize::MAX, 0)).await {
            finals.push((key, version));
        }
        assert!(since.elapsed() < PATIENCE, "no event can be made");
    }
    world.lane(Kind::Event).finish(finals);
}

/// Looks at all of them, and makes one of each color.
async fn pods(world: &World) {
    deletions::look_back(world).await;
    let mut client = Client::new(world.targets[0].clone(), false);
    let (since, mut finals) = (Instant::now(), Vec::new());
    while !has_all_colors(&finals) {
        finals.extend(deletions::make_last(world, &mut client).await);
        assert!(since.elapsed() < PATIENCE, "no pod can be made");
    }
    world.lane(Kind::Pod).finish(finals);
}

fn has_all_colors(finals: &[(Key, Version)]) -> bool {
    (0..COLORS).all(|color| finals.iter().any(|(_, version)| color_of(version.id) == color))
}

/// How many objects of a kind there are.
async fn count(world: &World, kind: Kind, client: &mut Client) -> Option<usize> {
    let listed = list(world, kind, client, (usize::MAX, 0), Filter::default(), Ask::Newest, 0).await?;
    Some(listed.count)
}
