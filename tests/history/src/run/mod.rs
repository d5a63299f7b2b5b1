//! Runs: servers, clients and faults for some time, then quiet, then the check.

mod bursts;
pub mod client;
mod deletions;
mod etcd;
mod faults;
mod finish;
mod frames;
mod lane;
mod leases;
mod object;
mod pod;
mod proxy;
mod put_back;
mod readers;
mod report;
pub mod server;
pub mod situations;
mod standstill;
mod upserts;
mod vanish;
mod watchers;
mod world;
mod writers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use keelson_history::{Moment, Violation};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::task::JoinSet;

use self::etcd::Etcd;
use self::lane::Lane;
use self::object::Kind;
use self::proxy::Proxy;
use self::server::Server;
use self::situations::Situation;
use self::watchers::Style;
use self::world::{Phase, World};

/// Clients that write, that list, and that watch.
const WRITERS: usize = 8;
const READERS: usize = 3;
const WATCHERS: usize = 9;
/// Watchers of each of the other kinds of objects.
const OTHER_WATCHERS: usize = 5;
/// Clients that make pods and delete them.
const DELETERS: usize = 3;
/// After the faults, every watch has so long to hear of the last writes.
const SETTLING: Duration = Duration::from_secs(60);
/// What the last readers have seen, recorders hear within this time.
const HEARING: Duration = Duration::from_millis(500);
/// History that embedded and memory stores keep in a run.
const RETENTION: Duration = Duration::from_secs(12);

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Store {
    Memory,
    Embedded,
    Etcd,
}

#[derive(Clone)]
pub struct Settings {
    pub program: PathBuf,
    pub etcd: Option<PathBuf>,
    pub store: Store,
    /// How long there is traffic.
    pub time: Duration,
    pub seed: u64,
    pub situations: Vec<Situation>,
}

/// What the servers run on.
pub struct Site {
    pub store: Store,
    pub servers: Vec<Server>,
    /// One before each server.
    pub proxies: Vec<Proxy>,
    pub etcd: Option<Etcd>,
    situations: Vec<Situation>,
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
            situations: settings.situations.clone(),
            folder,
        };
        let interval = format!("--etcd-compaction-interval={}s", RETENTION.as_secs());
        let flags: Vec<Vec<String>> = match settings.store {
            Store::Memory => vec![vec!["--storage-backend=memory".into(), interval]],
            Store::Embedded => vec![vec!["--storage-backend=embedded".into(), interval]],
            Store::Etcd => {
                let etcd = Etcd::start(settings.etcd.as_deref().unwrap(), site.path("etcd"));
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
        for (index, mut flags) in flags.into_iter().enumerate() {
            flags.extend(site.flags());
            let folder = site.path(&format!("server-{index}"));
            site.servers.push(Server::start(&settings.program, &folder, flags));
        }
        site
    }

    /// What the situations ask of every server.
    fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if self.has(Situation::Leases) {
            flags.push(format!("--event-ttl={}s", leases::LIFETIME.as_secs()));
        }
        if self.has(Situation::Standstill) {
            flags.extend(standstill::FLAGS.map(str::to_owned));
        }
        flags
    }

    pub fn has(&self, situation: Situation) -> bool {
        self.situations.contains(&situation)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Objects of every kind that the run has, and nothing seen of them yet.
    fn lanes(&self) -> Vec<Lane> {
        let mut lanes = vec![Lane::new(Kind::Map, None)];
        if self.has(Situation::Leases) {
            let lifetime = leases::LIFETIME.as_micros() as Moment;
            lanes.push(Lane::new(Kind::Event, Some(lifetime)));
        }
        if self.has(Situation::Deletions) {
            lanes.push(Lane::new(Kind::Pod, None));
        }
        lanes
    }
}

/// The clients of a run. Each has a number and a seed of its own.
struct Crowd {
    site: Arc<Site>,
    world: Shared,
    seeds: SmallRng,
    number: usize,
    /// They end with the traffic.
    writers: JoinSet<()>,
    /// They end when all is over.
    readers: JoinSet<()>,
    /// They end when they have heard of the last writes …
    watchers: JoinSet<()>,
    /// … and these when all is over.
    recorders: JoinSet<()>,
}

impl Crowd {
    fn new(site: &Arc<Site>, world: &Shared, seed: u64) -> Crowd {
        Crowd {
            site: site.clone(),
            world: world.clone(),
            seeds: SmallRng::seed_from_u64(seed),
            number: 0,
            writers: JoinSet::new(),
            readers: JoinSet::new(),
            watchers: JoinSet::new(),
            recorders: JoinSet::new(),
        }
    }

    fn next(&mut self) -> (Shared, usize, SmallRng) {
        self.number += 1;
        (self.world.clone(), self.number, SmallRng::from_rng(&mut self.seeds))
    }

