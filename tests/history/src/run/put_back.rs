//! Stores that are put back to an earlier state: etcd and a folder from a copy, memory by a restart that forgets all.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use keelson_history::{Border, LATEST};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::etcd::Etcd;
use super::proxy::Mode;
use super::world::World;
use super::{Site, Store};

/// Recorders have so long to hear of all that was written.
const HEARING: Duration = Duration::from_secs(15);
/// Servers that live on may show the earlier timeline for so many microseconds after etcd has the later one.
const SLACK: u64 = 3_000_000;
/// Who waits for watchers to find their way gives up after this time.
const CROSSING: Duration = Duration::from_micros(LATEST + 5_000_000);

/// A state to go back to.
pub struct Copy {
    path: PathBuf,
    /// Its revision, where it is known beforehand.
    revision: u64,
}

/// Takes a copy while nobody writes. `None`: there is nothing to be copied.
pub async fn take(site: &Site, world: &World) -> Option<Copy> {
    let path = site.path("copy");
    let _quiet = world.gate.write().await;
    match site.store {
        Store::Memory => None,
        Store::Embedded => {
            let server = &site.servers[0];
            server.terminate().await;
            let _ = std::fs::remove_file(&path);
            let said = server.store(&["snapshot", path.to_str()?]);
            server.start_again();
            let said = said
                .map_err(|error| world.violation("a folder at rest is copied", error))
                .ok()?;
            Some(Copy {
                path,
                revision: revision(&said)?,
            })
        }
        Store::Etcd => {
            let _ = std::fs::remove_dir_all(&path);
            site.etcd.as_ref()?.copy_to(&path);
            Some(Copy { path, revision: 0 })
        }
    }
}

/// The last revision that `store snapshot` tells of.
fn revision(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("revisions ")?;
    let (_, last) = rest.split_once(" to ")?;
    last.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Puts the store back to a copy; returns when watchers have found their way, or should have.
pub async fn put_back(site: &Site, world: &World, copy: Option<&Copy>, rng: &mut SmallRng) {
    let quiet = world.gate.write().await;
    let since = Instant::now();
    while !world.lanes.iter().all(super::lane::Lane::is_recorded) && since.elapsed() < HEARING {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let down = world.goes_down();
    let border = match (site.store, copy) {
        (Store::Memory, _) => memory(site, world, down).await,
        (Store::Embedded, Some(copy)) => embedded(site, world, down, copy, rng).await,
        (Store::Etcd, Some(copy)) => etcd(site, world, down, copy, rng).await,
        (_, None) => None,
    };
    let Some(border) = border else {
        return world.nothing_was_put_back();
    };
    world.is_put_back(border);
    if site.store != Store::Etcd {
        site.servers[0].start_again();
        if let Err(log) = site.servers[0].serves().await {
            return world.breaks("a server starts again", log);
        }
    }
    world.steady().await;
    if site.store == Store::Memory {
        world.prepare().await;
    }
    let since = Instant::now();
    while !world.lanes.iter().all(|lane| lane.has_crossed(border)) && since.elapsed() < CROSSING {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.recording(&site.servers).await;
    world.is_written();
    drop(quiet);
}

async fn memory(site: &Site, world: &World, down: u64) -> Option<Border> {
    site.servers[0].kill();
    Some(Border {
        down,
        up: world.now(),
        written: u64::MAX,
        common: 0,
    })
}

/// As somebody does it who has lost the store: with its files removed, all of them or only the one that was lost.
async fn embedded(site: &Site, world: &World, down: u64, copy: &Copy, rng: &mut SmallRng) -> Option<Border> {
    let server = &site.servers[0];
    server.kill();
    let store = server.data().join("store");
    // The log of a lost file may hold what is nowhere else, so it is replaced only on demand.
    let is_all: bool = rng.random();
    let (removed, demand) = match is_all {
        true => (std::fs::remove_dir_all(&store), None),
        false => (std::fs::remove_file(store.join("store.db")), Some("--force")),
    };
    removed.unwrap();
    let log = std::fs::metadata(store.join("store.db-wal"));
    let has_log = log.is_ok_and(|log| log.len() > 0);
    let copy_path = copy.path.to_str()?;
    if has_log && let Ok(said) = server.store(&["restore", copy_path]) {
        world.violation("a folder with a log is not replaced unasked", said);
    }
    let args: Vec<&str> = ["restore", copy_path].into_iter().chain(demand).collect();
    if let Err(error) = server.store(&args) {
        world.violation("a folder without a store takes a copy", error);
    }
    if let Err(error) = server.check() {
        world.violation("a folder at rest is whole", error);
    }
    Some(Border {
        down,
        up: world.now(),
        written: u64::MAX,
        common: copy.revision,
    })
}

/// While its servers run: they find it at an earlier revision, or as far as it was, or further, with other content.
async fn etcd(site: &Site, world: &World, down: u64, copy: &Copy, rng: &mut SmallRng) -> Option<Border> {
    let etcd = site.etcd.as_ref()?;
    site.proxies.iter().for_each(|proxy| proxy.set(Mode::Refuse));
    let before = etcd.revision().await;
    etcd.put_back(&copy.path);
    let common = asked_again(async || etcd.revision().await).await;
    if let (Ok(before), true) = (before, rng.random()) {
        let wanted = before + rng.random_range(0..5);
        asked_again(async || fill(etcd, wanted).await).await;
    }
    let up = world.now() + SLACK;
    site.proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
    Some(Border {
        down,
        up,
        written: u64::MAX,
        common,
    })
}

/// Makes etcd reach a revision, by changes that concern nobody.
async fn fill(etcd: &Etcd, wanted: u64) -> Result<(), String> {
    let mut connection = etcd.connect().await?;
    let mut reached = etcd.revision().await?;
    while reached < wanted {
        reached = connection.put("/elsewhere", "", &Value::Null).await?;
    }
    Ok(())
}

/// etcd needs a moment before it answers.
async fn asked_again<T>(ask: impl AsyncFn() -> Result<T, String>) -> T {
    let since = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(since.elapsed() < CROSSING, "etcd: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
