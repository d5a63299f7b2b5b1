//! kill -9 of a server with an embedded store under load, again and again: every answered write is there after the next
//! start, whole, and nothing is there besides but what the writes that were under way left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::run::client::{Client, Target};
use crate::run::server::Server;

const WRITERS: usize = 8;
/// Writers of the many objects before the restarts that are measured.
const FILLERS: usize = 64;
/// So many objects may be there before writers delete old ones.
const KEPT: usize = 60;
/// A server is killed after up to so many milliseconds.
const LONGEST: u64 = 500;
/// Restarts that are measured.
const RESTARTS: usize = 5;
/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const PATH: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

/// What the writers know of an object.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    /// Its creation was sent.
    Asked,
    /// Its creation was answered.
    There,
    /// Its deletion was sent.
    Doomed,
    /// Its deletion was answered.
    Gone,
}

/// By number, which no two objects share.
#[derive(Default)]
struct Book {
    fates: BTreeMap<u64, Fate>,
    next: u64,
    answered: u64,
}

impl Book {
    fn settle(&mut self, number: u64, fate: Fate) {
        self.fates.insert(number, fate);
        self.answered += 1;
    }

    /// What to do next: the number of an object to be made, or of one to be deleted.
    fn choose(&mut self) -> (u64, Fate) {
        let there = |(_, fate): &(&u64, &Fate)| **fate == Fate::There;
        let old = self.fates.iter().find(there).map(|(number, _)| *number);
        let choice = match old {
            Some(old) if self.fates.len() > KEPT => (old, Fate::Doomed),
            _ => {
                self.next += 1;
                (self.next, Fate::Asked)
            }
        };
        self.fates.insert(choice.0, choice.1);
        choice
    }

    /// Compares with what is there, and settles what was open.
    fn compare(&mut self, round: u64, listed: &[Value]) {
        let mut found = std::collections::BTreeSet::new();
        for item in listed {
            let name = item["metadata"]["name"].as_str().unwrap();
            let Some(number) = name.strip_prefix("crash-") else {
                continue;
            };
            let number = number.parse().unwrap();
            assert_eq!(
                item["data"]["content"],
                content(number).as_str(),
                "round {round}: {name} is half written"
            );
            assert!(self.fates.contains_key(&number), "round {round}: {name} is invented");
            found.insert(number);
        }
        self.fates.retain(|number, fate| {
            let there = found.contains(number);
            match fate {
                Fate::There => assert!(there, "round {round}: crash-{number} is lost"),
                Fate::Gone => assert!(!there, "round {round}: crash-{number} is back"),
                Fate::Asked | Fate::Doomed => *fate = Fate::There,
            }
            there
        });
    }
}

/// Up to about 4000 bytes that follow from the number.
fn content(number: u64) -> String {
    let length = 1 + (number * 1597) as usize % 4000;
    number.to_string().chars().cycle().take(length).collect()
}

fn object(number: u64) -> String {
    json!({"metadata": {"name": format!("crash-{number}")}, "data": {"content": content(number)}}).to_string()
}

/// Runs so many rounds, then measures restarts with so many objects.
pub async fn run(program: &Path, rounds: u64, objects: u64, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = SmallRng::seed_from_u64(seed);
    let flags = vec!["--storage-backend=embedded".to_owned()];
    let server = Server::start(program, folder.path(), flags);
    let target = server.target();
    ready(&server, &target).await;
    let second = Server::refused(program, folder.path());
    assert!(
        second.contains("is in use by another process"),
        "a second server: {second}"
    );
    let book = Arc::new(Mutex::new(Book::default()));
    let begin = Instant::now();
    for round in 0..rounds {
        ready(&server, &target).await;
        let listed = list(&target).await;
        book.lock().unwrap().compare(round, &listed);
        let mut writers = JoinSet::new();
        for _ in 0..WRITERS {
            writers.spawn(write(target.clone(), book.clone()));
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(5..=LONGEST))).await;
        server.kill();
        let ended = tokio::time::timeout(PATIENCE, async { while writers.join_next().await.is_some() {} });
        ended.await.expect("a request has no end");
        server.start_again();
    }
    ready(&server, &target).await;
    let listed = list(&target).await;
    book.lock().unwrap().compare(rounds, &listed);
    let answered = book.lock().unwrap().answered;
    println!(
        "{rounds} kills in {} s (seed {seed}): of {answered} answered writes none is lost, and nothing is invented",
        begin.elapsed().as_secs()
    );
    assert!(answered > rounds, "the load was no load");
    if objects > 0 {
        measure(&server, &target, objects).await;
    }
}

/// Makes and deletes objects until the server is gone.
async fn write(target: Arc<Target>, book: Arc<Mutex<Book>>) {
    let mut client = Client::new(target, false);
    loop {
        let (number, fate) = book.lock().unwrap().choose();
        let done = match fate {
            Fate::Asked => client.call(Method::POST, PATH, JSON, object(number)).await,
            _ => {
                let path = format!("{PATH}/crash-{number}");
                client.call(Method::DELETE, &path, JSON, String::new()).await
            }
        };
        match (done, fate) {
            (Ok((201, _)), Fate::Asked) => book.lock().unwrap().settle(number, Fate::There),
            (Ok((200, _)), Fate::Doomed) => book.lock().unwrap().settle(number, Fate::Gone),
            (Ok((status, body)), _) => panic!("{status}: {body}"),
            (Err(_), _) => return,
        }
    }
}

async fn list(target: &Arc<Target>) -> Vec<Value> {
    let mut client = Client::new(target.clone(), false);
    let (status, mut body) = client.get(PATH).await.unwrap();
    assert_eq!(status, 200, "{body}");
    match body["items"].take() {
        Value::Array(items) => items,
        other => panic!("no items: {other}"),
    }
}

/// Waits until the server says that it is ready.
async fn ready(server: &Server, target: &Arc<Target>) {
    let since = Instant::now();
    loop {
        let mut client = Client::new(target.clone(), false);
        let answer = client.send(Method::GET, "/readyz", JSON, String::new()).await;
        if answer.is_ok_and(|answer| answer.status() == 200) {
            return;
        }
        assert!(
            since.elapsed() < PATIENCE,
            "the server does not become ready:\n{}",
            server.last_words()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// How long the server takes from its start to readiness, after it was killed with so many objects.
async fn measure(server: &Server, target: &Arc<Target>, objects: u64) {
    let next = Arc::new(Mutex::new(0));
    let mut fillers = JoinSet::new();
    for _ in 0..FILLERS {
        let (target, next) = (target.clone(), next.clone());
        fillers.spawn(async move {
            let mut client = Client::new(target, false);
            loop {
                let number = {
                    let mut next = next.lock().unwrap();
                    *next += 1;
                    *next
                };
                if number > objects {
                    return;
                }
                let name = format!("filler-{number}");
                let body = json!({"metadata": {"name": name}, "data": {"content": "x".repeat(900)}});
                let done = client.call(Method::POST, PATH, JSON, body.to_string()).await;
                assert!(matches!(done, Ok((201, _))), "{done:?}");
            }
        });
    }
    while let Some(done) = fillers.join_next().await {
        done.unwrap();
    }
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        server.kill();
        let begin = Instant::now();
        server.start_again();
        ready(server, target).await;
        times.push(begin.elapsed().as_millis());
    }
    times.sort_unstable();
    let held = list(target).await.len();
    assert!(held as u64 >= objects, "{held} objects");
    println!("{held} objects: ready {times:?} ms after a start that follows kill -9 (the bar is 300 ms)");
}
