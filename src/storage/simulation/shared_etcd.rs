//! Runs of several servers over one etcd.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::actors::fault_schedule::Sky;
use super::actors::readers::{Reader, check_all};
use super::actors::watchers::{Place, Watcher};
use super::actors::writers::{Neighbour, Writer};
use super::etcd::cluster::{Cluster, HASTY, ORDERLY};
use super::etcd::network::Network;
use super::executor::{self, Spawner};
use super::plan::{Plan, Shape};
use super::random::Dice;
use super::servers::Server;
use super::world::{Violation, World};
use super::{Outcome, PROMISES};
use crate::Store;

/// All is in order again this long after nothing went wrong any more.
const RECOVERY: Duration = Duration::from_secs(40);

type Places = Vec<(String, Arc<Mutex<Option<Place>>>)>;

/// What a guest does not know yet; `None`: it knows what is there.
pub type Missing = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// One run.
pub struct Run {
    pub world: Arc<World>,
    pub cluster: Arc<Cluster>,
    network: Network,
    pub servers: Arc<Vec<Server>>,
    pub plan: Plan,
    /// The run ends when guests know what is there.
    pub guests: Mutex<Vec<Missing>>,
}

/// Runs what a seed makes of it.
pub fn run(seed: u64, talks: bool) -> Outcome {
    run_with(seed, talks, Shape::PLAIN, |_| {})
}

/// Runs what a seed makes of it while the files of etcd are put back.
pub fn put_back(seed: u64, talks: bool) -> Outcome {
    let dice = Dice::new(seed);
    let plan = Plan::put_back(&dice, Shape::PLAIN);
    run_plan(dice, plan, talks, |_| {})
}

/// Runs what a seed makes of it, with objects of a shape, and with whom `invite` spawns besides.
pub fn run_with(seed: u64, talks: bool, shape: Shape, invite: impl FnOnce(&Run)) -> Outcome {
    let dice = Dice::new(seed);
    let plan = Plan::of(&dice, shape);
    run_plan(dice, plan, talks, invite)
}

fn run_plan(dice: Dice, plan: Plan, talks: bool, invite: impl FnOnce(&Run)) -> Outcome {
    let shown = plan.clone();
    let done = executor::run(dice.clone(), move |spawner| play(dice, plan, spawner, talks, invite));
    Outcome {
        violation: done.output,
        trace: done.trace,
        steps: done.steps,
        plan: format!("{shown:?}"),
    }
}

async fn play(dice: Dice, plan: Plan, spawner: Spawner, talks: bool, invite: impl FnOnce(&Run)) -> Option<Violation> {
    let world = World::new(dice.clone(), spawner, talks);
    let version = if plan.hasty { HASTY } else { ORDERLY };
    let cluster = Cluster::new(dice.clone(), plan.members, version);
    let network = Network::new(dice, plan.notices);
    for prefix in plan.shape.prefixes {
        let base = (0..plan.shape.base).map(|number| plan.shape.put(prefix, &format!("base-{number:03}"), "b", None));
        cluster.commit(&base.collect::<Vec<_>>());
    }
    world.spawner.spawn(cluster.clone().end_leases());
    for member in 0..plan.members {
        world.spawner.spawn(cluster.clone().apply(member));
    }
    let mut servers = Vec::new();
    for _ in 0..plan.servers {
        servers.push(Server::begin(&world, &cluster, &network, plan.compacts).await);
    }
    let run = Run {
        world: world.clone(),
        cluster,
        network,
        servers: Arc::new(servers),
        plan,
        guests: Mutex::default(),
    };
    invite(&run);
    tokio::select! {
        biased;
        () = world.failed() => {}
        () = run.all() => {}
    }
    world.violation()
}

impl Run {
    async fn all(&self) {
        let places = self.begin();
        sleep(self.plan.length).await;
        self.world.rest();
        self.world.say(|| "nothing goes wrong any more".to_owned());
        self.recover(&places).await;
    }

