//! Watches of etcd that outlive connections.
//!
//! A task per watch reads from etcd as fast as it can, since all streams share the flow control of one connection: a
//! reader that stands still must not stop the others. When its queue is full the task lets go of the stream, and takes
//! it up again after the last event in the queue.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::api::{Answers, ApiError, FailureKind, Refusal, WatchAnswer, WatchRequest};
use super::calls::Calls;
use crate::{Event, Revision, StoreError, WatchItem, WatchStream};

/// So often a new watch tries to reach a member.
const OPENINGS: usize = 6;
/// Answers of etcd that wait for the reader at most.
const QUEUE: usize = 64;
/// After this time without an answer a watch asks how far it is.
const PROGRESS: Duration = Duration::from_secs(5);
/// A stream that leaves so many of these questions unanswered counts as broken, whatever the connection says.
const UNANSWERED: u32 = 2;
/// The first pause before a stream is opened again; each one doubles it.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A watch ends with an error when etcd was away for so long.
const AWAY: Duration = Duration::from_secs(60);
/// How long to wait for the confirmation of a watch.
const CONFIRMATION: Duration = Duration::from_secs(10);

/// What the store tells its watches.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Signal {
    /// Rises when progress is asked for.
    pub progress: u64,
    pub closed: bool,
}

type Item = Result<WatchItem, StoreError>;

struct Pump {
    calls: Calls,
    prefix: String,
    /// Events say what their keys held before.
    previous: bool,
    /// Everything up to this revision is in the queue.
    after: Revision,
    signal: watch::Receiver<Signal>,
    queue: mpsc::Sender<Item>,
}

/// Why reading from a stream of etcd ended.
enum End {
    /// The queue is full: this item waits.
    Full(WatchItem),
    /// The stream broke.
    Broken(StoreError),
    /// The watch is over.
    Over(Option<StoreError>),
}

/// A watch that etcd has confirmed. Without `previous` its events don't say what their keys held before, which saves
/// etcd and whoever knows it anyway half of the work.
pub(super) async fn start(
    calls: Calls,
    prefix: &str,
    previous: bool,
    after: Revision,
    mut signal: watch::Receiver<Signal>,
) -> Result<WatchStream, StoreError> {
    signal.mark_unchanged();
    let (queue, items) = mpsc::channel(QUEUE);
    let pump = Pump {
        calls,
        prefix: prefix.to_owned(),
        previous,
        after,
        signal,
        queue,
    };
    let opened = pump.open_first().await.map_err(|error| error.store_error())?;
    let tasks = pump.calls.tasks.clone();
    tasks.spawn(pump.run(opened.stream));
    Ok(stream::unfold(items, |mut items| async {
        items.recv().await.map(|item| (item, items))
    })
    .boxed())
}

