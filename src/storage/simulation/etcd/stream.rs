//! Streams of watches: what a member sends, and what the network makes of it.
//!
//! Answers of one stream keep their order, unless the member is one of those that answer questions for progress at
//! once. A stream may break, with or without what is on its way, or go mute: questions go, and no answer comes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::cluster::{Cluster, HASTY, State};
use super::network::Network;
use crate::etcd::api::{Answers, ApiError, FailureKind, WatchAnswer, WatchRequest};
use crate::{Event, Revision};

/// Revisions that one answer has at most.
const MOST_REVISIONS: usize = 8;

/// What the cluster knows of a stream.
pub struct Stream {
    pub member: usize,
    life: u64,
    pub broken: bool,
    pub mute_since: Option<Instant>,
}

/// What the client holds.
pub struct Watching {
    cluster: Arc<Cluster>,
    network: Network,
    id: u64,
    prefix: String,
    whole_prefix: bool,
    previous: bool,
    /// The next revision to send; `None`: the watch is over.
    next: Option<u64>,
    /// On its way, and when it is there.
    sent: VecDeque<(Instant, WatchAnswer)>,
    last_due: Instant,
    /// A question for progress waits for the events before it.
    asked: bool,
    changes: watch::Receiver<u64>,
    next_notice: Option<Instant>,
}

enum Step {
    Deliver(WatchAnswer),
    End(Result<Option<WatchAnswer>, ApiError>),
    Wait(Option<Instant>),
}

impl Watching {
    /// A stream to a member, with the watch that is asked for.
    pub fn open(cluster: &Arc<Cluster>, network: &Network, member: usize, request: &WatchRequest<'_>) -> Watching {
        let now = Instant::now();
        let changes = cluster.changes();
        let mut state = cluster.state();
        state.last_stream += 1;
        let (id, life) = (state.last_stream, state.life);
        let stream = Stream {
            member,
            life,
            broken: false,
            mute_since: None,
        };
        state.streams.insert(id, stream);
        let applied = state.members[member].applied;
        let (compacted, next) = match request.start.0 {
            0 => (None, applied.0 + 1),
            start => (Some(state.compacted).filter(|compacted| start < compacted.0), start),
        };
        drop(state);
        let mut watching = Watching {
            cluster: cluster.clone(),
            network: network.clone(),
            id,
            prefix: request.key.to_owned(),
            whole_prefix: request.prefix,
            previous: request.previous,
            next: compacted.is_none().then_some(next),
            sent: VecDeque::new(),
            last_due: now,
            asked: false,
            changes,
            next_notice: network.notices().filter(|_| request.progress).map(|every| now + every),
        };
        let header = cluster.header(member, applied);
        let created = WatchAnswer {
            header,
            created: true,
            ..WatchAnswer::default()
        };
        watching.send(created);
        if let Some(oldest) = compacted {
            watching.cancel(member, applied, oldest);
        }
        watching
    }

    fn cancel(&mut self, member: usize, applied: Revision, oldest: Revision) {
        self.next = None;
        let header = self.cluster.header(member, applied);
        self.send(WatchAnswer {
            header,
            canceled: true,
            cancel_reason: "etcdserver: mvcc: required revision has been compacted".to_owned(),
            compact_revision: oldest,
            ..WatchAnswer::default()
        });
    }

    fn send(&mut self, answer: WatchAnswer) {
        self.last_due = self.last_due.max(Instant::now() + self.network.delay());
        self.sent.push_back((self.last_due, answer));
        if self.network.mutes() {
            let mut state = self.cluster.state();
            if let Some(stream) = state.streams.get_mut(&self.id) {
                stream.mute_since.get_or_insert_with(Instant::now);
            }
        }
    }

    /// What goes on, if it can be said at once.
    fn step(&mut self) -> Step {
        let cluster = self.cluster.clone();
        let state = cluster.state();
        let Some((member, applied, ended, mute)) = self.look(&state) else {
            return Step::End(Ok(None));
        };
        let compacted = state.compacted;
        drop(state);
        if mute {
            return Step::Wait(None);
        }
        if ended {
            return self.end();
        }
        self.produce(member, applied, compacted);
        match self.sent.front() {
            Some((due, _)) if *due <= Instant::now() => {
                let answer = self.sent.pop_front().map(|(_, answer)| answer);
                answer.map_or(Step::Wait(None), Step::Deliver)
            }
            Some((due, _)) => Step::Wait(Some(*due)),
            None => Step::Wait(self.next_notice),
        }
    }

    fn look(&self, state: &State) -> Option<(usize, Revision, bool, bool)> {
        let stream = state.streams.get(&self.id)?;
        let applied = state.members[stream.member].applied;
        let ended = stream.broken || stream.life != state.life;
        Some((stream.member, applied, ended, stream.mute_since.is_some()))
    }

