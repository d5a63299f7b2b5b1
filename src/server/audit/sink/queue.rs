//! The queue before a sink, and how events are taken from it together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::Mode;
use super::throttle::Throttle;

/// The most events that are taken together where nobody says how many.
const MAX_TOGETHER: usize = 256;

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

/// What is sent to a sink.
pub enum Message {
    Event(Entry),
    /// Answered when everything before it is out.
    Flush(oneshot::Sender<()>),
}

/// An event on its way.
pub struct Entry {
    text: Bytes,
    /// Told whether the event got out.
    done: Option<oneshot::Sender<bool>>,
    queued: Arc<AtomicUsize>,
}

impl Entry {
    /// `queued` counts the bytes on their way.
    pub fn new(text: Bytes, done: Option<oneshot::Sender<bool>>, queued: Arc<AtomicUsize>) -> Entry {
        queued.fetch_add(text.len(), Ordering::Relaxed);
        Entry { text, done, queued }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.queued.fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

/// Events that are delivered together.
pub struct Batch {
    entries: Vec<Entry>,
    errors: Counter,
}

impl Batch {
    /// The texts, oldest first.
    pub fn texts(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().map(|entry| &entry.text)
    }

    /// Tells those who wait, and counts what is lost.
    pub fn finish(mut self, out: bool) {
        for entry in &mut self.entries {
            if let Some(done) = entry.done.take() {
                // Who does not wait any longer does not want to know.
                let _ = done.send(out);
            }
        }
        if !out {
            self.errors
                .inc_by(u64::try_from(self.entries.len()).unwrap_or(u64::MAX));
        }
    }
}

/// What takes events to their place.
pub trait Delivery {
    /// Begins to deliver; [`Batch::finish`] is called when that has succeeded or failed.
    async fn deliver(&mut self, batch: Batch);

    /// Returns when nothing is being delivered.
    async fn settle(&mut self);
}

/// Takes events from the queue to `delivery` until nobody can send any more.
pub async fn run(
    mut receiver: mpsc::Receiver<Message>,
    mode: Mode,
    batching: Batching,
    errors: Counter,
    delivery: &mut impl Delivery,
) {
    let mut collector = Collector {
        most: match mode {
            Mode::Batch => batching.max_events.max(1),
            _ => MAX_TOGETHER,
        },
        patience: match mode {
            Mode::Batch => batching.max_wait,
            _ => Duration::ZERO,
        },
    };
    let throttle = batching.throttle.filter(|_| mode == Mode::Batch);
    let mut throttle = throttle.map(|(per_second, burst)| Throttle::new(per_second, burst));
    while let Some((entries, flush)) = collector.next(&mut receiver).await {
        if !entries.is_empty() {
            if let (Some(throttle), None) = (&mut throttle, &flush) {
                throttle.take().await;
            }
            let errors = errors.clone();
            delivery.deliver(Batch { entries, errors }).await;
        }
        if let Some(done) = flush {
            delivery.settle().await;
            let _ = done.send(());
        }
    }
}

struct Collector {
    most: usize,
    patience: Duration,
}

impl Collector {
    /// The next events, and whom to tell when they are out; `None`: there will be no more.
    async fn next(
        &mut self,
        receiver: &mut mpsc::Receiver<Message>,
    ) -> Option<(Vec<Entry>, Option<oneshot::Sender<()>>)> {
        let mut entries = Vec::new();
        match receiver.recv().await? {
            Message::Event(entry) => entries.push(entry),
            Message::Flush(done) => return Some((entries, Some(done))),
        }
        let until = Instant::now() + self.patience;
        while entries.len() < self.most {
            let message = match receiver.try_recv() {
                Ok(message) => Some(message),
                Err(_) if self.patience.is_zero() => None,
                Err(_) => timeout_at(until, receiver.recv()).await.ok().flatten(),
            };
            match message {
                Some(Message::Event(entry)) => entries.push(entry),
                Some(Message::Flush(done)) => return Some((entries, Some(done))),
                None => break,
            }
        }
        Some((entries, None))
    }
}
