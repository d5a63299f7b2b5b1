//! kill -9 of a server with an embedded store under load, again and again: every answered write is there after the next
//! start, whole, and nothing is there besides but what the writes that were under way left.

mod book;
mod load;
mod measure;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use tokio::task::JoinSet;

use self::book::Book;
use self::load::{Round, Shape};
use crate::run::client::{Client, Target};
use crate::run::server::Server;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// In rounds that are longer, history is kept for so long, and gone after twice as long.
const HISTORY: Duration = Duration::from_secs(1);
const PATH: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

/// What a crash run does.
pub struct Plan {
    /// How often the server is ended.
    pub rounds: u64,
    /// Objects that are there from the beginning, and are not touched.
    pub held: u64,
    /// The restarts that are measured at the end have so many objects; 0: none are measured.
    pub objects: u64,
    pub seed: u64,
}

/// Ends a server again and again, by kill -9 and by SIGTERM, each time after a load of another kind; reads its folder
/// at rest each time; then measures restarts.
pub async fn run(program: &Path, plan: Plan) {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = SmallRng::seed_from_u64(plan.seed);
    let server = Server::start(program, folder.path(), flags(false));
    let target = server.target();
    ready(&server, &target).await;
    let second = Server::refused(program, folder.path());
    assert!(
        second.contains("is in use by another process"),
        "a second server: {second}"
    );
    measure::fill(&target, "held", plan.held).await;
    let book = Arc::new(Mutex::new(Book::default()));
    let begin = Instant::now();
    let mut kills = 0;
    for round in 0..plan.rounds {
        let listed = list(&target).await;
        book.lock().unwrap().compare(round, &listed);
        let shape = Shape::of(round, &mut rng);
        let shared = Round::new(target.clone(), book.clone(), shape);
        let mut writers = JoinSet::new();
        for _ in 0..shape.writers {
            writers.spawn(load::write(shared.clone(), SmallRng::from_rng(&mut rng)));
        }
        shared.until_over().await;
        let kill = rng.random();
        kills += u64::from(kill);
        match kill {
            true => server.kill(),
            false => server.terminate().await,
        }
        let ended = tokio::time::timeout(PATIENCE, async { while writers.join_next().await.is_some() {} });
        ended.await.expect("a request has no end");
        let checked = server.check();
        assert!(
            checked.is_ok(),
            "round {round}, after {shape:?} (killed: {kill}), store check: {}",
            checked.unwrap_err()
        );
        server.start_again_with(flags(Shape::compacts(round + 1)));
        ready(&server, &target).await;
        assert_eq!(
            measure::count(&target).await,
            plan.held,
            "round {round}: of the objects that nobody touches"
        );
    }
    let listed = list(&target).await;
    book.lock().unwrap().compare(plan.rounds, &listed);
    let Book { answered, refused, .. } = *book.lock().unwrap();
    println!(
        "{kills} kills and {} graceful ends in {} s (seed {}): of {answered} answered writes none is lost, nothing is \
         invented, {refused} writes were refused, each folder was whole",
        plan.rounds - kills,
        begin.elapsed().as_secs(),
        plan.seed
    );
    assert!(answered > plan.rounds, "the load was no load");
    if plan.objects > 0 {
        measure::restarts(&server, &target, plan.objects).await;
    }
}

/// The flags of a server, which compacts its history within a round, or not.
fn flags(compacts: bool) -> Vec<String> {
    let mut flags = vec!["--storage-backend=embedded".to_owned()];
    if compacts {
        flags.push(format!("--etcd-compaction-interval={}s", HISTORY.as_secs()));
    }
    flags
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
            since.elapsed() < PATIENCE && !server.has_ended(),
            "the server does not become ready:\n{}",
            server.last_words()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
