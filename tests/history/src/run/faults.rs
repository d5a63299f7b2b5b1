//! Faults of a run, and their times.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::SmallRng;

use super::proxy::{Mode, Proxy};
use super::put_back::{self, Copy};
use super::server::Server;
use super::situations::Situation;
use super::world::World;
use super::{Shared, Site, Store};

/// Between two faults there is quiet for up to so many milliseconds.
const QUIET: u64 = 2500;
/// The longest fault, in milliseconds.
const LONGEST: u64 = 3000;
/// One fault in so many lasts longer, beyond the time limits of requests.
const LONG_ONE_IN: u32 = 25;
/// In a long run the store is put back once in this time.
const SPAN: Duration = Duration::from_secs(40);
/// Traffic before and after what a run must not end without.
const BRIEF: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(13);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    Kill,
    Terminate,
    Freeze,
    FreezeEtcd,
    KillEtcd,
    Compact,
    Refuse,
    Hole,
    Delay,
    Mute,
}

impl Fault {
    /// What a store is made to suffer, the frequent ones more than once. Memory forgets what it holds at a restart.
    fn of(site: &Site) -> Vec<Fault> {
        let faults = Fault::of_store(site.store).iter().copied();
        faults
            .filter(|fault| *fault != Fault::Mute || site.has(Situation::Mute))
            .collect()
    }

    fn of_store(store: Store) -> &'static [Fault] {
        match store {
            Store::Memory => &[Fault::Freeze],
            Store::Embedded => &[Fault::Kill, Fault::Kill, Fault::Terminate, Fault::Freeze],
            Store::Etcd => &[
                Fault::Kill,
                Fault::Terminate,
                Fault::FreezeEtcd,
                Fault::KillEtcd,
                Fault::Compact,
                Fault::Compact,
                Fault::Refuse,
                Fault::Hole,
                Fault::Delay,
                Fault::Mute,
            ],
        }
    }
}

/// Makes faults for some time and leaves everything healthy. What there was, in words.
pub async fn make(site: &Site, world: &Shared, time: Duration, mut rng: SmallRng) -> String {
    let begin = Instant::now();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut past = Past::new(site.has(Situation::PutBack));
    while !world.is_broken() {
        let quiet = Duration::from_millis(rng.random_range(200..=QUIET));
        tokio::time::sleep(quiet.min(time.saturating_sub(begin.elapsed()))).await;
        if begin.elapsed() >= time {
            break;
        }
        let _calm = world.calm.lock().await;
        if past.is_due(begin.elapsed(), time) {
            past.go_on(site, world, &mut rng).await;
            continue;
        }
        let faults = Fault::of(site);
        let fault = faults[rng.random_range(0..faults.len())];
        *counts.entry(format!("{fault:?}")).or_default() += 1;
        suffer(site, world, fault, &mut rng).await;
    }
    // Faults that lasted have left no time for it.
    while past.wanted && past.backs == 0 && !world.is_broken() {
        tokio::time::sleep(BRIEF).await;
        past.go_on(site, world, &mut rng).await;
        tokio::time::sleep(BRIEF).await;
    }
    if past.backs > 0 {
        counts.insert("PutBack".to_owned(), past.backs);
    }
    if site.has(Situation::Mute) && !world.is_broken() {
        // No other fault comes to the help of who hears nothing.
        doubt(world);
        site.proxies.iter().for_each(Proxy::mute);
    }
    let told = counts.iter().map(|(fault, count)| format!("{count} {fault}"));
    told.collect::<Vec<_>>().join(", ")
}

/// When the store is copied, and when it is put back to the copy.
struct Past {
    wanted: bool,
    copied: bool,
    copy: Option<Copy>,
    backs: u32,
}

impl Past {
    fn new(wanted: bool) -> Past {
        Past {
            wanted,
            copied: false,
            copy: None,
            backs: 0,
        }
    }

    /// In a quarter and in the middle of each span, and once in a run that is shorter.
    fn is_due(&self, elapsed: Duration, time: Duration) -> bool {
        let span = time.min(SPAN);
        let from = span * self.backs + if self.copied { span / 2 } else { span / 4 };
        self.wanted && elapsed >= from
    }

    async fn go_on(&mut self, site: &Site, world: &World, rng: &mut SmallRng) {
        if !self.copied {
            self.copy = put_back::take(site, world).await;
            self.copied = true;
        } else {
            put_back::put_back(site, world, self.copy.as_ref(), rng).await;
            self.copied = false;
            self.backs += 1;
        }
        for server in &site.servers {
            revive(server, world).await;
        }
    }
}

/// Returns when a server serves; the run is over if it does not.
async fn revive(server: &Server, world: &World) {
    if let Err(log) = server.serves().await {
        world.breaks("a server starts again", log);
    }
}

/// Looks at the folder of a server that has ended, starts it again, and waits until it serves.
async fn start_again(site: &Site, world: &World, server: &Server) {
    if site.store == Store::Embedded
        && let Err(error) = server.check()
    {
        world.violation("a folder at rest is whole", error);
    }
    server.start_again();
    revive(server, world).await;
}

/// From now on what a stream of etcd had not told may be gone.
fn doubt(world: &World) {
    for lane in &world.lanes {
        lane.history.lock().unwrap().doubts.push(world.now());
    }
}

async fn suffer(site: &Site, world: &World, fault: Fault, rng: &mut SmallRng) {
    if site.store == Store::Etcd {
        doubt(world);
    }
    let which = rng.random_range(0..site.servers.len());
    let server = &site.servers[which];
    let time = match rng.random_ratio(1, LONG_ONE_IN) {
        true => LONG,
        false => Duration::from_millis(rng.random_range(50..=LONGEST)),
    };
    let misbehave = async |mode| {
        if let Some(proxy) = site.proxies.get(which) {
            proxy.set(mode);
            tokio::time::sleep(time).await;
            proxy.set(Mode::Pass);
        }
    };
    match fault {
        Fault::Kill => {
            server.kill();
            tokio::time::sleep(time / 10).await;
            start_again(site, world, server).await;
        }
        Fault::Terminate => {
            server.terminate().await;
            start_again(site, world, server).await;
        }
        Fault::Freeze => server.freeze(time).await,
        Fault::Mute => site.proxies[which].mute(),
        Fault::Refuse => misbehave(Mode::Refuse).await,
        Fault::Hole => misbehave(Mode::Hole).await,
        Fault::Delay => misbehave(Mode::Delay(time / 20)).await,
        Fault::FreezeEtcd | Fault::KillEtcd | Fault::Compact => {
            let Some(etcd) = &site.etcd else { return };
            match fault {
                Fault::FreezeEtcd => etcd.freeze(time).await,
                Fault::KillEtcd => etcd.restart(),
                // not beyond what the first watcher has heard, which is to tell of everything
                _ => {
                    let recorded = world.lanes.iter().map(|lane| lane.recorded.load(Ordering::Relaxed));
                    let revision = recorded.min().unwrap_or(0);
                    for lane in &world.lanes {
                        lane.history.lock().unwrap().compactions.push((world.now(), revision));
                    }
                    // a refusal says that it is compacted, or that etcd is starting: both are fine
                    let _ = etcd.compact(revision).await;
                }
            }
        }
    }
}
