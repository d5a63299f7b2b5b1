//! Clients that stop reading. What they hold is given back at the deadline of their requests, so that others of the
//! same kind are served, and a server that is asked to end does not wait for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::Site;
use super::client::{Client, Connection, Target};
use super::world::World;

/// With these flags a server has few seats, so that few clients take all of them.
pub const FLAGS: [&str; 2] = ["--max-requests-inflight=20", "--max-mutating-requests-inflight=10"];
/// More clients than there are seats.
const CLIENTS: usize = 40;
/// How long their requests may last, in seconds.
const DEADLINE: u64 = 3;
/// After that, somebody else is served within this time.
const PATIENCE: Duration = Duration::from_secs(15);
/// A server knows of rights within this time: a mute stream is noticed after 15 s.
const KNOWN: Duration = Duration::from_secs(30);
/// Who asks: a user whose requests need seats.
const USER: &str = "stander";
/// The answer is longer than what the system takes in for a client that does not read.
const OBJECTS: usize = 40;
const BYTES: usize = 400_000;
const NAMESPACE: &str = "standstill";
const JSON: &str = "application/json";

/// On each server: takes all seats by lists that are not read, and asks for one more.
pub async fn probe(world: &World) {
    for (server, target) in world.targets.iter().enumerate() {
        prepare(target).await;
        if !is_let_in(target).await {
            world.violation("rights count after a while", format!("server {server}"));
        }
        let standing = stand(target).await;
        if standing.len() < CLIENTS {
            world.violation(
                "clients are let in",
                format!("server {server}: {} of {CLIENTS}", standing.len()),
            );
        }
        tokio::time::sleep(Duration::from_secs(DEADLINE)).await;
        let begin = Instant::now();
        let mut other = Client::of(target.clone(), USER);
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?limit=1");
        let answer = tokio::time::timeout(PATIENCE, other.get(&path)).await;
        let served = matches!(answer, Ok(Ok((200, _))));
        if !served {
            let what = answer.map(|answer| answer.map(|(status, _)| status));
            let text = format!(
                "server {server}: {CLIENTS} lists are not read, their deadline was over {} ms ago, and somebody else gets \
                 {what:?}",
                begin.elapsed().as_millis()
            );
            world.violation("who stops reading is let go", text);
        }
        drop(standing);
    }
}

/// Asks every server to end, while lists of it are not read.
pub async fn end(site: &Site, world: &World) {
    for (number, server) in site.servers.iter().enumerate() {
        let standing = stand(&world.targets[number]).await;
        let begin = Instant::now();
        let longest = Duration::from_secs(DEADLINE) + PATIENCE;
        if !server.terminate_within(longest).await {
            let text = format!(
                "server {number}, with {} lists that are not read, has not ended after {} ms",
                standing.len(),
                begin.elapsed().as_millis()
            );
            world.violation("an end waits for nobody who does not read", text);
        }
    }
}

/// The objects and the user's rights; what is there already stays.
async fn prepare(target: &Arc<Target>) {
    let mut client = Client::new(target.clone(), false);
    let role = json!({"metadata": {"name": USER}, "rules": [{"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"metadata": {"name": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut all = vec![
        (
            "/api/v1/namespaces".to_owned(),
            json!({"metadata": {"name": NAMESPACE}}),
        ),
        (format!("{rbac}/clusterroles"), role),
        (format!("{rbac}/clusterrolebindings"), binding),
    ];
    for n in 0..OBJECTS {
        let object = json!({"metadata": {"name": format!("large-{n}")}, "data": {"content": "x".repeat(BYTES)}});
        all.push((format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), object));
    }
    for (path, object) in all {
        let made = client.call(Method::POST, &path, JSON, object.to_string()).await;
        assert!(matches!(made, Ok((201 | 409, _))), "{path}: {made:?}");
    }
}

/// Returns when the server knows of the user's rights: where a stream of etcd is mute, it hears of them when it has
/// noticed.
async fn is_let_in(target: &Arc<Target>) -> bool {
    let since = Instant::now();
    while since.elapsed() < KNOWN {
        let mut client = Client::of(target.clone(), USER);
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?limit=1");
        if matches!(client.get(&path).await, Ok((200, _))) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}

/// Sends lists on connections of their own, and reads nothing.
async fn stand(target: &Arc<Target>) -> Vec<Connection> {
    let request = format!(
        "GET /api/v1/namespaces/{NAMESPACE}/configmaps?timeout={DEADLINE}s HTTP/1.1\r\nhost: 127.0.0.1\r\n\
         accept: application/json\r\nimpersonate-user: {USER}\r\n\r\n"
    );
    let mut standing = Vec::new();
    for _ in 0..CLIENTS {
        let client = Client::small(target.clone(), false);
        let Some(mut stream) = client.open().await else {
            continue;
        };
        if stream.write_all(request.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
            standing.push(stream);
        }
    }
    standing
}