    fn watch(&mut self) {
        for lane in 0..self.world.lanes.len() {
            let kind = self.world.lanes[lane].kind;
            let count = if kind == Kind::Map { WATCHERS } else { OTHER_WATCHERS };
            for n in 0..count {
                let style = Style {
                    kind,
                    recorder: n == 0,
                    slow: n > 0 && n.is_multiple_of(3),
                    with_state: n % 3 == 1,
                    fickle: n % 3 == 2,
                };
                let (world, number, rng) = self.next();
                let crowd = if style.recorder {
                    &mut self.recorders
                } else {
                    &mut self.watchers
                };
                crowd.spawn(watchers::watch(world, number, style, rng));
            }
        }
    }

    fn read(&mut self) {
        for lane in 0..self.world.lanes.len() {
            let kind = self.world.lanes[lane].kind;
            for _ in 0..if kind == Kind::Map { READERS } else { 1 } {
                let (world, number, rng) = self.next();
                self.readers.spawn(readers::read(world, number, kind, rng));
            }
        }
    }

    fn write(&mut self) {
        let site = self.site.clone();
        let vanish = site.has(Situation::Vanish);
        for _ in 0..WRITERS {
            let (world, number, rng) = self.next();
            self.writers.spawn(writers::write(world, number, vanish, rng));
        }
        if vanish {
            let (world, _, rng) = self.next();
            self.writers.spawn(vanish::read(world, rng));
        }
        // What waits for the number of keys is the embedded store's.
        if site.has(Situation::Bursts) && site.store == Store::Embedded {
            let (world, _, rng) = self.next();
            self.writers.spawn(bursts::burst(world, rng));
        }
        if site.has(Situation::Leases) {
            let (world, number, rng) = self.next();
            self.writers.spawn(leases::trickle(world, number, rng));
            let (world, number, rng) = self.next();
            self.writers.spawn(leases::burst(site.clone(), world, number, rng));
        }
        if site.has(Situation::Deletions) {
            for _ in 0..DELETERS {
                let (world, number, rng) = self.next();
                self.writers.spawn(deletions::delete(world, number, rng));
            }
        }
        if site.has(Situation::Upserts) {
            let (world, number, rng) = self.next();
            self.writers.spawn(upserts::apply(world, number, rng));
        }
    }

    /// What is still to be done when the faults are over.
    async fn settle(&mut self) {
        let world = self.world.clone();
        world.set(Phase::Settling);
        while let Some(done) = self.writers.join_next().await {
            assert!(done.is_ok() || world.is_broken(), "a client has failed");
        }
        if !world.is_broken() {
            let probe = async {
                if self.site.has(Situation::Standstill) {
                    standstill::probe(&world).await;
                }
            };
            tokio::join!(finish::finish(&world), probe);
        }
        let heard = async {
            while self.watchers.join_next().await.is_some() {}
            world.heard().await;
        };
        let _ = tokio::time::timeout(SETTLING, heard).await;
        world.set(Phase::Quiet);
        while self.watchers.join_next().await.is_some() {}
        while self.readers.join_next().await.is_some() {}
        tokio::time::sleep(HEARING).await;
        world.set(Phase::Done);
        while self.recorders.join_next().await.is_some() {}
        if self.site.has(Situation::Standstill) && !world.is_broken() {
            standstill::end(&self.site, &world).await;
        }
    }
}

/// True: nothing was wrong.
pub async fn run(settings: Settings) -> bool {
    let site = Arc::new(Site::start(&settings).await);
    let targets = site.servers.iter().map(Server::target).collect();
    let world = World::new(targets, site.lanes());
    world.prepare().await;
    let begin = Instant::now();
    let mut crowd = Crowd::new(&site, &world, settings.seed);
    crowd.watch();
    world.recording(&site.servers).await;
    crowd.write();
    crowd.read();
    let (_, _, rng) = crowd.next();
    let told = faults::make(&site, &world, settings.time, rng).await;
    crowd.settle().await;
    drop(crowd);
    let (mut histories, mut violations) = world.take();
    for (kind, history) in &mut histories {
        history.retention = (settings.store != Store::Etcd).then_some(RETENTION.as_micros() as u64);
        let found = keelson_history::check(history).into_iter();
        violations.extend(found.map(|violation| Violation {
            text: format!("{kind:?}: {}", violation.text),
            ..violation
        }));
    }
    violations.extend(keelson_history::check_deletions(&world.steps.lock().unwrap()));
    violations.extend(report::idle(&histories, settings.time));
    println!(
        "{:?} seed {}: {} s, {}, faults: {told}: {} violations",
        settings.store,
        settings.seed,
        begin.elapsed().as_secs(),
        report::summary(&histories),
        violations.iter().filter(|found| found.is_broken()).count()
    );
    for undecided in violations.extract_if(.., |found| !found.is_broken()) {
        println!("  not decided: {}", undecided.text);
    }
    if violations.is_empty() {
        return true;
    }
    drop(world);
    let site = Arc::into_inner(site).expect("nobody uses the servers any more");
    report::keep(&settings, site, &histories, &violations);
    false
}

type Shared = Arc<World>;
