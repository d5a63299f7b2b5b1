//! Many objects that nobody touches, and how long a start with them takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{JSON, ready};
use crate::run::client::{Client, Target};
use crate::run::server::Server;

/// Clients that make many objects.
const FILLERS: usize = 64;
/// Restarts that are measured.
const RESTARTS: usize = 5;
/// The namespace of these objects.
const NAMESPACE: &str = "filled";
const PATH: &str = "/api/v1/namespaces/filled/configmaps";

/// Makes so many objects whose names begin so.
pub async fn fill(target: &Arc<Target>, name: &'static str, objects: u64) {
    let body = json!({"metadata": {"name": NAMESPACE}}).to_string();
    let mut client = Client::new(target.clone(), false);
    let made = client.call(Method::POST, "/api/v1/namespaces", JSON, body).await;
    assert!(matches!(made, Ok((201 | 409, _))), "{made:?}");
    let next = Arc::new(AtomicU64::new(0));
    let mut fillers = JoinSet::new();
    for _ in 0..FILLERS {
        let (target, next) = (target.clone(), next.clone());
        fillers.spawn(async move {
            let mut client = Client::new(target, false);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= objects {
                    return;
                }
                let name = format!("{name}-{number}");
                let body = json!({"metadata": {"name": name}, "data": {"content": "x".repeat(900)}});
                let done = client.call(Method::POST, PATH, JSON, body.to_string()).await;
                assert!(matches!(done, Ok((201, _))), "{done:?}");
            }
        });
    }
    while let Some(done) = fillers.join_next().await {
        done.unwrap();
    }
}

/// How many of them there are.
pub async fn count(target: &Arc<Target>) -> u64 {
    let path = format!("{PATH}?limit=1");
    let (status, list): (u16, Value) = Client::new(target.clone(), false).get(&path).await.unwrap();
    assert_eq!(status, 200, "{list}");
    let shown = list["items"].as_array().map_or(0, Vec::len) as u64;
    shown + list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0)
}

/// How long the server takes from its start to readiness, after it was killed with so many objects.
pub async fn restarts(server: &Server, target: &Arc<Target>, objects: u64) {
    let before = count(target).await;
    fill(target, "filler", objects).await;
    let mut times = Vec::new();
    for _ in 0..RESTARTS {
        server.kill();
        let begin = Instant::now();
        server.start_again();
        ready(server, target).await;
        times.push(begin.elapsed().as_millis());
    }
    times.sort_unstable();
    let held = count(target).await;
    assert_eq!(held, before + objects, "objects are lost or invented");
    println!("{held} objects: ready {times:?} ms after a start that follows kill -9 (the bar is 300 ms)");
}
