//! One run: servers, clients and faults for some time, then quiet, then the check.

pub mod client;
mod etcd;
mod faults;
mod object;
mod proxy;
mod readers;
pub mod server;
mod watchers;
mod world;
mod writers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use keelson_history::{Delivery, History, Outcome, Violation};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::task::JoinSet;

use self::etcd::Etcd;
use self::proxy::Proxy;
use self::server::Server;
use self::world::{Phase, World};

/// Clients that write, that list, and that watch.
const WRITERS: usize = 8;
const READERS: usize = 3;
const WATCHERS: usize = 9;
/// After the faults, every watch has so long to hear of the last writes.
const SETTLING: Duration = Duration::from_secs(30);
/// History that embedded and memory stores keep in a run.
const RETENTION: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Store {
    Memory,
    Embedded,
    Etcd,
}

pub struct Settings {
    pub program: PathBuf,
    pub etcd: Option<PathBuf>,
    pub store: Store,
    /// How long there is traffic.
    pub time: Duration,
    pub seed: u64,
}

/// What the servers run on.
pub struct Site {
    pub store: Store,
    pub servers: Vec<Server>,
    /// One before each server.
    pub proxies: Vec<Proxy>,
    pub etcd: Option<Etcd>,
    folder: tempfile::TempDir,
}

impl Site {
    async fn start(settings: &Settings) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let mut site = Site {
            store: settings.store,
            servers: Vec::new(),
            proxies: Vec::new(),
            etcd: None,
            folder,
        };
        let path = |name: &str| site.folder.path().join(name);
        let interval = format!("--etcd-compaction-interval={}s", RETENTION.as_secs());
        let flags: Vec<Vec<String>> = match settings.store {
            Store::Memory => vec![vec!["--storage-backend=memory".into(), interval]],
            Store::Embedded => vec![vec!["--storage-backend=embedded".into(), interval]],
            Store::Etcd => {
                let etcd = Etcd::start(settings.etcd.as_deref().unwrap(), path("etcd"));
                let mut flags = Vec::new();
                for _ in 0..2 {
                    let proxy = Proxy::start(etcd.port).await;
                    let servers = format!("--etcd-servers=http://127.0.0.1:{}", proxy.port);
                    flags.push(vec![servers, "--etcd-compaction-interval=0".into()]);
                    site.proxies.push(proxy);
                }
                site.etcd = Some(etcd);
                flags
            }
        };
        for (index, flags) in flags.into_iter().enumerate() {
            let folder = path(&format!("server-{index}"));
            site.servers.push(Server::start(&settings.program, &folder, flags));
        }
        site
    }
}

/// True: nothing was wrong.
pub async fn run(settings: Settings) -> bool {
    let site = Site::start(&settings).await;
    let targets = site.servers.iter().map(Server::target).collect();
    let world = World::new(targets);
    world.prepare().await;
    let mut seeds = SmallRng::seed_from_u64(settings.seed);
    let mut rng = || SmallRng::from_rng(&mut seeds);
    let begin = Instant::now();

    let (mut clients, mut watchers) = (JoinSet::new(), JoinSet::new());
    for n in 0..WATCHERS {
        watchers.spawn(watchers::watch(world.clone(), n, rng()));
    }
    world.recording().await;
    for n in 0..WRITERS {
        clients.spawn(writers::write(world.clone(), WATCHERS + n, rng()));
    }
    for n in 0..READERS {
        clients.spawn(readers::read(world.clone(), WATCHERS + WRITERS + n, rng()));
    }
    let told = faults::make(&site, &world, settings.time, rng()).await;
    world.set(Phase::Settling);
    while clients.join_next().await.is_some_and(|done| done.is_ok()) {}
    assert!(clients.is_empty(), "a client has failed");
    world.finish().await;
    let _ = tokio::time::timeout(SETTLING, async { while watchers.join_next().await.is_some() {} }).await;
    world.set(Phase::Done);
    while watchers.join_next().await.is_some() {}

    let (mut history, mut violations) = world.take();
    history.retention = (settings.store != Store::Etcd).then_some(RETENTION.as_micros() as u64);
    violations.extend(keelson_history::check(&history));
    let done = history
        .operations
        .iter()
        .filter(|operation| matches!(operation.outcome, Outcome::Done(_)));
    if (done.count() as u64) < settings.time.as_secs() {
        let text = "fewer than one operation per second was done".to_owned();
        violations.push(Violation {
            rule: "the load is a load",
            text,
        });
    }
    let line = summary(&history);
    println!(
        "{:?} seed {}: {} s, {line}, faults: {told}: {} violations",
        settings.store,
        settings.seed,
        begin.elapsed().as_secs(),
        violations.len()
    );
    if violations.is_empty() {
        return true;
    }
    report(&settings, site, &history, &violations);
    false
}

fn summary(history: &History) -> String {
    let done = |operation: &&keelson_history::Operation| matches!(operation.outcome, Outcome::Done(_));
    let deliveries: usize = history.streams.iter().map(|stream| stream.deliveries.len()).sum();
    let bookmarks = history.streams.iter().flat_map(|stream| &stream.deliveries);
    let bookmarks =
        bookmarks.filter(|(_, delivery)| matches!(delivery, Delivery::Bookmark(_) | Delivery::InitialEnd(_)));
    let unknown = history
        .operations
        .iter()
        .filter(|operation| operation.outcome == Outcome::Unknown);
    format!(
        "{} operations ({} done, {} unknown), {} lists, {} watches with {deliveries} deliveries ({} bookmarks, {} gone)",
        history.operations.len(),
        history.operations.iter().filter(done).count(),
        unknown.count(),
        history.lists.len(),
        history.streams.len(),
        bookmarks.count(),
        history
            .streams
            .iter()
            .filter(|stream| stream
                .deliveries
                .iter()
                .any(|(_, delivery)| *delivery == Delivery::Gone))
            .count(),
    )
}

/// Shows the violations, and keeps what a search for their cause needs.
fn report(settings: &Settings, mut site: Site, history: &History, violations: &[Violation]) {
    for violation in violations.iter().take(20) {
        println!("  {}: {}", violation.rule, violation.text);
    }
    site.folder.disable_cleanup(true);
    let folder = site.folder.path();
    let file = folder.join("history");
    let _ = std::fs::write(&file, format!("{history:#?}\n{violations:#?}\n"));
    println!(
        "  history, logs and data are in {}; again: traffic --stores {} --seconds {} --seed {}",
        folder.display(),
        format!("{:?}", settings.store).to_lowercase(),
        settings.time.as_secs(),
        settings.seed
    );
}

type Shared = Arc<World>;