/// The oldest revision that etcd can show; 0 if it does not tell.
pub(super) async fn oldest(calls: &Calls) -> Revision {
    let ask = async {
        let request = WatchRequest {
            key: "/",
            prefix: false,
            start: Revision(1),
            previous: false,
            progress: false,
        };
        let mut stream = calls.api.watch(&request).await.ok()?;
        while let Some(answer) = stream.message().await.ok()? {
            if answer.canceled {
                return Some(answer.compact_revision);
            }
        }
        None
    };
    tokio::time::timeout(Duration::from_secs(2), ask)
        .await
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// A stream of etcd, and how far the member was that opened it.
struct Opened {
    stream: Box<dyn Answers>,
    revision: Revision,
}

impl Pump {
    async fn open(&self) -> Result<Opened, ApiError> {
        let request = WatchRequest {
            key: &self.prefix,
            prefix: true,
            start: Revision(self.after.0.saturating_add(1)),
            previous: self.previous,
            progress: true,
        };
        let refused = |why: &str| ApiError::new(FailureKind::Refused(Refusal::Other), why);
        let confirmed = async {
            let mut stream = self.calls.api.watch(&request).await?;
            match stream.message().await? {
                Some(answer) if answer.created => Ok(Opened {
                    stream,
                    revision: answer.header.revision,
                }),
                _ => Err(refused("the watch was not confirmed")),
            }
        };
        let confirmed = tokio::time::timeout(CONFIRMATION, confirmed).await;
        confirmed.unwrap_or_else(|_| Err(refused("the watch was not confirmed in time")))
    }

    /// The first opening. A member that is away is no reason to refuse the watch: another attempt may find another one.
    async fn open_first(&self) -> Result<Opened, ApiError> {
        let mut pause = PAUSE;
        for _ in 1..OPENINGS {
            match self.open().await {
                Err(error) if error.worth_a_retry() => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        self.open().await
    }

    async fn run(mut self, mut stream: Box<dyn Answers>) {
        loop {
            let end = self.read(&mut *stream).await;
            drop(stream);
            let opened = match end {
                End::Over(error) => Err(error),
                End::Full(item) => match self.enqueue(item).await {
                    true => self.reopen().await,
                    false => return,
                },
                End::Broken(error) => {
                    tracing::debug!(%error, prefix = self.prefix, after = %self.after, "watch of etcd broke");
                    self.reopen().await
                }
            };
            match opened {
                Ok(again) => stream = again,
                Err(None) => return,
                Err(Some(error)) => {
                    let _ = self.queue.send(Err(error)).await;
                    return;
                }
            }
        }
    }

    /// Waits for room in the queue. False: the watch is over.
    async fn enqueue(&mut self, item: WatchItem) -> bool {
        let closed = over(&self.queue, self.signal.clone());
        let sent = tokio::select! {
            biased;
            sent = self.queue.send(Ok(item)) => sent.is_ok(),
            () = closed => false,
        };
        if !sent {
            let _ = self.queue.send(Err(StoreError::Closed)).await;
        }
        sent
    }

    async fn read(&mut self, stream: &mut dyn Answers) -> End {
        let mut silence = Silence::begin();
        loop {
            // In a fixed order, for simulations. Many who ask are one change of the signal: answers get their turn.
            let answer = tokio::select! {
                biased;
                () = self.queue.closed() => return End::Over(None),
                () = sleep_until(silence.due) => match silence.goes_on() {
                    true => silence.ask(stream).await,
                    false => {
                        let text = "etcd: the watch does not answer".to_owned();
                        return End::Broken(StoreError::Unavailable(text));
                    }
                },
                changed = self.signal.changed() => {
                    if changed.is_err() || self.signal.borrow_and_update().closed {
                        return End::Over(Some(StoreError::Closed));
                    }
                    silence.ask(stream).await
                }
                answer = stream.message() => {
                    silence = Silence::begin();
                    answer.map(Some)
                }
            };
            let answer = match answer {
                Ok(None) => continue,
                Ok(Some(answer)) => Ok(answer),
                Err(error) => Err(error),
            };
            let taken = match answer {
                Ok(Some(answer)) => self.take(answer),
                Ok(None) => Err(End::Broken(StoreError::Unavailable(
                    "etcd: the stream has ended".to_owned(),
                ))),
                Err(error) if error.kind == FailureKind::Corrupt => Err(End::Over(Some(error.store_error()))),
                Err(error) => Err(End::Broken(error.store_error())),
            };
            if let Err(end) = taken {
                return end;
            }
        }
    }

    fn take(&mut self, answer: WatchAnswer) -> Result<(), End> {
        if answer.canceled {
            return Err(match answer.compact_revision {
                Revision(0) => End::Broken(StoreError::Unavailable(format!("etcd: {}", answer.cancel_reason))),
                oldest => End::Over(Some(StoreError::Compacted { oldest })),
            });
        }
        if answer.created {
            return Ok(());
        }
        let events = answer.events;
        // Only the oldest revision that etcd keeps can have: nothing of this answer is in the queue yet.
        if let Some(event) = events.iter().find(|event| self.previous && event.has_lost_its_past()) {
            let oldest = event.revision();
            return Err(End::Over(Some(StoreError::Compacted { oldest })));
        }
        let (item, reached) = match events.last().map(Event::revision) {
            Some(last) => (WatchItem::Events(events), last),
            None => (WatchItem::Progress(answer.header.revision), answer.header.revision),
        };
        self.after = self.after.max(reached);
        match self.queue.try_send(Ok(item)) {
            Err(mpsc::error::TrySendError::Full(Ok(item))) => Err(End::Full(item)),
            _ => Ok(()),
        }
    }

    /// Opens the stream again after what is in the queue. `None`: nobody is interested any more.
    async fn reopen(&mut self) -> Result<Box<dyn Answers>, Option<StoreError>> {
        let mut pause = PAUSE;
        let since = Instant::now();
        loop {
            let (queue, signal) = (self.queue.clone(), self.signal.clone());
            let attempt = async {
                tokio::time::sleep(pause).await;
                self.open().await
            };
            let opened = tokio::select! {
                biased;
                opened = attempt => opened.map_err(|error| error.store_error()),
                () = over(&queue, signal) => Err(StoreError::Closed),
            };
            match opened {
                Ok(opened) if opened.revision >= self.after => return Ok(opened.stream),
                // The member lags behind, or etcd has gone back.
                Ok(opened) => match self.calls.current_revision().await {
                    Ok(current) if current < self.after => {
                        let after = self.after;
                        tracing::error!(%current, %after, "etcd has gone back; what was read from it is read again");
                        return Err(Some(StoreError::Compacted { oldest: current }));
                    }
                    Ok(_) => return Ok(opened.stream),
                    Err(_) => pause = (2 * pause).min(LONGEST_PAUSE),
                },
                Err(StoreError::Closed) if self.queue.is_closed() => return Err(None),
                Err(StoreError::Closed) => return Err(Some(StoreError::Closed)),
                Err(error) if since.elapsed() >= AWAY => return Err(Some(error)),
                Err(_) => pause = (2 * pause).min(LONGEST_PAUSE),
            }
        }
    }
}

/// How long a stream has not answered, whatever it was asked meanwhile, and however often.
struct Silence {
    /// When it is asked again, or given up.
    due: Instant,
    asked: u32,
}

impl Silence {
    fn begin() -> Silence {
        Silence {
            due: Instant::now() + PROGRESS,
            asked: 0,
        }
    }

    /// Begins to wait for another answer; false: there were enough.
    fn goes_on(&mut self) -> bool {
        self.asked += 1;
        self.due += PROGRESS;
        self.asked <= UNANSWERED
    }

    /// Asks how far the watch is, if the question goes out before the time is up: a connection that hangs takes no more
    /// at some point.
    async fn ask<T>(&self, stream: &mut dyn Answers) -> Result<Option<T>, ApiError> {
        let asked = tokio::time::timeout_at(self.due, stream.request_progress()).await;
        asked.unwrap_or(Ok(())).map(|()| None)
    }
}

/// Returns when the reader is gone or the store is closed.
async fn over(queue: &mpsc::Sender<Item>, mut signal: watch::Receiver<Signal>) {
    tokio::select! {
        biased;
        () = queue.closed() => {}
        _ = signal.wait_for(|signal| signal.closed) => {}
    }
}
