//! Clients that list: everything or some of it, now or at some revision, whole or in pages.

use std::time::Duration;

use keelson_history::{Ask, COLORS, Filter, Key, List, Listed, Version};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::Shared;
use super::client::Client;
use super::object::{self, KEYS, PATH};
use super::world::{Phase, World};

/// The pause between two lists is up to so many milliseconds.
const PAUSE: u64 = 60;
/// A list of the past goes back up to so many revisions.
const PAST: u64 = 300;

pub async fn read(world: Shared, number: usize, mut rng: SmallRng) {
    let targets = world.targets.iter();
    let mut clients: Vec<_> = targets
        .map(|target| Client::new(target.clone(), rng.random()))
        .collect();
    while world.phase() == Phase::Running {
        let server = rng.random_range(0..clients.len());
        let newest = world.newest();
        let ask = match rng.random_range(0..10) {
            0..4 => Ask::Newest,
            4..6 => Ask::AtLeast(newest),
            6..8 => Ask::Exactly(newest.saturating_sub(rng.random_range(0..PAST)).max(1)),
            _ => Ask::Any,
        };
        let limit = match ask {
            Ask::Newest | Ask::Exactly(_) if rng.random_ratio(1, 3) => rng.random_range(1..5),
            _ => 0,
        };
        let filter = random_filter(&mut rng);
        list(&world, &mut clients[server], (number, server), filter, ask, limit).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..=PAUSE))).await;
    }
}

/// Everything, one color or one key.
pub fn random_filter(rng: &mut SmallRng) -> Filter {
    match rng.random_range(0..3) {
        0 => Filter::default(),
        1 => Filter {
            color: Some(rng.random_range(0..COLORS)),
            key: None,
        },
        _ => Filter {
            key: Some(rng.random_range(0..KEYS)),
            color: None,
        },
    }
}

/// Lists and records it; the revision, if there is one.
pub async fn list(
    world: &World,
    client: &mut Client,
    (number, server): (usize, usize),
    filter: Filter,
    ask: Ask,
    limit: u32,
) -> Option<u64> {
    let begin = world.now();
    let record = |end, ask, listed| {
        world.history.lock().unwrap().lists.push(List {
            client: number,
            server,
            filter,
            ask,
            begin,
            end,
            listed,
        });
    };
    let selectors = object::selectors(&filter);
    let revision = match ask {
        Ask::Newest => String::new(),
        Ask::Any => "&resourceVersion=0".to_owned(),
        Ask::AtLeast(least) => format!("&resourceVersion={least}&resourceVersionMatch=NotOlderThan"),
        Ask::Exactly(exact) => format!("&resourceVersion={exact}&resourceVersionMatch=Exact"),
    };
    let mut page = page(world, client, &format!("limit={limit}{selectors}{revision}")).await;
    let end = world.now();
    let mut all = Vec::new();
    let mut first = None;
    loop {
        let (revision, items, next) = match page {
            Ok(page) => page,
            Err(Refusal::Gone) => {
                record(world.now(), first.map_or(ask, Ask::Exactly), Listed::Gone);
                return None;
            }
            Err(Refusal::Other) => return None,
        };
        let first = *first.get_or_insert(revision);
        if first != revision {
            let text = format!("pages of client {number} at revisions {first} and {revision}");
            world.violation("pages of one list are at one revision", text);
            return None;
        }
        all.extend(items);
        let Some(next) = next else {
            record(end, ask, Listed::Done { revision, items: all });
            world.saw_revision(revision);
            return Some(revision);
        };
        page = self::page(world, client, &format!("limit={limit}{selectors}&continue={next}")).await;
    }
}

enum Refusal {
    Gone,
    Other,
}

type Page = (u64, Vec<(Key, Version)>, Option<String>);

async fn page(world: &World, client: &mut Client, query: &str) -> Result<Page, Refusal> {
    let (status, body) = client
        .get(&format!("{PATH}?{query}"))
        .await
        .map_err(|_| Refusal::Other)?;
    match status {
        200 => {}
        410 => return Err(Refusal::Gone),
        _ => return Err(Refusal::Other),
    }
    let revision = object::revision(&body).ok_or(Refusal::Other)?;
    let items = body["items"].as_array().map_or(&[][..], Vec::as_slice);
    let items = items.iter().filter_map(|item: &Value| world.read(item)).collect();
    let next = body["metadata"]["continue"].as_str().filter(|next| !next.is_empty());
    Ok((revision, items, next.map(str::to_owned)))
}
