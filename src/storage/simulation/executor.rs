//! An executor whose dice say which of the tasks that can go on does.
//!
//! It is one future on a tokio runtime of one thread whose clock is simulated: when no task can go on, the clock jumps
//! to the next timer. The order in which tasks are woken does not matter, so that a seed decides everything.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::random::Dice;

/// Steps without a moment passing after which nothing will ever come of it.
const MOST_STEPS_AT_ONCE: u64 = 2_000_000;

/// The number of the future that decides when all is over.
const MAIN: u64 = 0;

#[derive(Default)]
struct Shared {
    ready: BTreeSet<u64>,
    spawned: Vec<BoxFuture<'static, ()>>,
    outer: Option<Waker>,
}

/// Spawns tasks. Clones spawn for the same executor.
#[derive(Clone, Default)]
pub struct Spawner(Arc<Mutex<Shared>>);

impl Spawner {
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut shared = self.lock();
        shared.spawned.push(task.boxed());
        wake(shared);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut shared: MutexGuard<'_, Shared>) {
    let outer = shared.outer.take();
    drop(shared);
    if let Some(outer) = outer {
        outer.wake();
    }
}

struct TaskWaker {
    task: u64,
    shared: Spawner,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut shared = self.shared.lock();
        shared.ready.insert(self.task);
        wake(shared);
    }
}

/// What a run came to.
pub struct Done<T> {
    pub output: T,
    /// Of the order of all steps and their times.
    pub trace: u64,
    pub steps: u64,
}

struct Executor {
    shared: Spawner,
    dice: Dice,
    tasks: BTreeMap<u64, (BoxFuture<'static, ()>, Waker)>,
    last: u64,
    start: Instant,
    trace: u64,
    steps: u64,
    /// When the clock moved last, and steps since then.
    moment: (Instant, u64),
}

impl Executor {
    fn waker(&self, task: u64) -> Waker {
        let shared = self.shared.clone();
        Waker::from(Arc::new(TaskWaker { task, shared }))
    }

    fn take_spawned(&mut self) {
        loop {
            let spawned = std::mem::take(&mut self.shared.lock().spawned);
            if spawned.is_empty() {
                return;
            }
            for task in spawned {
                self.last += 1;
                let waker = self.waker(self.last);
                self.tasks.insert(self.last, (task, waker));
                self.shared.lock().ready.insert(self.last);
            }
        }
    }

    /// The task that goes on next.
    fn choose(&mut self) -> Option<u64> {
        let mut shared = self.shared.lock();
        let place = match shared.ready.len() {
            0 => return None,
            1 => 0,
            more => self.dice.below(more),
        };
        let chosen = shared.ready.iter().nth(place).copied()?;
        shared.ready.remove(&chosen);
        drop(shared);
        self.count(chosen);
        Some(chosen)
    }

    fn count(&mut self, chosen: u64) {
        let now = Instant::now();
        if self.moment.0 != now {
            self.moment = (now, 0);
        }
        self.steps += 1;
        self.moment.1 += 1;
        assert!(self.moment.1 < MOST_STEPS_AT_ONCE, "tasks wake each other for ever");
        let elapsed = (now - self.start).as_millis() as u64;
        for word in [chosen, elapsed] {
            self.trace = (self.trace ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    }

    fn step(&mut self, task: u64) {
        let Some((future, waker)) = self.tasks.get_mut(&task) else {
            return;
        };
        let waker = waker.clone();
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.tasks.remove(&task);
        }
    }
}

/// Runs what `main` makes, and the tasks that it spawns, until it is done; the tasks are dropped then.
pub fn run<T, F: Future<Output = T>>(dice: Dice, main: impl FnOnce(Spawner) -> F) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.unwrap_or_else(|error| panic!("a runtime: {error}"));
    runtime.block_on(tokio::task::unconstrained(async {
        let now = Instant::now();
        let mut executor = Executor {
            shared: Spawner::default(),
            dice,
            tasks: BTreeMap::new(),
            last: MAIN,
            start: now,
            trace: 0xcbf2_9ce4_8422_2325,
            steps: 0,
            moment: (now, 0),
        };
        let mut main = pin!(main(executor.shared.clone()));
        let waker = executor.waker(MAIN);
        executor.shared.lock().ready.insert(MAIN);
        let output = poll_fn(|cx| {
            executor.shared.lock().outer = None;
            loop {
                executor.take_spawned();
                let Some(task) = executor.choose() else { break };
                if task != MAIN {
                    executor.step(task);
                } else if let Poll::Ready(output) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Poll::Ready(output);
                }
            }
            executor.shared.lock().outer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
        Done {
            output,
            trace: executor.trace,
            steps: executor.steps,
        }
    }))
}
