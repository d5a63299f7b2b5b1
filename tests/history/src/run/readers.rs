//! Clients that list: everything or some of it, now or at some revision, whole or in pages.

use std::time::Duration;

use keelson_history::{Ask, COLORS, Filter, Key, List, Listed, Version};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::Shared;
use super::client::Client;
use super::lane::Lane;
use super::object::{self, KEYS, Kind};
use super::world::{Phase, World};

/// The pause between two lists is up to so many milliseconds.
const PAUSE: u64 = 60;
/// A list of the past goes back up to so many revisions.
const PAST: u64 = 2500;

/// One list by a selector in so many is followed by the list without it, at the same revision.
const COMPARED: u32 = 3;

pub async fn read(world: Shared, number: usize, kind: Kind, mut rng: SmallRng) {
    let targets = world.targets.iter();
    let mut clients: Vec<_> = targets
        .map(|target| Client::new(target.clone(), rng.random()))
        .collect();
    // They go on while watches are to hear of the last writes: nobody may be kept from it by who reads.
    while world.phase() < Phase::Quiet {
        let server = rng.random_range(0..clients.len());
        let newest = world.lane(kind).newest();
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
        let filter = random_filter(kind, &mut rng);
        let (client, who) = (&mut clients[server], (number, server));
        let listed = list(&world, kind, client, who, filter, ask, limit).await;
        if let Some(Seen { revision, .. }) =
            listed.filter(|_| filter != Filter::default() && rng.random_ratio(1, COMPARED))
        {
            let ask = Ask::Exactly(revision);
            list(&world, kind, client, who, Filter::default(), ask, 0).await;
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..=PAUSE))).await;
    }
}

/// Everything, one color or (where there are few) one key.
pub fn random_filter(kind: Kind, rng: &mut SmallRng) -> Filter {
    let choices = if kind == Kind::Map { 3 } else { 2 };
    match rng.random_range(0..choices) {
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

/// What a list came to.
pub struct Seen {
    pub revision: u64,
    pub count: usize,
}

/// Lists and records it; `None`: there is no list.
pub async fn list(
    world: &World,
    kind: Kind,
    client: &mut Client,
    (number, server): (usize, usize),
    filter: Filter,
    ask: Ask,
    limit: u32,
) -> Option<Seen> {
    let (begin, lane) = (world.now(), world.lane(kind));
    let record = |end, ask, listed| {
        lane.history.lock().unwrap().lists.push(List {
            client: number,
            server,
            filter,
            ask,
            begin,
            end,
            listed,
        });
    };
    let selectors = object::selectors(kind, &filter);
    let revision = match ask {
        Ask::Newest => String::new(),
        Ask::Any => "&resourceVersion=0".to_owned(),
        Ask::AtLeast(least) => format!("&resourceVersion={least}&resourceVersionMatch=NotOlderThan"),
        Ask::Exactly(exact) => format!("&resourceVersion={exact}&resourceVersionMatch=Exact"),
    };
    let mut page = page(world, lane, client, &format!("limit={limit}{selectors}{revision}")).await;
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
            let count = all.len();
            record(end, ask, Listed::Done { revision, items: all });
            lane.saw_revision(revision);
            return Some(Seen { revision, count });
        };
        page = self::page(
            world,
            lane,
            client,
            &format!("limit={limit}{selectors}&continue={next}"),
        )
        .await;
    }
}

enum Refusal {
    Gone,
    Other,
}

type Page = (u64, Vec<(Key, Version)>, Option<String>);

async fn page(world: &World, lane: &Lane, client: &mut Client, query: &str) -> Result<Page, Refusal> {
    let (status, body) = client
        .get(&format!("{}?{query}", lane.kind.path()))
        .await
        .map_err(|_| Refusal::Other)?;
    match status {
        200 => {}
        410 => return Err(Refusal::Gone),
        _ => return Err(Refusal::Other),
    }
    let revision = object::revision(&body).ok_or(Refusal::Other)?;
    let items = body["items"].as_array().map_or(&[][..], Vec::as_slice);
    let items = items.iter().filter_map(|item: &Value| lane.read(world, item)).collect();
    let next = body["metadata"]["continue"].as_str().filter(|next| !next.is_empty());
    Ok((revision, items, next.map(str::to_owned)))
}
