//! What goes wrong in a run, and when.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::SmallRng;

use super::proxy::Mode;
use super::world::World;
use super::{Shared, Site, Store};

/// Between two faults there is quiet for up to so many milliseconds.
const QUIET: u64 = 2500;
/// The longest fault, in milliseconds.
const LONGEST: u64 = 3000;
/// One fault in so many lasts longer, beyond the time limits of requests.
const LONG_ONE_IN: u32 = 25;
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
}

impl Fault {
    /// What a store is made to suffer, the frequent ones more than once. Memory forgets what it holds at a restart.
    fn of(store: Store) -> &'static [Fault] {
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
            ],
        }
    }
}

/// Makes faults for some time and leaves everything healthy. What there was, in words.
pub async fn make(site: &Site, world: &Shared, time: Duration, mut rng: SmallRng) -> String {
    let begin = Instant::now();
    let mut counts: BTreeMap<Fault, u32> = BTreeMap::new();
    loop {
        let quiet = Duration::from_millis(rng.random_range(200..=QUIET));
        tokio::time::sleep(quiet.min(time.saturating_sub(begin.elapsed()))).await;
        if begin.elapsed() >= time {
            break;
        }
        let faults = Fault::of(site.store);
        let fault = faults[rng.random_range(0..faults.len())];
        *counts.entry(fault).or_default() += 1;
        suffer(site, world, fault, &mut rng).await;
    }
    counts
        .iter()
        .map(|(fault, count)| format!("{count} {fault:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

async fn suffer(site: &Site, world: &World, fault: Fault, rng: &mut SmallRng) {
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
            server.start_again();
        }
        Fault::Terminate => {
            server.terminate().await;
            server.start_again();
        }
        Fault::Freeze => server.freeze(time).await,
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
                    let revision = world.recorded.load(Ordering::Relaxed);
                    let asked = (world.now(), revision);
                    world.history.lock().unwrap().compactions.push(asked);
                    // a refusal says that it is compacted, or that etcd is starting: both are fine
                    let _ = etcd.compact(revision).await;
                }
            }
        }
    }
}
