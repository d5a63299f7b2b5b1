//! Watches of etcd that outlive connections.
//!
//! A task per watch reads from etcd as fast as it can, since all streams share the flow control of one connection: a
//! reader that stands still must not stop the others. When its queue is full the task lets go of the stream, and takes
//! it up again after the last event in the queue.

use std::time::Duration;

use etcd_client::{Error, WatchOptions, WatchResponse};
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::calls::Calls;
use super::convert::{event, revision, unavailable, worth_a_retry};
use crate::{Revision, StoreError, WatchItem, WatchStream};

/// So often a new watch tries to reach a member.
const OPENINGS: usize = 6;
/// Answers of etcd that wait for the reader at most.
const QUEUE: usize = 64;
/// A silent watch asks how far it is after this time.
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
    let opened = pump.open_first().await.map_err(|error| unavailable(&error))?;
    tokio::spawn(pump.run(opened.stream));
    Ok(stream::unfold(items, |mut items| async {
        items.recv().await.map(|item| (item, items))
    })
    .boxed())
}

/// The oldest revision that etcd can show; 0 if it does not tell.
pub(super) async fn oldest(calls: &Calls) -> Revision {
    let ask = async {
        let mut watches = calls.client.watch_client();
        let options = WatchOptions::new().with_start_revision(1);
        let mut stream = watches.watch("/", Some(options)).await.ok()?;
        while let Some(answer) = stream.message().await.ok()? {
            if answer.canceled() {
                return Some(Revision(answer.compact_revision() as u64));
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
    stream: etcd_client::WatchStream,
    revision: Revision,
}

impl Pump {
    async fn open(&self) -> Result<Opened, Error> {
        let mut watches = self.calls.client.watch_client().max_decoding_message_size(usize::MAX);
        let mut options = WatchOptions::new()
            .with_prefix()
            .with_progress_notify()
            .with_start_revision(self.after.0 as i64 + 1);
        if self.previous {
            options = options.with_prev_key();
        }
        let confirmed = async {
            let mut stream = watches.watch(self.prefix.as_str(), Some(options)).await?;
            match stream.message().await? {
                Some(answer) if answer.created() => Ok(Opened {
                    stream,
                    revision: revision(answer.header()),
                }),
                _ => Err(Error::WatchError("etcd did not confirm the watch".to_owned())),
            }
        };
        let late = |_| Err(Error::WatchError("etcd did not confirm the watch in time".to_owned()));
        tokio::time::timeout(CONFIRMATION, confirmed).await.unwrap_or_else(late)
    }

    /// The first opening. A member that is away is no reason to refuse the watch: another attempt may find another one.
    async fn open_first(&self) -> Result<Opened, Error> {
        let mut pause = PAUSE;
        for _ in 1..OPENINGS {
            match self.open().await {
                Err(error) if worth_a_retry(&error) => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        self.open().await
    }

    async fn run(mut self, mut stream: etcd_client::WatchStream) {
        loop {
            let end = self.read(&mut stream).await;
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
            sent = self.queue.send(Ok(item)) => sent.is_ok(),
            () = closed => false,
        };
        if !sent {
            let _ = self.queue.send(Err(StoreError::Closed)).await;
        }
        sent
    }

    async fn read(&mut self, stream: &mut etcd_client::WatchStream) -> End {
        let mut unanswered = 0;
        loop {
            let silence = tokio::time::sleep(PROGRESS);
            let answer = tokio::select! {
                answer = stream.message() => answer,
                () = self.queue.closed() => return End::Over(None),
                changed = self.signal.changed() => {
                    if changed.is_err() || self.signal.borrow_and_update().closed {
                        return End::Over(Some(StoreError::Closed));
                    }
                    match stream.request_progress().await {
                        Ok(()) => continue,
                        Err(error) => Err(error),
                    }
                }
                () = silence => {
                    if unanswered == UNANSWERED {
                        let text = "etcd: the watch does not answer".to_owned();
                        return End::Broken(StoreError::Unavailable(text));
                    }
                    unanswered += 1;
                    match stream.request_progress().await {
                        Ok(()) => continue,
                        Err(error) => Err(error),
                    }
                }
            };
            unanswered = 0;
            let taken = match answer {
                Ok(Some(answer)) => self.take(&answer),
                Ok(None) => Err(End::Broken(StoreError::Unavailable(
                    "etcd: the stream has ended".to_owned(),
                ))),
                Err(error) => Err(End::Broken(unavailable(&error))),
            };
            if let Err(end) = taken {
                return end;
            }
        }
    }

    fn take(&mut self, answer: &WatchResponse) -> Result<(), End> {
        if answer.canceled() {
            return Err(match answer.compact_revision() {
                0 => End::Broken(StoreError::Unavailable(format!("etcd: {}", answer.cancel_reason()))),
                oldest => End::Over(Some(StoreError::Compacted {
                    oldest: Revision(oldest as u64),
                })),
            });
        }
        if answer.created() {
            return Ok(());
        }
        let events: Result<Vec<_>, _> = answer.events().iter().map(event).collect();
        let events = events.map_err(|error| End::Over(Some(error)))?;
        // Only the oldest revision that etcd keeps can have: nothing of this answer is in the queue yet.
        if let Some(event) = events.iter().find(|event| self.previous && event.has_lost_its_past()) {
            let oldest = event.revision();
            return Err(End::Over(Some(StoreError::Compacted { oldest })));
        }
        let (item, reached) = match answer.events().last().and_then(|event| event.kv()) {
            Some(last) => (WatchItem::Events(events), Revision(last.mod_revision() as u64)),
            None => {
                let reached = revision(answer.header());
                (WatchItem::Progress(reached), reached)
            }
        };
        self.after = self.after.max(reached);
        match self.queue.try_send(Ok(item)) {
            Err(mpsc::error::TrySendError::Full(Ok(item))) => Err(End::Full(item)),
            _ => Ok(()),
        }
    }

    /// Opens the stream again after what is in the queue. `None`: nobody is interested any more.
    async fn reopen(&mut self) -> Result<etcd_client::WatchStream, Option<StoreError>> {
        let mut pause = PAUSE;
        let since = Instant::now();
        loop {
            let (queue, signal) = (self.queue.clone(), self.signal.clone());
            let attempt = async {
                tokio::time::sleep(pause).await;
                self.open().await
            };
            let opened = tokio::select! {
                opened = attempt => opened.map_err(|error| unavailable(&error)),
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

/// Returns when the reader is gone or the store is closed.
async fn over(queue: &mpsc::Sender<Item>, mut signal: watch::Receiver<Signal>) {
    tokio::select! {
        () = queue.closed() => {}
        _ = signal.wait_for(|signal| signal.closed) => {}
    }
}
