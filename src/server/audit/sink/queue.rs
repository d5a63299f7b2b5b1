//! The queue before a sink: events are collected in it, and taken from it together.
//!
//! Whoever hands over an event wakes the one who delivers only if it would else sleep for too long: for an event that a
//! request waits for, for a batch that is complete, and for the first one of a batch if nothing is to come for long.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use super::Mode;
use super::throttle::Throttle;

/// The most events that are taken together where nobody says how many.
const MAX_TOGETHER: usize = 256;
/// Events in the queue of a sink that requests wait for. Who finds it full waits for room.
const BLOCKING_QUEUE: usize = 1024;
/// Bytes of events in the queue of a sink that requests don't wait for; above it events are dropped.
const MAX_QUEUED_BYTES: usize = 256 << 20;
/// How long an event may wait that its request does not wait for, though it waits for the next one: both go together.
const COMPANY: Duration = Duration::from_millis(20);
/// Memory for a batch that is kept for the next one, in bytes, and how many of them are.
const KEPT_BYTES: usize = 1 << 20;
const KEPT_BATCHES: usize = 2;

/// How events are collected that no request waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batching {
    /// Events that wait to be collected; further ones are lost.
    pub buffer: usize,
    /// Events of one delivery.
    pub max_events: usize,
    /// How long the first of them may wait for others; zero: for those that are there.
    pub max_wait: Duration,
    /// Deliveries a second, and how many at once after a rest; `None`: any number.
    pub throttle: Option<(f64, u32)>,
}

/// Events that are delivered together.
#[derive(Default)]
pub struct Batch {
    /// Each event with the end of its line.
    lines: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
    /// Told whether the events got out.
    waiting: Vec<oneshot::Sender<bool>>,
}

impl Batch {
    fn add(&mut self, event: &[u8], done: Option<oneshot::Sender<bool>>) {
        self.lines.extend_from_slice(event);
        self.lines.push(b'\n');
        self.ends.push(self.lines.len());
        self.waiting.extend(done);
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All events, each on a line.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The events, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| self.lines.get(begin..end - 1).unwrap_or_default())
    }

    fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.waiting.clear();
    }
}

/// Events that were taken from their queue.
pub struct Taken {
    pub batch: Batch,
    queue: Arc<Queue>,
}

impl Taken {
    /// Tells those who wait, and counts what is lost.
    pub fn finish(self, out: bool) {
        let Taken { mut batch, queue } = self;
        for done in batch.waiting.drain(..) {
            // Who does not wait any longer does not want to know.
            let _ = done.send(out);
        }
        if !out {
            queue.errors.inc_by(u64::try_from(batch.ends.len()).unwrap_or(u64::MAX));
        }
        queue.give_back(batch);
    }
}

/// Why an event is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    NoRoom,
    /// Nobody delivers any more.
    Gone,
}

/// What takes events to their place.
pub trait Delivery {
    /// Begins to deliver; [`Taken::finish`] is called when that has succeeded or failed.
    async fn deliver(&mut self, taken: Taken);

    /// Returns when nothing is being delivered.
    async fn settle(&mut self);
}

/// The queue of one sink.
pub struct Queue {
    /// Events of one batch.
    most: usize,
    /// How long the first event of a batch waits for others, unless a request waits for one of them.
    patience: Duration,
    /// Whether the one who delivers sleeps lightly for a while after a batch: it expects more.
    expects_more: bool,
    /// Events that may wait to be taken.
    buffer: usize,
    throttle: Option<(f64, u32)>,
    /// Places of events, where one who finds none waits.
    room: Option<Semaphore>,
    state: Mutex<State>,
    bell: Notify,
    errors: Counter,
}

