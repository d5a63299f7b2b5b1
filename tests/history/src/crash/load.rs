//! The writers of a round: they make and delete objects, ask for what must be refused, and rest.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::book::{Book, Fate};
use super::{JSON, PATH};
use crate::run::client::{Client, Failure, Target};

/// Keys that wait for the table of current keys at most: bursts have more.
const WAITING: u64 = 512;
/// After so many rounds their kinds come again.
const ROUNDS: u64 = 12;
/// The one among them in which history is compacted.
const LONG: u64 = 8;
/// A round lasts no longer, however slow the machine is.
const LONGEST: Duration = Duration::from_secs(30);
/// Longer than two rounds of upkeep, which come every 500 ms.
const TWO_TICKS: u64 = 1100;

/// What the load of a round is like.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    pub writers: usize,
    /// One new object in so many is followed by a write that must be refused; 0: none; 1: each is created twice.
    pub refused: u32,
    /// All rest after so many writes that were no refusals, most of them of new objects; 0: there are no rests.
    pub burst: u64,
    /// How long they rest.
    pub rest: Duration,
    /// The round ends after so many bursts and the rest that follows, …
    pub bursts: u64,
    /// … or after this time.
    pub time: Duration,
}

impl Shape {
    /// The kinds of rounds take turns, so that a few rounds have all of them.
    pub fn of(round: u64, rng: &mut SmallRng) -> Shape {
        let rest = Duration::from_millis(rng.random_range(TWO_TICKS..2 * TWO_TICKS));
        let short = Shape {
            writers: 8,
            refused: 0,
            burst: 0,
            rest,
            bursts: 1,
            time: Duration::from_millis(rng.random_range(5..=500)),
        };
        match round % ROUNDS {
            // One request at a time, and every other is refused: what has nothing to write comes at every state of the
            // store.
            0 => Shape {
                writers: 1,
                refused: 1,
                burst: 3 * WAITING / 2,
                bursts: 2,
                time: LONGEST,
                ..short
            },
            4 => Shape {
                refused: rng.random_range(2..6),
                burst: rng.random_range(WAITING..2 * WAITING),
                bursts: 2,
                time: LONGEST,
                ..short
            },
            // Longer than history is kept, so that it is compacted.
            LONG => Shape {
                refused: rng.random_range(2..20),
                time: 3 * super::HISTORY + rest,
                ..short
            },
            _ => short,
        }
    }

    /// Whether history is to be compacted in this round. That brings the table of current keys up to date, so that it
    /// never is because of the number of keys: not in every round.
    pub fn compacts(round: u64) -> bool {
        round % ROUNDS == LONG
    }
}

/// What the writers of a round share.
pub struct Round {
    pub target: Arc<Target>,
    pub book: Arc<Mutex<Book>>,
    pub shape: Shape,
    burst: Mutex<Burst>,
}

/// How far the burst has come, and when the next one may begin.
struct Burst {
    made: u64,
    /// Bursts that are over.
    over: u64,
    begin: Instant,
}

impl Round {
    pub fn new(target: Arc<Target>, book: Arc<Mutex<Book>>, shape: Shape) -> Arc<Round> {
        let burst = Mutex::new(Burst {
            made: 0,
            over: 0,
            begin: Instant::now(),
        });
        Arc::new(Round {
            target,
            book,
            shape,
            burst,
        })
    }

    /// When the next write may be sent. All writers rest at once: one that went on would keep the store from being
    /// idle.
    fn next(&self) -> Instant {
        let mut burst = self.burst.lock().unwrap();
        if self.shape.burst > 0 && burst.made == self.shape.burst {
            burst.made = 0;
            burst.over += 1;
            burst.begin = Instant::now() + self.shape.rest;
        }
        burst.made += 1;
        burst.begin
    }

    /// Whether there are refused writes among the others now: in every other burst. What a refused write brings into
    /// disorder may show only when others go on alone.
    fn refuses(&self) -> bool {
        self.burst.lock().unwrap().over.is_multiple_of(2)
    }

    /// Returns when the server is to be ended.
    pub async fn until_over(&self) {
        let end = Instant::now() + self.shape.time;
        loop {
            let rested = {
                let burst = self.burst.lock().unwrap();
                burst.over >= self.shape.bursts && Instant::now() > burst.begin
            };
            if rested || Instant::now() > end {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Writes until the server is gone.
pub async fn write(round: Arc<Round>, mut rng: SmallRng) {
    let mut client = Client::new(round.target.clone(), false);
    let Shape { burst, refused, .. } = round.shape;
    loop {
        tokio::time::sleep_until(round.next().into()).await;
        let twice = refused == 1;
        let (number, fate) = match burst > 0 && (twice || rng.random_ratio(3, 4)) {
            true => (round.book.lock().unwrap().begin(), Fate::Asked),
            false => round.book.lock().unwrap().choose(),
        };
        if once(&round, &mut client, number, fate).await.is_err() {
            return;
        }
        if refused > 0 && fate == Fate::Asked && round.refuses() && rng.random_ratio(1, refused) {
            let how = if twice { 0 } else { rng.random_range(0..8) };
            if be_refused(&mut client, number, how).await.is_err() {
                return;
            }
            round.book.lock().unwrap().refused += 1;
        }
    }
}

async fn once(round: &Round, client: &mut Client, number: u64, fate: Fate) -> Result<(), Failure> {
    let done = match fate {
        Fate::Asked => client.call(Method::POST, PATH, JSON, object(number)).await,
        _ => {
            let path = format!("{PATH}/crash-{number}");
            client.call(Method::DELETE, &path, JSON, String::new()).await
        }
    };
    let mut book = round.book.lock().unwrap();
    match (done?, fate) {
        ((201, _), Fate::Asked) => book.settle(number, Fate::There),
        ((200, _), Fate::Doomed) => book.settle(number, Fate::Gone),
        // A server that ends takes no more; it has not done what it answers so.
        ((429 | 500..600, _), _) => {}
        ((status, body), _) => panic!("{status}: {body}"),
    }
    Ok(())
}

/// Asks for something that can't be done to an object that is there, or changes nothing.
async fn be_refused(client: &mut Client, number: u64, how: u32) -> Result<(), Failure> {
    let path = format!("{PATH}/crash-{number}");
    let mut stale: Value = serde_json::from_str(&object(number)).unwrap();
    stale["metadata"]["resourceVersion"] = "1".into();
    let (expected, (status, body)) = match how {
        0..6 => (409, client.call(Method::POST, PATH, JSON, object(number)).await?),
        6 => (409, client.call(Method::PUT, &path, JSON, stale.to_string()).await?),
        _ => (200, client.call(Method::PUT, &path, JSON, object(number)).await?),
    };
    // a server that ends takes no more
    let ending = status == 429 || status >= 500;
    assert!(status == expected || ending, "{status}, not {expected}: {body}");
    Ok(())
}

/// Up to about 4000 bytes that follow from the number.
pub fn content(number: u64) -> String {
    let length = 1 + (number * 1597) as usize % 4000;
    number.to_string().chars().cycle().take(length).collect()
}

fn object(number: u64) -> String {
    json!({"metadata": {"name": format!("crash-{number}")}, "data": {"content": content(number)}}).to_string()
}
