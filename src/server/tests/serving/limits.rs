//! Limits of requests, as a client meets them.

use std::time::Duration;

use crate::setting::{ORDERS, Server, soon, text};

/// A list that waits three seconds for a revision that does not come.
const WAITS: &str = "?resourceVersion=99999999";

#[tokio::test]
async fn too_many_requests_are_turned_away_and_watches_are_not() {
    let server = Server::with(|requests| requests.max_reads = 1);
    let mut client = server.client().await;
    let mut waiting = client.clone();
    let held = tokio::spawn(async move { waiting.get(&format!("{ORDERS}{WAITS}")).await });
    let refused = soon(async {
        loop {
            let answer = client.get("/version").await;
            if answer.status() == 429 {
                return answer;
            }
            assert_eq!(answer.status(), 200);
        }
    })
    .await;
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.headers()["cache-control"], "no-cache, private");
    assert_eq!(text(refused).await, "Too many requests, please try again later.\n");
    client.create("one", 0).await;
    assert_eq!(client.watch("").await.next_name().await, "one");
    assert_eq!(soon(held).await.unwrap().status(), 504);
    assert_eq!(client.get("/version").await.status(), 200);
}

#[tokio::test]
async fn a_request_ends_when_its_time_is_over() {
    let server = Server::with(|requests| requests.timeout = Duration::from_millis(100));
    let mut client = server.client().await;
    let answer = client.get(&format!("{ORDERS}{WAITS}")).await;
    assert_eq!(answer.status(), 504);
    assert!(
        text(answer)
            .await
            .contains("request did not complete within the allotted timeout")
    );
}

#[tokio::test]
async fn a_body_above_three_mebibytes_is_refused() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    for (size, status) in [(3 * 1024 * 1024, 400), (3 * 1024 * 1024 + 1, 413)] {
        let request = http::Request::post(format!("http://localhost{ORDERS}"))
            .header("content-type", "application/json")
            .body(http_body_util::Full::from(vec![b' '; size]))
            .unwrap();
        let answer = soon(client.sender.send_request(request)).await.unwrap();
        assert_eq!(answer.status(), status, "{size}");
        if status == 413 {
            assert!(text(answer).await.contains("limit is 3145728"));
        }
    }
}
