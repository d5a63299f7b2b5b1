//! Leader election among servers whose store comes and goes, with simulated time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use keelson_machinery::env::{Clock, Entropy};
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{Instant, sleep};

use super::super::election::{Elector, Held, Lock, Record, Timing};
use super::*;
use crate::generic::Answer;

/// The store of a lease.
#[derive(Default)]
struct Kept {
    held: Option<Held>,
    writes: u64,
}

/// How a candidate reaches it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Open,
    /// It answers with errors.
    Refused,
    /// It does not answer.
    Silent,
    /// It writes and does not answer.
    Mute,
}

struct SharedLock {
    kept: Rc<RefCell<Kept>>,
    way: Rc<Cell<Way>>,
}

impl SharedLock {
    async fn pass(&self) -> Result<(), StatusError> {
        sleep(Duration::from_millis(3)).await;
        match self.way.get() {
            Way::Open | Way::Mute => Ok(()),
            Way::Refused => Err(StatusError::service_unavailable("no")),
            Way::Silent => std::future::pending().await,
        }
    }

    async fn answer<T>(&self, answer: T) -> Result<T, StatusError> {
        sleep(Duration::from_millis(3)).await;
        match self.way.get() {
            Way::Open => Ok(answer),
            Way::Refused => Err(StatusError::service_unavailable("no")),
            Way::Silent | Way::Mute => std::future::pending().await,
        }
    }
}

impl Lock for SharedLock {
    fn read(&self) -> Answer<'_, Option<Held>> {
        async {
            self.pass().await?;
            let held = self.kept.borrow().held.clone();
            self.answer(held).await
        }
        .boxed_local()
    }

    fn write(&self, record: Record, over: Option<Held>) -> Answer<'_, Held> {
        async move {
            self.pass().await?;
            let written = {
                let mut kept = self.kept.borrow_mut();
                let version = |held: &Option<Held>| held.as_ref().map(|held| held.version.clone());
                if version(&kept.held) != version(&over) {
                    return Err(StatusError::conflict("", "leases", "one", "another was faster"));
                }
                kept.writes += 1;
                let version = kept.writes.to_string();
                kept.held = Some(Held { record, version });
                kept.held.clone().unwrap()
            };
            self.answer(written).await
        }
        .boxed_local()
    }

    fn now(&self) -> Time {
        SystemClock.now()
    }
}

struct Seeded(std::sync::Mutex<SmallRng>);

impl Seeded {
    fn new(seed: u64) -> Arc<Seeded> {
        Arc::new(Seeded(SmallRng::seed_from_u64(seed).into()))
    }
}

impl Entropy for Seeded {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().unwrap().fill(bytes);
    }
}

struct Candidate {
    way: Rc<Cell<Way>>,
    leads: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Candidate {
    fn new(kept: &Rc<RefCell<Kept>>, name: String, entropy: Arc<Seeded>) -> Candidate {
        let way = Rc::new(Cell::new(Way::Open));
        let lock = SharedLock {
            kept: kept.clone(),
            way: way.clone(),
        };
        let (lead, leads) = watch::channel(false);
        let (stop, mut stopped) = watch::channel(false);
        let mut elector = Elector::new(lock, name, Timing::default(), entropy);
        let task = tokio::task::spawn_local(async move {
            tokio::select! {
                () = elector.run(&lead) => {}
                _ = stopped.wait_for(|stop| *stop) => {}
            }
            lead.send_replace(false);
            elector.release().await;
        });
        Candidate { way, leads, stop, task }
    }

    fn leads(&self) -> bool {
        *self.leads.borrow()
    }
}

fn candidates(count: usize, seed: u64) -> (Rc<RefCell<Kept>>, Vec<Candidate>) {
    let (kept, entropy) = (Rc::default(), Seeded::new(seed));
    let all = (0..count).map(|n| Candidate::new(&kept, format!("server-{n}"), entropy.clone()));
    let all = all.collect();
    (kept, all)
}

/// Waits for a time, looking all the while: at most one leads. Returns who leads in the end.
async fn pass(all: &[Candidate], time: Duration) -> Option<usize> {
    let end = Instant::now() + time;
    loop {
        let leaders: Vec<_> = (0..all.len()).filter(|n| all[*n].leads()).collect();
        assert!(leaders.len() < 2, "two lead: {leaders:?}");
        if Instant::now() >= end {
            return leaders.first().copied();
        }
        sleep(Duration::from_millis(50)).await;
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn one_leads_and_gives_the_lease_back_at_its_end() {
    LocalSet::new()
        .run_until(async {
            let (kept, mut all) = candidates(2, 1);
            let first = pass(&all, SECOND).await.expect("somebody leads at once");
            assert_eq!(pass(&all, 100 * SECOND).await, Some(first));
            let record = kept.borrow().held.clone().unwrap().record;
            assert_eq!((record.holder, record.transitions), (format!("server-{first}"), 0));
            assert_eq!(record.duration, 15 * SECOND);

            let ended = all.remove(first);
            ended.stop.send_replace(true);
            ended.task.await.unwrap();
            let record = kept.borrow().held.clone().unwrap().record;
            assert_eq!((&*record.holder, record.duration), ("", SECOND));
            // The other looks every 2 to 4.4 s.
            assert_eq!(pass(&all, 5 * SECOND).await, Some(0));
            assert_eq!(kept.borrow().held.clone().unwrap().record.transitions, 1);
        })
        .await;
}

/// A leader that can't renew has ended before anybody else leads, however its store fails; afterwards it comes second.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_ends_before_another_leads() {
    for way in [Way::Refused, Way::Silent, Way::Mute] {
        LocalSet::new()
            .run_until(async {
                let (kept, all) = candidates(2, 2);
                let first = pass(&all, 20 * SECOND).await.unwrap();
                all[first].way.set(way);
                let since = Instant::now();
                let mut ended = None;
                while !all[1 - first].leads() {
                    pass(&all, SECOND / 10).await;
                    if !all[first].leads() {
                        ended.get_or_insert(since.elapsed());
                    }
                    assert!(since.elapsed() < 40 * SECOND, "{way:?}: nobody leads");
                }
                let (ended, taken) = (ended.expect("it leads on"), since.elapsed());
                assert!(ended <= 10 * SECOND + SECOND / 2, "{way:?}: {ended:?}");
                assert!(taken >= 13 * SECOND, "{way:?}: taken after {taken:?}");
                all[first].way.set(Way::Open);
                assert_eq!(pass(&all, 60 * SECOND).await, Some(1 - first), "{way:?}");
                assert_eq!(kept.borrow().held.clone().unwrap().record.transitions, 1);
            })
            .await;
    }
}

/// Whatever fails, and whenever: never two lead, and somebody does when all have had their store for a while.
#[tokio::test(start_paused = true)]
async fn never_two_lead_whatever_fails() {
    for seed in 0..60 {
        LocalSet::new()
            .run_until(async {
                let mut random = SmallRng::seed_from_u64(seed);
                let (_kept, all) = candidates(3, seed);
                for _ in 0..12 {
                    for one in &all {
                        one.way.set(match random.random_range(0..6) {
                            0 => Way::Refused,
                            1 => Way::Silent,
                            2 => Way::Mute,
                            _ => Way::Open,
                        });
                    }
                    pass(&all, Duration::from_millis(random.random_range(100..20_000))).await;
                }
                all.iter().for_each(|one| one.way.set(Way::Open));
                assert!(pass(&all, 60 * SECOND).await.is_some(), "seed {seed}: nobody leads");
            })
            .await;
    }
}