#[derive(Default)]
struct State {
    /// Complete batches, oldest first.
    complete: VecDeque<Batch>,
    filling: Batch,
    /// When the first event of those came.
    since: Option<Instant>,
    /// A request waits for one of those.
    urgent: bool,
    /// Events in all of them.
    waiting: usize,
    /// Bytes of events that are not out.
    bytes: usize,
    /// Events that came, and that were taken.
    came: u64,
    taken: u64,
    /// Who wants to know when all events up to the nth are out.
    flushes: Vec<(u64, oneshot::Sender<()>)>,
    sleep: Sleep,
    /// Nobody hands over events any more.
    closed: bool,
    /// Nobody delivers any more.
    gone: bool,
    spare: Vec<Batch>,
}

/// How the one who delivers sleeps.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sleep {
    /// It looks at the queue before it sleeps again.
    #[default]
    Not,
    /// It looks soon enough for what nobody waits for.
    Light,
    /// It looks when it is woken.
    Deep,
}

/// Wakes the one who delivers when it is dropped: also if whoever holds it goes away.
#[derive(Default)]
pub struct Bell<'a>(Option<&'a Notify>);

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        if let Some(bell) = self.0 {
            bell.notify_one();
        }
    }
}

/// What is to be done next.
enum Next {
    Deliver(Batch),
    Flushed(Vec<oneshot::Sender<()>>),
}

impl Queue {
    pub fn new(mode: Mode, batching: &Batching, errors: Counter) -> Queue {
        let batch = mode == Mode::Batch;
        Queue {
            most: if batch {
                batching.max_events.max(1)
            } else {
                MAX_TOGETHER
            },
            patience: match mode {
                Mode::Batch => batching.max_wait,
                Mode::Blocking => COMPANY,
                Mode::BlockingStrict => Duration::ZERO,
            },
            expects_more: mode == Mode::Blocking,
            buffer: if batch { batching.buffer.max(1) } else { usize::MAX },
            throttle: batching.throttle.filter(|_| batch),
            room: (!batch).then(|| Semaphore::new(BLOCKING_QUEUE)),
            state: Mutex::default(),
            bell: Notify::new(),
            errors,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for an event; it is the caller's. False: nobody delivers any more.
    pub async fn room(&self) -> bool {
        match &self.room {
            Some(room) => room.acquire().await.map(|place| place.forget()).is_ok(),
            None => true,
        }
    }

    /// Takes an event in if there is room. `done` is told whether it got out.
    pub fn offer(&self, event: &[u8], done: Option<oneshot::Sender<bool>>) -> Result<Bell<'_>, Turned> {
        if let Some(room) = &self.room {
            match room.try_acquire() {
                Ok(place) => place.forget(),
                Err(tokio::sync::TryAcquireError::NoPermits) => return Err(Turned::NoRoom),
                Err(tokio::sync::TryAcquireError::Closed) => return Err(Turned::Gone),
            }
        }
        self.put(event, done)
    }

    /// Takes in an event that has room ([`Queue::room`]).
    pub fn put(&self, event: &[u8], done: Option<oneshot::Sender<bool>>) -> Result<Bell<'_>, Turned> {
        let mut state = self.state();
        if state.gone {
            return Err(Turned::Gone);
        }
        let bytes = state.bytes.saturating_add(event.len());
        if self.room.is_none() && (state.waiting >= self.buffer || bytes > MAX_QUEUED_BYTES) {
            return Err(Turned::NoRoom);
        }
        state.bytes = bytes;
        state.waiting += 1;
        state.came += 1;
        if state.filling.is_empty() && !self.patience.is_zero() {
            state.since = Some(Instant::now());
        }
        state.urgent |= done.is_some();
        state.filling.add(event, done);
        let complete = state.filling.ends.len() >= self.most;
        if complete {
            let batch = state.take_filling();
            state.complete.push_back(batch);
        }
        let ring = match state.sleep {
            Sleep::Not => false,
            Sleep::Light => complete || state.urgent || self.patience.is_zero(),
            Sleep::Deep => true,
        };
        if ring {
            state.sleep = Sleep::Not;
        }
        Ok(Bell(ring.then_some(&self.bell)))
    }

