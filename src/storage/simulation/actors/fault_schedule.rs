//! Faults of a simulated run, and their times.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;

use super::readers::Reader;
use super::watchers::{Place, Watcher};
use crate::simulation::etcd::cluster::Cluster;
use crate::simulation::etcd::network::{Network, Weather};
use crate::simulation::plan::Plan;
use crate::simulation::servers::Server;
use crate::simulation::world::World;
use crate::{Revision, Store};

/// Writes that others may do while the stores can't reach etcd.
const MOST_MEANWHILE: usize = 120;

pub struct Sky {
    pub world: Arc<World>,
    pub cluster: Arc<Cluster>,
    pub network: Network,
    pub servers: Arc<Vec<Server>>,
    pub plan: Plan,
}

impl Sky {
    /// Changes the weather until the run comes to rest.
    pub async fn run(self) {
        let mut restores = usize::from(self.plan.restore);
        loop {
            sleep(Duration::from_millis(100) + self.world.dice.millis(3000)).await;
            if !self.world.is_busy() {
                break;
            }
            if self.plan.amid && restores > 0 && self.world.dice.chance(400) {
                restores -= 1;
                self.begin_lists().await;
                if self.world.is_busy() {
                    self.restore().await;
                }
                continue;
            }
            match self.world.dice.below(9) {
                0 | 1 => self.change(),
                2 => self.calm(),
                3 if self.plan.lags => self.lag(),
                4 => self.cut_streams(),
                5 if self.plan.restarts => self.restart_etcd(),
                6 if self.plan.restarts => self.restart_server().await,
                7 if restores > 0 => {
                    restores -= 1;
                    self.restore().await;
                }
                _ => self.cluster.elect(),
            }
        }
        self.calm();
    }

    fn change(&self) {
        let dice = &self.world.dice;
        let weather = Weather {
            refused: *dice.pick(&[0, 0, 50, 300]),
            lost_before: *dice.pick(&[0, 20, 100]),
            lost_after: *dice.pick(&[0, 20, 100]),
            hangs: *dice.pick(&[0, 0, 20]),
            mutes: if self.plan.mutes { *dice.pick(&[0, 20, 100]) } else { 0 },
            delay: *dice.pick(&[2, 20, 200, 700]),
        };
        self.world.say(|| format!("{weather:?}"));
        self.network.set(weather);
    }

    fn calm(&self) {
        self.network.set(Weather {
            delay: 3,
            ..Weather::default()
        });
    }

    fn lag(&self) {
        let members = self.cluster.state().members.len();
        let (member, time) = (self.world.dice.below(members), self.world.dice.millis(4000));
        self.world.say(|| format!("member {member} lags for {time:?}"));
        self.cluster.lag(member, time);
    }

    fn cut_streams(&self) {
        let mut state = self.cluster.state();
        let some = self.world.dice.between(1, 3);
        for stream in state.streams.values_mut() {
            stream.broken |= self.world.dice.below(some) == 0;
        }
        drop(state);
        self.cluster.tell();
    }

    fn restart_etcd(&self) {
        let away = self.world.dice.millis(3000);
        self.world.say(|| format!("etcd is away for {away:?}"));
        self.cluster.restart(away);
    }

    async fn restart_server(&self) {
        let server = self.world.dice.pick(&self.servers);
        self.world.say(|| "a server is begun anew".to_owned());
        server
            .restart(&self.world, &self.cluster, &self.network, self.plan.compacts)
            .await;
    }

    /// Clients list in pages from now on.
    async fn begin_lists(&self) {
        let dice = &self.world.dice;
        for _ in 0..dice.between(1, 4) {
            let reader = Reader {
                world: self.world.clone(),
                truth: self.cluster.truth.clone(),
                servers: self.servers.clone(),
                plan: self.plan.clone(),
            };
            let (prefix, limit) = (self.plan.prefix(dice), dice.between(1, 3));
            self.world.spawner.spawn(async move {
                while reader.world.is_busy() {
                    reader.list(&reader.servers[0], prefix, limit).await;
                    sleep(reader.world.dice.millis(60)).await;
                }
            });
        }
        sleep(dice.millis(2000)).await;
    }

    /// Puts etcd back to a snapshot. Others may write before the stores reach it again, so that revisions come up to
    /// where they were, or beyond.
    async fn restore(&self) {
        let dice = &self.world.dice;
        let (oldest, newest) = self.cluster.restorable();
        let back = *dice.pick(if self.plan.amid {
            &[1, 3, 10, 30, 100]
        } else {
            &[0, 1, 5, 30, 100]
        }) as u64;
        let snapshot = Revision(newest.0.saturating_sub(back).max(oldest.0));
        let away = Duration::from_millis(200) + dice.millis(3000);
        let prefix = self.plan.prefix(dice).to_owned();
        // A cluster that is made from a backup begins to count its terms again; one whose files were put back has the
        // term of these, and elects a leader.
        let term = match self.plan.files {
            true => self.cluster.term_at(snapshot) + 1,
            false => 2,
        };
        // Where no number tells, only what was read before does.
        let held = |server: &Server| server.store().held(&prefix).map_or(Revision(0), |held| held.revision());
        let known = match self.plan.files {
            true => self.servers.iter().map(held).min().unwrap_or_default(),
            false => newest,
        };
        self.cluster.restore(snapshot, away, term);
        let lost = (newest.0 - snapshot.0) as usize;
        let meanwhile = match dice.below(3) {
            0 if !self.plan.amid => 0,
            0 => lost.saturating_sub(1),
            1 => lost,
            _ => lost + dice.below(20),
        };
        self.world
            .say(|| format!("etcd is put back from {newest} to {snapshot}; {meanwhile} writes before it is reached"));
        for number in 0..meanwhile.min(MOST_MEANWHILE) {
            let name = self.plan.name(dice);
            let put = self
                .plan
                .shape
                .put(self.plan.prefix(dice), &name, &format!("r-{number}"), None);
            self.cluster.commit(&[put]);
        }
        self.cluster.truth.begin();
        sleep(away).await;
        if !self.plan.restarts && lost > 0 && known > snapshot {
            let told = Revision(snapshot.0 + dice.between(1, lost) as u64);
            self.come_late(told.min(known), prefix);
        }
    }

    /// A client that knows a revision of the timeline that was lost watches from there. (A server that was begun anew
    /// could not tell.)
    fn come_late(&self, told: Revision, prefix: String) {
        let dice = self.world.dice.clone();
        let timeline = self.cluster.truth.now().timeline - 1;
        let watcher = Watcher {
            world: self.world.clone(),
            truth: self.cluster.truth.clone(),
            prefix,
            direct: false,
            ignorant: true,
            learn: Arc::new(|| {}),
            slowness: 0,
            place: Arc::new(Mutex::new(Some(Place { timeline, told }))),
        };
        let servers = self.servers.clone();
        self.world.spawner.spawn(async move {
            sleep(dice.millis(5000)).await;
            watcher.run(move || dice.pick(&servers).store() as Arc<dyn Store>).await;
        });
    }
}