    fn begin(&self) -> Places {
        let spawner = &self.world.spawner;
        for number in 0..self.plan.writers {
            let writer = Writer {
                world: self.world.clone(),
                cluster: self.cluster.clone(),
                servers: self.servers.clone(),
                plan: self.plan.clone(),
                number,
            };
            spawner.spawn(writer.run());
        }
        let neighbour = Neighbour {
            world: self.world.clone(),
            cluster: self.cluster.clone(),
            plan: self.plan.clone(),
        };
        spawner.spawn(neighbour.run());
        for _ in 0..self.plan.readers {
            spawner.spawn(self.reader().run());
        }
        if self.plan.greedy {
            spawner.spawn(self.reader().greedy(0, self.plan.shape.prefixes[0]));
        }
        let sky = Sky {
            world: self.world.clone(),
            cluster: self.cluster.clone(),
            network: self.network.clone(),
            servers: self.servers.clone(),
            plan: self.plan.clone(),
        };
        spawner.spawn(sky.run());
        (0..self.plan.watchers).map(|_| self.watcher()).collect()
    }

    fn reader(&self) -> Reader {
        Reader {
            world: self.world.clone(),
            truth: self.cluster.truth.clone(),
            servers: self.servers.clone(),
            plan: self.plan.clone(),
        }
    }

    fn watcher(&self) -> (String, Arc<Mutex<Option<Place>>>) {
        let dice = self.world.dice.clone();
        // Of one resource from memory, or of all from etcd, which leaves nothing behind that could tell of lost files.
        let direct = dice.chance(250) && !self.plan.files;
        let prefix = if direct { "/" } else { self.plan.prefix(&dice) }.to_owned();
        let watcher = Watcher {
            world: self.world.clone(),
            truth: self.cluster.truth.clone(),
            prefix: prefix.clone(),
            direct,
            // A server that was begun anew can't know of a time before it.
            ignorant: !self.plan.restarts && !self.plan.files && dice.chance(500),
            learn: Arc::new(|| {}),
            slowness: *dice.pick(&[0, 0, 50, 1000]),
            place: Arc::default(),
        };
        let (place, servers) = (watcher.place.clone(), self.servers.clone());
        let store = move || dice.pick(&servers).store() as Arc<dyn Store>;
        self.world.spawner.spawn(watcher.run(store));
        (prefix, place)
    }

    /// Waits until everybody knows what is there; checks that it does not take for ever.
    async fn recover(&self, places: &Places) {
        sleep(self.world.dice.millis(3000)).await;
        for prefix in self.plan.shape.prefixes {
            let put = self.plan.shape.put(prefix, "last", "last", None);
            self.cluster.commit(&[put]);
        }
        let mut waited = Duration::ZERO;
        loop {
            sleep(Duration::from_secs(1)).await;
            waited += Duration::from_secs(1);
            if let Some(mute) = self.network.mute_too_long(&self.cluster) {
                let what = format!("after {mute:?}");
                return self.world.fail(PROMISES.mute, what);
            }
            let missing = self.missing(places).await;
            if missing.is_empty() {
                return;
            }
            if waited > RECOVERY {
                return self.world.fail(PROMISES.recovery, missing.join("; "));
            }
        }
    }

    /// Who does not know yet what is there.
    async fn missing(&self, places: &Places) -> Vec<String> {
        let mut missing = Vec::new();
        for (number, server) in self.servers.iter().enumerate() {
            for prefix in self.plan.shape.prefixes {
                let before = self.cluster.truth.now();
                match server.store().snapshot(prefix).await {
                    Ok(shown) => {
                        let entries: Vec<_> = shown.range(prefix, prefix).collect();
                        let truth = &self.cluster.truth;
                        check_all(&self.world, truth, before, prefix, shown.revision(), &entries);
                    }
                    Err(error) => missing.push(format!("server {number} lists {prefix}: {error}")),
                }
                if !server.is_current(prefix, &self.cluster.truth) {
                    missing.push(format!("memory of server {number} for {prefix}"));
                }
            }
        }
        let truth = &self.cluster.truth;
        for (prefix, place) in places {
            let place = *place.lock().unwrap();
            let left = place.map(|place| (place, truth.count_after(place.timeline, prefix, place.told)));
            if !left.is_some_and(|(place, left)| left == 0 && place.timeline == truth.now().timeline) {
                missing.push(format!("watch of {prefix}: {left:?}"));
            }
        }
        let guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        missing.extend(guests.iter().filter_map(|missing| missing()));
        missing
    }
}