    /// Returns when everything that was handed over is out or lost.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        {
            let mut state = self.state();
            let mark = state.came;
            if !state.gone {
                state.flushes.push((mark, done));
            }
            state.sleep = Sleep::Not;
        }
        self.bell.notify_one();
        let _ = flushed.await;
    }

    /// Nobody hands over events any more.
    pub fn close(&self) {
        self.state().closed = true;
        self.bell.notify_one();
    }

    /// `None`: there will be no more.
    async fn next(&self) -> Option<Next> {
        let mut rested = !self.expects_more;
        loop {
            let until = {
                let mut state = self.state();
                let now = Instant::now();
                if let Some(next) = state.next(now, self.patience) {
                    return Some(next);
                }
                if state.closed {
                    return None;
                }
                let until = match state.since {
                    Some(since) => Some(since + self.patience),
                    None => (!std::mem::replace(&mut rested, true)).then(|| now + self.patience),
                };
                state.sleep = if until.is_some() { Sleep::Light } else { Sleep::Deep };
                until
            };
            match until {
                Some(until) => drop(timeout_at(until, self.bell.notified()).await),
                None => self.bell.notified().await,
            }
        }
    }

    fn give_back(&self, mut batch: Batch) {
        let (events, bytes) = (batch.ends.len(), batch.lines.len());
        batch.clear();
        {
            let mut state = self.state();
            // Without the ends of lines.
            state.bytes = state.bytes.saturating_sub(bytes - events);
            if state.spare.len() < KEPT_BATCHES {
                state.spare.push(batch);
            }
        }
        if let Some(room) = &self.room {
            room.add_permits(events);
        }
    }

    /// Nobody delivers any more: nobody has to wait, either.
    fn abandon(&self) {
        let mut state = self.state();
        *state = State {
            gone: true,
            ..State::default()
        };
        drop(state);
        if let Some(room) = &self.room {
            room.close();
        }
    }
}

impl State {
    fn next(&mut self, now: Instant, patience: Duration) -> Option<Next> {
        self.sleep = Sleep::Not;
        let taken = self.taken;
        if self.flushes.iter().any(|(mark, _)| *mark <= taken) {
            let (done, later) = std::mem::take(&mut self.flushes)
                .into_iter()
                .partition(|(mark, _)| *mark <= taken);
            self.flushes = later;
            return Some(Next::Flushed(
                done.into_iter().map(|(_, done): (u64, _)| done).collect(),
            ));
        }
        let batch = match self.complete.pop_front() {
            Some(batch) => batch,
            None if self.filling.is_empty() => return None,
            None => {
                let is_due = self.since.is_none_or(|since| since + patience <= now);
                let wanted = self.urgent || is_due || self.closed || !self.flushes.is_empty();
                wanted.then(|| self.take_filling())?
            }
        };
        self.waiting -= batch.ends.len();
        self.taken += batch.ends.len() as u64;
        Some(Next::Deliver(batch))
    }

    fn take_filling(&mut self) -> Batch {
        (self.since, self.urgent) = (None, false);
        let empty = self.spare.pop().unwrap_or_default();
        std::mem::replace(&mut self.filling, empty)
    }
}

/// Whoever delivers; when it is gone, however that came about, nobody waits for it any longer.
struct Post(Arc<Queue>);

impl Drop for Post {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Takes events from the queue to `delivery` until it is closed.
pub async fn run(queue: Arc<Queue>, delivery: &mut impl Delivery) {
    let post = Post(queue.clone());
    let mut throttle = queue
        .throttle
        .map(|(per_second, burst)| Throttle::new(per_second, burst));
    while let Some(next) = post.0.next().await {
        match next {
            Next::Deliver(batch) => {
                let flushing = || !queue.state().flushes.is_empty();
                if let Some(throttle) = throttle.as_mut().filter(|_| !flushing()) {
                    throttle.take().await;
                }
                let queue = queue.clone();
                delivery.deliver(Taken { batch, queue }).await;
            }
            Next::Flushed(all) => {
                delivery.settle().await;
                for done in all {
                    let _ = done.send(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
