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

use super::api::{Answers, ApiError, FailureKind, Header, Refusal, WatchAnswer, WatchRequest};
use super::calls::Calls;
use super::liveness::Silence;
use crate::{Event, Revision, StoreError, WatchItem, WatchStream};

/// So often a new watch tries to reach a member.
const OPENINGS: usize = 6;
/// Answers of etcd that wait for the reader at most …
const QUEUE: usize = 64;
/// … and for one who keeps them in memory anyway, but looks at etcd's past first.
const KEEPERS_QUEUE: usize = 1024;
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
    /// Whether the pump goes on when a stream broke, or leaves that to whoever reads.
    resumes: bool,
    /// Everything up to this revision is in the queue.
    after: Revision,
    /// The last change that is.
    last: Option<Event>,
    /// How often etcd had gone back before.
    falls: u64,
    /// The member that sends.
    member: u64,
    signal: watch::Receiver<Signal>,
    queue: mpsc::Sender<Item>,
}

/// A stream of etcd, and what the member said that opened it.
struct Opened {
    stream: Box<dyn Answers>,
    header: Header,
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

/// Where a watch begins.
#[derive(Clone, Copy)]
pub(super) enum From {
    /// With what happens after the confirmation.
    Now,
    After(Revision),
}

/// A watch that etcd has confirmed, after a revision that had come when etcd had gone back so often. It outlives its
/// streams.
pub(super) async fn start(
    calls: Calls,
    prefix: &str,
    after: Revision,
    falls: u64,
    signal: watch::Receiver<Signal>,
) -> Result<WatchStream, StoreError> {
    let (pump, items) = Pump::new(calls, prefix, falls, signal, QUEUE);
    pump.start(items, From::After(after)).await
}

/// One stream of etcd, begun when etcd had gone back so often, for whoever keeps the prefix in memory: it ends with
/// [`StoreError::Unavailable`] when it breaks, so that its reader can see whether etcd is still what it was. Its events
/// don't say what their keys held before, which saves etcd half of the work.
pub(super) async fn one_stream(
    calls: Calls,
    prefix: &str,
    from: From,
    falls: u64,
    signal: watch::Receiver<Signal>,
) -> Result<WatchStream, StoreError> {
    let (pump, items) = Pump::new(calls, prefix, falls, signal, KEEPERS_QUEUE);
    let pump = Pump {
        previous: false,
        resumes: false,
        ..pump
    };
    pump.start(items, from).await
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

impl Pump {
    fn new(
        calls: Calls,
        prefix: &str,
        falls: u64,
        mut signal: watch::Receiver<Signal>,
        length: usize,
    ) -> (Pump, mpsc::Receiver<Item>) {
        signal.mark_unchanged();
        let (queue, items) = mpsc::channel(length);
        let pump = Pump {
            calls,
            prefix: prefix.to_owned(),
            previous: true,
            resumes: true,
            after: Revision::default(),
            last: None,
            falls,
            member: 0,
            signal,
            queue,
        };
        (pump, items)
    }

    /// Begins to pump, when etcd has confirmed the watch.
    async fn start(mut self, items: mpsc::Receiver<Item>, from: From) -> Result<WatchStream, StoreError> {
        let opened = self.open_first(from).await.map_err(|error| error.store_error())?;
        self.after = match from {
            From::Now => opened.header.revision,
            From::After(after) => after,
        };
        let tasks = self.calls.tasks.clone();
        tasks.spawn(self.run(opened));
        let items = stream::unfold(items, |mut items| async {
            items.recv().await.map(|item| (item, items))
        });
        Ok(items.boxed())
    }

    async fn open(&self, from: From) -> Result<Opened, ApiError> {
        let request = WatchRequest {
            key: &self.prefix,
            prefix: true,
            start: match from {
                From::Now => Revision(0),
                From::After(after) => Revision(after.0.saturating_add(1)),
            },
            previous: self.previous,
            progress: true,
        };
        let refused = |why: &str| ApiError::new(FailureKind::Refused(Refusal::Other), why);
        let confirmed = async {
            let mut stream = self.calls.api.watch(&request).await?;
            match stream.message().await? {
                Some(answer) if answer.created => Ok(Opened {
                    stream,
                    header: answer.header,
                }),
                _ => Err(refused("the watch was not confirmed")),
            }
        };
        let confirmed = tokio::time::timeout(CONFIRMATION, confirmed).await;
        confirmed.unwrap_or_else(|_| Err(refused("the watch was not confirmed in time")))
    }

    /// The first opening. A member that is away is no reason to refuse the watch: another attempt may find another one.
    async fn open_first(&self, from: From) -> Result<Opened, ApiError> {
        let mut pause = PAUSE;
        for _ in 1..OPENINGS {
            match self.open(from).await {
                Err(error) if error.worth_a_retry() => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        self.open(from).await
    }

    /// Pumps until the watch is over, which the end of the queue tells.
    async fn run(self, opened: Opened) {
        let (witness, falls, queue) = (self.calls.witness.clone(), self.falls, self.queue.clone());
        let end = tokio::select! {
            biased;
            () = witness.fallen(falls) => Some(witness.compacted()),
            end = self.pump(opened) => end,
        };
        if let Some(error) = end {
            let _ = queue.send(Err(error)).await;
        }
    }

    /// Why the watch is over; `None`: nobody is interested any more.
    async fn pump(mut self, mut opened: Opened) -> Option<StoreError> {
        loop {
            self.member = opened.header.member_id;
            self.calls.members.met(self.member);
            let end = self.read(&mut *opened.stream).await;
            drop(opened);
            match end {
                End::Over(error) => return error,
                // Not the stream's fault.
                End::Full(item) => {
                    if self.enqueue(item).await.is_none() {
                        return self.signal.borrow().closed.then_some(StoreError::Closed);
                    }
                }
                End::Broken(error) => {
                    tracing::debug!(%error, prefix = self.prefix, after = %self.after, "watch of etcd broke");
                    if !self.resumes {
                        return Some(error);
                    }
                }
            }
            opened = match self.reopen().await {
                Ok(again) => again,
                Err(end) => return end,
            };
        }
    }

    /// Waits for room in the queue. `None`: the watch is over.
    async fn enqueue(&mut self, item: WatchItem) -> Option<()> {
        tokio::select! {
            biased;
            sent = self.queue.send(Ok(item)) => sent.ok(),
            () = over(&self.queue, self.signal.clone()) => None,
        }
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
                    // A member that may tell it too early is not asked, but for a sign of life.
                    match self.calls.members.answers_in_order(self.member) {
                        true => silence.ask(stream).await,
                        false => Ok(None),
                    }
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
        let (item, reached) = match events.last() {
            Some(last) => {
                self.last = Some(last.clone());
                let reached = last.revision();
                (WatchItem::Events(events), reached)
            }
            None => {
                let reached = answer.header.revision;
                // A member may lag behind what another one told.
                if reached < self.after || !self.calls.members.answers_in_order(self.member) {
                    return Ok(());
                }
                (WatchItem::Progress(reached), reached)
            }
        };
        self.after = self.after.max(reached);
        self.calls.witness.told(self.falls, reached);
        match self.queue.try_send(Ok(item)) {
            Err(mpsc::error::TrySendError::Full(Ok(item))) => Err(End::Full(item)),
            _ => Ok(()),
        }
    }

    /// Opens the stream again after what is in the queue, if etcd is still what it was. An error says why the watch is
    /// over; `None`: nobody is interested any more.
    async fn reopen(&self) -> Result<Opened, Option<StoreError>> {
        let mut pause = PAUSE;
        let since = Instant::now();
        loop {
            let attempt = async {
                tokio::time::sleep(pause).await;
                let opened = self.open(From::After(self.after)).await;
                let opened = opened.map_err(|error| error.store_error())?;
                // Not before: etcd may go back as long as no stream is open that would break.
                let same = self.is_same_etcd().await?;
                Ok(same.then_some(opened))
            };
            let reopened: Result<_, StoreError> = tokio::select! {
                biased;
                done = attempt => done,
                () = over(&self.queue, self.signal.clone()) => {
                    let closed = self.signal.borrow().closed;
                    return Err(closed.then_some(StoreError::Closed));
                }
            };
            match reopened {
                Ok(Some(opened)) => return Ok(opened),
                Ok(None) => return Err(Some(self.calls.witness.compacted())),
                Err(error) if since.elapsed() >= AWAY => return Err(Some(error)),
                Err(_) => pause = (2 * pause).min(LONGEST_PAUSE),
            }
        }
    }

    /// Whether the last change that was told is still part of etcd's past. Nothing that is certain says that it is not.
    async fn is_same_etcd(&self) -> Result<bool, StoreError> {
        let same = match &self.last {
            Some(last) => self.calls.has_told(last).await?,
            None => self.calls.current_revision().await.map(|_| Some(true))?,
        };
        if same == Some(false) {
            self.calls.witness.gone_back(self.falls);
        }
        Ok(same == Some(true) && self.calls.witness.falls() == self.falls)
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
