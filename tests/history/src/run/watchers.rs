//! Clients that watch, each in its own way, and take up a broken watch where it ended, on any server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use keelson_history::{Ask, Delivery, Filter, LATEST, Moment, Start, Stream};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::Shared;
use super::client::Client;
use super::lane::{Lane, Position};
use super::object::{self, Kind};
use super::readers::{list, random_filter};
use super::world::Phase;

/// A watch lasts up to so many seconds …
const LONGEST: u32 = 90;
/// … or so many, if its client comes and goes.
const SHORT: u32 = 4;
/// Such a client stays away for up to so many milliseconds: less than history is kept.
const AWAY: u64 = 3500;
/// One pause of a slow reader in so many is up to so many milliseconds long.
const STANDSTILLS: u32 = 60;
const STANDSTILL: u64 = 3000;
/// Who has waited in vain for so many microseconds more gives up.
const MARGIN: Moment = 1_000_000;
/// A slow reader waits up to so many milliseconds before it takes what comes next.
const SLOW: u64 = 400;
/// The pause before a watch is opened again, in milliseconds.
const PAUSE: u64 = 100;
/// Bytes of one event at most.
const LINE: usize = 4 << 20;

struct Watcher {
    world: Shared,
    kind: Kind,
    number: usize,
    rng: SmallRng,
    filter: Filter,
    /// It hears of everything, as fast as it can, and tells how far it is.
    recorder: bool,
    slow: bool,
    /// Begins with the state, rather than with a list.
    with_state: bool,
    /// It comes and goes: much has happened when it comes back.
    fickle: bool,
    /// Everything up to here was heard.
    heard: Option<u64>,
    /// Where a watch goes on: of a later revision more may come.
    position: Option<Position>,
}

/// What a watcher is like.
#[derive(Clone, Copy)]
pub struct Style {
    pub kind: Kind,
    pub recorder: bool,
    pub slow: bool,
    pub with_state: bool,
    pub fickle: bool,
}

pub async fn watch(world: Shared, number: usize, style: Style, mut rng: SmallRng) {
    let Style {
        kind,
        recorder,
        slow,
        with_state,
        fickle,
    } = style;
    let mut watcher = Watcher {
        filter: match recorder {
            true => Filter::default(),
            false => random_filter(kind, &mut rng),
        },
        world,
        kind,
        number,
        rng,
        recorder,
        slow,
        with_state,
        fickle,
        heard: None,
        position: None,
    };
    while !watcher.may_leave() {
        if watcher.world.is_broken() {
            break;
        }
        if watcher.world.phase() >= watcher.last_phase() {
            let text = format!(
                "client {number}, {kind:?} by {:?}, has heard of {:?} only",
                watcher.filter, watcher.heard
            );
            watcher.world.violation("watches are not deaf", text);
            break;
        }
        watcher.once().await;
        watcher.pause().await;
    }
    watcher.lane().leave(number);
}

impl Watcher {
    fn lane(&self) -> &Lane {
        self.world.lane(self.kind)
    }

    /// Whether all was heard that the run has to tell.
    fn satisfied(&self) -> bool {
        let last = self.lane().last_for(&self.filter);
        last.is_some_and(|last| self.heard.is_some_and(|heard| heard >= last))
    }

    /// A recorder hears what others see until nobody sees anything any more.
    fn last_phase(&self) -> Phase {
        if self.recorder { Phase::Done } else { Phase::Quiet }
    }

    fn may_leave(&self) -> bool {
        self.satisfied() && (!self.recorder || self.world.phase() == Phase::Done)
    }

    fn stand(&mut self, position: Option<Position>) {
        self.position = position;
        if let Some(position) = position {
            self.lane().stand(self.number, position);
        }
    }

    /// Before the next watch. Who hears nothing is waited for at the end, so nobody stays away then.
    async fn pause(&mut self) {
        let longest = if self.fickle { AWAY } else { PAUSE };
        let pause = Duration::from_millis(self.rng.random_range(0..=longest));
        match self.fickle {
            true => drop(
                tokio::time::timeout(pause, self.world.until(Phase::Settling))
                    .await
                    .is_ok(),
            ),
            false => tokio::time::sleep(pause).await,
        }
    }