    /// A connection that is lost takes with it what is on its way, one that is closed does not.
    fn end(&mut self) -> Step {
        match self.network.dice.below(3) {
            0 => Step::End(Err(lost("connection reset by peer"))),
            1 => Step::End(Ok(None)),
            _ => match self.sent.pop_front() {
                Some((_, answer)) => Step::Deliver(answer),
                None => Step::End(Err(lost("etcdserver: server stopped"))),
            },
        }
    }

    /// Sends what the member has come to.
    fn produce(&mut self, member: usize, applied: Revision, compacted: Revision) {
        let Some(next) = self.next else { return };
        if next < compacted.0 {
            // What was not sent before is forgotten.
            return self.cancel(member, applied, compacted);
        }
        if next <= applied.0 {
            self.send_events(member, next, applied, compacted);
        }
        let synced = self.next.is_some_and(|next| next > applied.0);
        let due = self.next_notice.is_some_and(|due| due <= Instant::now());
        if synced && (self.asked || due) {
            self.asked = false;
            if due {
                self.next_notice = self.network.notices().map(|every| Instant::now() + every);
            }
            let header = self.cluster.header(member, applied);
            self.send(WatchAnswer {
                header,
                ..WatchAnswer::default()
            });
        }
    }

    /// Events of some revisions, never a part of one.
    fn send_events(&mut self, member: usize, next: u64, applied: Revision, compacted: Revision) {
        let most = self.network.dice.between(1, MOST_REVISIONS) as u64;
        let until = applied.0.min(next + most - 1);
        self.next = Some(until + 1);
        let timeline = self.cluster.truth.now().timeline;
        let (after, until) = (Revision(next - 1), Revision(until));
        let mut events = self.cluster.truth.events(timeline, &self.prefix, after, until);
        events.retain(|event| self.whole_prefix || super::super::truth::key(event) == self.prefix);
        for event in &mut events {
            self.forget_previous(event, compacted);
        }
        if !events.is_empty() {
            // The head says how far the member is, not how far the events go.
            let header = self.cluster.header(member, applied);
            self.send(WatchAnswer {
                header,
                events,
                ..WatchAnswer::default()
            });
        }
        if until < applied {
            self.cluster.tell();
        }
    }

    /// What is not asked for is not told, and what is forgotten can't be.
    fn forget_previous(&self, event: &mut Event, compacted: Revision) {
        let told = self.previous && event.revision() > compacted;
        if let Event::Put { previous, .. } | Event::Delete { previous, .. } = event
            && !told
        {
            *previous = None;
        }
    }

    async fn next_message(&mut self) -> Result<Option<WatchAnswer>, ApiError> {
        loop {
            self.changes.mark_unchanged();
            match self.step() {
                Step::Deliver(answer) => return Ok(Some(answer)),
                Step::End(end) => return end,
                Step::Wait(until) => {
                    let due = async {
                        match until {
                            Some(due) => sleep_until(due).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        biased;
                        _ = self.changes.changed() => {}
                        () = due => {}
                    }
                }
            }
        }
    }

    async fn ask(&mut self) -> Result<(), ApiError> {
        let cluster = self.cluster.clone();
        let state = cluster.state();
        let Some((member, applied, ended, mute)) = self.look(&state) else {
            return Err(lost("closed"));
        };
        let version = state.members[member].version;
        drop(state);
        if mute {
            return Ok(());
        }
        if ended {
            return Err(lost("the stream is closed"));
        }
        let synced = self.next.is_none_or(|next| next > applied.0);
        if version == HASTY {
            // Before events that are on their way.
            let header = cluster.header(member, applied);
            let answer = WatchAnswer {
                header,
                ..WatchAnswer::default()
            };
            self.sent
                .push_front((Instant::now() + Duration::from_millis(1), answer));
        } else if synced || self.network.dice.chance(500) {
            self.asked = true;
        }
        cluster.tell();
        Ok(())
    }
}

fn lost(text: &str) -> ApiError {
    ApiError::new(FailureKind::Unavailable, text)
}

impl Answers for Watching {
    fn message(&mut self) -> BoxFuture<'_, Result<Option<WatchAnswer>, ApiError>> {
        self.next_message().boxed()
    }

    fn request_progress(&mut self) -> BoxFuture<'_, Result<(), ApiError>> {
        self.ask().boxed()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let removed = self.cluster.state().streams.remove(&self.id);
        let mute_since = removed.and_then(|stream| stream.mute_since);
        if let Some(since) = mute_since {
            self.network.mute_ended(since.elapsed());
        }
    }
}
