//! Clients that watch, each in its own way, and take up a broken watch where it ended, on any server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use keelson_history::{Ask, Delivery, Filter, Moment, Start, Stream};
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::Shared;
use super::client::Client;
use super::object::{self, PATH};
use super::readers::{list, random_filter};
use super::world::{Phase, World};

/// A watch lasts up to so many seconds.
const LONGEST: u32 = 90;
/// A slow reader waits up to so many milliseconds before it takes what comes next.
const SLOW: u64 = 400;
/// The pause before a watch is opened again, in milliseconds.
const PAUSE: u64 = 100;
/// Bytes of one event at most.
const LINE: usize = 4 << 20;

struct Watcher {
    world: Shared,
    number: usize,
    rng: SmallRng,
    filter: Filter,
    slow: bool,
    /// Begins with the state, rather than with a list.
    with_state: bool,
    /// Everything up to here was heard.
    reached: Option<u64>,
}

/// The first watcher of a run hears of everything, and as fast as it can.
pub async fn watch(world: Shared, number: usize, mut rng: SmallRng) {
    let recorder = number == 0;
    let mut watcher = Watcher {
        filter: match recorder {
            true => Filter::default(),
            false => random_filter(&mut rng),
        },
        slow: !recorder && number.is_multiple_of(3),
        with_state: !recorder && number % 3 == 1,
        world,
        number,
        rng,
        reached: None,
    };
    while !watcher.satisfied() {
        if watcher.world.phase() == Phase::Done {
            let text = format!(
                "client {number}, filter {:?}, has heard of {:?} only",
                watcher.filter, watcher.reached
            );
            watcher.world.violation("watches are not deaf", text);
            return;
        }
        watcher.once().await;
        let pause = watcher.rng.random_range(0..=PAUSE);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

impl Watcher {
    /// Whether all was heard that the run has to tell.
    fn satisfied(&self) -> bool {
        let last = self.world.last_for(&self.filter);
        last.is_some_and(|last| self.reached.is_some_and(|reached| reached >= last))
    }

    /// One watch, from its opening to its end.
    async fn once(&mut self) {
        let server = self.rng.random_range(0..self.world.targets.len());
        let (target, http2) = (self.world.targets[server].clone(), self.rng.random());
        let mut client = match self.slow {
            true => Client::small(target, http2),
            false => Client::new(target, http2),
        };
        if self.reached.is_none() && !self.with_state {
            let who = (self.number, server);
            self.reached = list(&self.world, &mut client, who, self.filter, Ask::Newest, 0).await;
            if self.reached.is_none() {
                return;
            }
        }
        let start = match self.reached {
            Some(reached) if !self.with_state => Start::After(reached),
            _ => Start::State,
        };
        self.reached = match start {
            Start::After(reached) => Some(reached),
            Start::State => None,
        };
        let seconds = self.rng.random_range(1..=LONGEST);
        let query = match start {
            Start::After(revision) => format!("resourceVersion={revision}"),
            Start::State => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        let selectors = object::selectors(&self.filter);
        let path = format!("{PATH}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&{query}{selectors}");
        let begin = self.world.now();
        let Ok(response) = client.send(Method::GET, &path, "application/json", String::new()).await else {
            return;
        };
        self.record();
        let mut deliveries = Vec::new();
        match response.status().as_u16() {
            200 => self.read(response.into_body(), &mut deliveries).await,
            410 => self.gone(&mut deliveries),
            _ => return,
        }
        let stream = Stream {
            client: self.number,
            server,
            filter: self.filter,
            start,
            from: begin,
            begin,
            end: self.world.now(),
            deliveries,
        };
        self.world.history.lock().unwrap().streams.push(stream);
    }

    /// The first watcher tells how far it is.
    fn record(&self) {
        if let (0, Some(reached)) = (self.number, self.reached) {
            self.world.recorded.fetch_max(reached, Ordering::Relaxed);
        }
    }

    fn gone(&mut self, deliveries: &mut Vec<(Moment, Delivery)>) {
        deliveries.push((self.world.now(), Delivery::Gone));
        self.reached = None;
        if self.number == 0 {
            self.world.history.lock().unwrap().complete = false;
        }
    }

    async fn read(&mut self, mut body: Incoming, deliveries: &mut Vec<(Moment, Delivery)>) {
        let mut pending = Vec::new();
        while let Some(chunk) = self.chunk(&mut body).await {
            pending.extend_from_slice(&chunk);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if !self.take(&line, deliveries) {
                    return;
                }
            }
            assert!(pending.len() < LINE, "an event without an end");
            self.record();
            if self.satisfied() {
                return;
            }
            if self.slow && self.world.phase() == Phase::Running {
                let pause = self.rng.random_range(0..=SLOW);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    }

    /// The next part of the body; `None`: it has ended, or nobody is to read on.
    async fn chunk(&self, body: &mut Incoming) -> Option<Bytes> {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.world.until(Phase::Done) => return None,
                // the last writes may have been heard before they were known to be the last
                () = tokio::time::sleep(Duration::from_secs(1)) => match self.satisfied() {
                    true => return None,
                    false => continue,
                },
            };
            if let Ok(data) = frame?.ok()?.into_data() {
                return Some(data);
            }
        }
    }

    /// False: the stream is over.
    fn take(&mut self, line: &[u8], deliveries: &mut Vec<(Moment, Delivery)>) -> bool {
        let Ok(event) = serde_json::from_slice::<Value>(line) else {
            self.world.violation(
                "events are whole",
                String::from_utf8_lossy(line).chars().take(500).collect(),
            );
            return false;
        };
        let object = &event["object"];
        let initial = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        let delivery = match event["type"].as_str() {
            Some("ERROR") if object["code"] == 410 => {
                self.gone(deliveries);
                return false;
            }
            Some("BOOKMARK") => object::revision(object).map(|revision| match initial {
                true => Delivery::InitialEnd(revision),
                false => Delivery::Bookmark(revision),
            }),
            Some("ADDED") => self.version(object).map(|(key, held)| Delivery::Added(key, held)),
            Some("MODIFIED") => self.version(object).map(|(key, held)| Delivery::Modified(key, held)),
            Some("DELETED") => self.version(object).map(|(key, held)| Delivery::Deleted(key, held)),
            _ => None,
        };
        let Some(delivery) = delivery else { return false };
        deliveries.push((self.world.now(), delivery));
        let revision = match delivery {
            Delivery::Added(_, version) | Delivery::Modified(_, version) | Delivery::Deleted(_, version) => {
                // Initial objects are old news: only their end says how far the watch is.
                let initial = self.with_state && self.reached.is_none();
                (!initial).then_some(version.revision)
            }
            Delivery::Bookmark(revision) | Delivery::InitialEnd(revision) => Some(revision),
            Delivery::Gone => None,
        };
        self.reached = revision.max(self.reached);
        true
    }

    fn version(&self, object: &Value) -> Option<(keelson_history::Key, keelson_history::Version)> {
        World::read(&self.world, object)
    }
}