    /// One watch, from its opening to its end.
    async fn once(&mut self) {
        let server = self.rng.random_range(0..self.world.targets.len());
        let (target, http2) = (self.world.targets[server].clone(), self.rng.random());
        let mut client = match self.slow {
            true => Client::small(target, http2),
            false => Client::new(target, http2),
        };
        if self.position.is_none() {
            self.world.steady().await;
            self.heard = None;
        }
        if self.position.is_none() && !self.with_state && !self.list(&mut client, server).await {
            return;
        }
        let learned = self.position.map_or(0, |position| position.learned);
        let start = match self.position {
            Some(position) if !self.with_state => Start::After(position.revision),
            _ => Start::State,
        };
        if start == Start::State {
            self.world.steady().await;
            (self.heard, self.position) = (None, None);
        }
        let seconds = self.rng.random_range(1..=if self.fickle { SHORT } else { LONGEST });
        let query = match start {
            Start::After(revision) => format!("resourceVersion={revision}"),
            Start::State => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        let (path, selectors) = (self.kind.path(), object::selectors(self.kind, &self.filter));
        let path = format!("{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&{query}{selectors}");
        let mut stream = Stream {
            client: self.number,
            server,
            filter: self.filter,
            start,
            from: learned,
            begin: self.world.now(),
            end: 0,
            deliveries: Vec::new(),
        };
        let Ok(response) = client.send(Method::GET, &path, "application/json", String::new()).await else {
            return;
        };
        self.record();
        match response.status().as_u16() {
            200 => self.read(response.into_body(), &mut stream).await,
            410 => self.gone(&mut stream),
            _ => return,
        }
        stream.end = self.world.now();
        if self.world.is_between(stream.begin) {
            // Of which timeline it told is not known.
            self.position = None;
        }
        self.lane().history.lock().unwrap().streams.push(stream);
    }

    /// Begins with a list. False: there was none.
    async fn list(&mut self, client: &mut Client, server: usize) -> bool {
        let (learned, who) = (self.world.now(), (self.number, server));
        let listed = list(&self.world, self.kind, client, who, self.filter, Ask::Newest, 0).await;
        self.heard = listed.map(|seen| seen.revision);
        self.stand(self.heard.map(|revision| Position { revision, learned }));
        self.heard.is_some()
    }

    /// The recorder tells how far it is.
    fn record(&self) {
        if let (true, Some(position), Some(heard)) = (self.recorder, self.position, self.heard)
            && !self.world.border().is_some_and(|border| position.is_lost(border))
        {
            self.lane().recorded.fetch_max(heard, Ordering::Relaxed);
        }
    }

    fn gone(&mut self, stream: &mut Stream) {
        stream.deliveries.push((self.world.now(), Delivery::Gone));
        let crossed = self.position.zip(self.world.border());
        if self.recorder && !crossed.is_some_and(|(position, border)| position.is_lost(border)) {
            self.lane().history.lock().unwrap().complete = false;
        }
        self.position = None;
    }

    async fn read(&mut self, mut body: Incoming, stream: &mut Stream) {
        let mut pending = Vec::new();
        while let Some(chunk) = self.chunk(&mut body, stream).await {
            pending.extend_from_slice(&chunk);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if !self.take(&line, stream) {
                    return;
                }
            }
            assert!(pending.len() < LINE, "an event without an end");
            self.record();
            if self.may_leave() {
                return;
            }
            // What was sent before a store was put back is read at once: whoever is slow then would seem to be told
            // late.
            if self.slow && self.world.phase() == Phase::Running && !self.world.was_put_back_since(stream.begin) {
                let longest = if self.rng.random_ratio(1, STANDSTILLS) {
                    STANDSTILL
                } else {
                    SLOW
                };
                let pause = self.rng.random_range(0..=longest);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    }

    /// Whether a watch of a store that was put back has gone on for so long that nothing is to be hoped for.
    fn is_hopeless(&self, stream: &Stream) -> bool {
        let Some(border) = self.world.border() else {
            return false;
        };
        let is_lost = |position: Position| position.is_lost(border);
        let old = stream.begin < border.up && self.position.is_none_or(is_lost);
        let lost = old || self.position.is_some_and(is_lost);
        lost && self.world.now() > border.up.max(stream.begin) + LATEST + MARGIN
    }

    /// The next part of the body; `None`: it has ended, or nobody is to read on.
    async fn chunk(&mut self, body: &mut Incoming, stream: &Stream) -> Option<Bytes> {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.world.until(self.last_phase()) => return None,
                () = tokio::time::sleep(Duration::from_secs(1)) => {
                    if self.is_hopeless(stream) {
                        self.position = None;
                        return None;
                    }
                    // the last writes may have been heard before they were known to be the last
                    match self.may_leave() {
                        true => return None,
                        false => continue,
                    }
                }
            };
            if let Ok(data) = frame?.ok()?.into_data() {
                return Some(data);
            }
        }
    }

    /// False: the stream is over.
    fn take(&mut self, line: &[u8], stream: &mut Stream) -> bool {
        let Ok(event) = serde_json::from_slice::<Value>(line) else {
            self.world.violation(
                "events are whole",
                String::from_utf8_lossy(line).chars().take(500).collect(),
            );
            return false;
        };
        let object = &event["object"];
        let initial = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        let read = || self.lane().read(&self.world, object);
        let delivery = match event["type"].as_str() {
            Some("ERROR") if object["code"] == 410 => {
                self.gone(stream);
                return false;
            }
            Some("BOOKMARK") => object::revision(object).map(|revision| match initial {
                true => Delivery::InitialEnd(revision),
                false => Delivery::Bookmark(revision),
            }),
            Some("ADDED") => read().map(|(key, held)| Delivery::Added(key, held)),
            Some("MODIFIED") => read().map(|(key, held)| Delivery::Modified(key, held)),
            Some("DELETED") => read().map(|(key, held)| Delivery::Deleted(key, held)),
            _ => None,
        };
        let Some(delivery) = delivery else { return false };
        stream.deliveries.push((self.world.now(), delivery));
        self.reach(delivery, stream);
        true
    }

    /// How far the watch is with what it was told.
    fn reach(&mut self, delivery: Delivery, stream: &Stream) {
        let (whole, heard) = match delivery {
            Delivery::Added(_, version) | Delivery::Modified(_, version) | Delivery::Deleted(_, version) => {
                // Initial objects are old news: only their end says how far the watch is.
                if self.with_state && self.heard.is_none() {
                    return;
                }
                let shared = self.kind == Kind::Event;
                (version.revision - u64::from(shared), version.revision)
            }
            Delivery::Bookmark(revision) | Delivery::InitialEnd(revision) => (revision, revision),
            Delivery::Gone => return,
        };
        self.heard = self.heard.max(Some(heard));
        let before = self.position.map_or(0, |position| position.revision);
        self.stand(Some(Position {
            revision: whole.max(before),
            learned: stream.begin,
        }));
    }
}
