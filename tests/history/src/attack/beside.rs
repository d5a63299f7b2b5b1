//! Bystanders of an attack: a user who reads one object now and then, who comes anew now and then, and the ordinary
//! writes and watches of others. It has a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::Method;
use http_body_util::BodyExt;
use serde_json::json;

use crate::run::client::{Client, Target};

use super::{JSON, MAPS, QUIET};

/// Between two reads of the quiet user, two of its new connections, and two writes of the others.
const READS: Duration = Duration::from_millis(5);
const NEWCOMERS: Duration = Duration::from_millis(200);
const WRITES: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(60);

/// How long requests took, sorted, and how many failed.
#[derive(Default)]
pub struct Times {
    times: Vec<Duration>,
    pub failed: usize,
}

impl Times {
    /// One that was asked, and those that would have been asked every so often while it waited.
    fn note(&mut self, since: Instant, every: Duration, ok: bool) {
        let mut waited = since.elapsed();
        self.times.push(waited);
        while waited > every {
            waited -= every;
            self.times.push(waited);
        }
        self.failed += usize::from(!ok);
    }

    /// The time within which so many of a thousand were answered.
    pub fn within(&self, thousandths: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        let place = (self.times.len() * thousandths / 1000).min(last);
        self.times.get(place).copied().unwrap_or_default()
    }

    pub fn count(&self) -> usize {
        self.times.len()
    }

    fn sorted(mut self) -> Times {
        self.times.sort_unstable();
        self
    }
}

/// What was seen while it went on.
pub struct Seen {
    /// Reads on a connection that is there from the beginning.
    pub reads: Times,
    /// Reads on connections that are made for them.
    pub newcomers: Times,
    pub writes: Times,
}

pub struct Beside {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Beside {
    pub fn start(target: Arc<Target>) -> Beside {
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(go_on(target, &until))
        });
        Beside { ends, thread }
    }

    pub fn end(self) -> Seen {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

async fn go_on(target: Arc<Target>, ends: &AtomicBool) -> Seen {
    let watching = tokio::spawn(watch(Arc::clone(&target)));
    let (reads, newcomers, writes) =
        tokio::join!(reads(&target, ends), newcomers(&target, ends), writes(&target, ends));
    watching.abort();
    Seen {
        reads: reads.sorted(),
        newcomers: newcomers.sorted(),
        writes: writes.sorted(),
    }
}

async fn read(client: &mut Client) -> bool {
    let answer = tokio::time::timeout(PATIENCE, client.get(&format!("{MAPS}/map-0"))).await;
    matches!(answer, Ok(Ok((200, _))))
}

async fn reads(target: &Arc<Target>, ends: &AtomicBool) -> Times {
    let mut client = Client::of(Arc::clone(target), QUIET);
    let mut times = Times::default();
    read(&mut client).await;
    while !ends.load(Ordering::SeqCst) {
        let since = Instant::now();
        let ok = read(&mut client).await;
        times.note(since, READS, ok);
        tokio::time::sleep(READS).await;
    }
    times
}

async fn newcomers(target: &Arc<Target>, ends: &AtomicBool) -> Times {
    let mut times = Times::default();
    while !ends.load(Ordering::SeqCst) {
        let since = Instant::now();
        let ok = read(&mut Client::of(Arc::clone(target), QUIET)).await;
        times.note(since, NEWCOMERS, ok);
        tokio::time::sleep(NEWCOMERS).await;
    }
    times
}

async fn writes(target: &Arc<Target>, ends: &AtomicBool) -> Times {
    let mut client = Client::of(Arc::clone(target), QUIET);
    let mut times = Times::default();
    let mut n = 0;
    while !ends.load(Ordering::SeqCst) {
        n += 1;
        let (path, kind) = (format!("{MAPS}/map-{}", 1 + n % 10), "application/merge-patch+json");
        let body = json!({"data": {"n": n.to_string()}}).to_string();
        let since = Instant::now();
        let answer = tokio::time::timeout(PATIENCE, client.call(Method::PATCH, &path, kind, body)).await;
        times.note(since, WRITES, matches!(answer, Ok(Ok((200, _)))));
        tokio::time::sleep(WRITES).await;
    }
    times
}

/// A watch of everything, which reads what comes.
async fn watch(target: Arc<Target>) {
    let mut client = Client::of(target, QUIET);
    loop {
        let path = format!("{MAPS}?watch=1");
        let Ok(mut answer) = client.send(Method::GET, &path, JSON, String::new()).await else {
            tokio::time::sleep(WRITES).await;
            continue;
        };
        while let Some(Ok(_)) = answer.frame().await {}
    }
}
