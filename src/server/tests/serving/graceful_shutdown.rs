//! Graceful shutdown of a server.

use std::time::Duration;

use keelson_net::listener::Phase;

use crate::setting::{ORDERS, Server, soon, text};

#[tokio::test]
async fn during_the_delay_only_readiness_is_gone() {
    let mut server = Server::with(|requests| requests.shutdown.delay = Duration::from_secs(2));
    let mut client = server.client().await;
    assert_eq!(client.get("/readyz").await.status(), 200);
    let mut watch = client.watch("").await;
    server.begin_to_stop();
    server.reaches(Phase::Leaving).await;
    let mut newcomer = server.client().await;
    let ready = newcomer.get("/readyz").await;
    assert_eq!(ready.status(), 500);
    assert!(text(ready).await.contains("[-]shutdown failed"));
    assert_eq!(newcomer.get("/livez").await.status(), 200);
    newcomer.create("late", 0).await;
    assert_eq!(watch.next_name().await, "late");
    assert!(watch.next().await.is_none());
    soon(async {
        while !server.has_ended() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn new_requests_are_sent_away_while_old_ones_end() {
    let mut server = Server::with(|requests| requests.shutdown.send_retry_after = true);
    let mut client = server.client().await;
    let mut waiting = client.clone();
    let held = tokio::spawn(async move { waiting.get(&format!("{ORDERS}?resourceVersion=99999999")).await });
    let mut watch = client.watch("").await;
    client.create("seen", 0).await;
    assert_eq!(watch.next_name().await, "seen");
    server.begin_to_stop();
    server.reaches(Phase::Refusing).await;
    assert!(watch.next().await.is_none());
    let mut newcomer = server.client().await;
    let refused = newcomer.get("/version").await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"5".parse().unwrap())
    );
    assert_eq!(server.client().await.get("/livez").await.status(), 200);
    assert_eq!(soon(held).await.unwrap().status(), 504, "its own answer");
    server.reaches(Phase::Ending).await;
}

#[tokio::test]
async fn watches_end_over_the_time_given_to_them() {
    let mut server = Server::with(|requests| requests.shutdown.watch_grace = Duration::from_secs(1));
    let mut client = server.client().await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(client.watch("").await);
    }
    server.begin_to_stop();
    let mut moments = Vec::new();
    for watch in &mut watches {
        assert!(watch.next().await.is_none(), "in order");
        moments.push(tokio::time::Instant::now());
    }
    assert_eq!(moments.len(), 20);
}
