//! HTTP/2: streams, their limits, and that one does not harm another.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::Full;
use keelson_net::listener::Goaway;

use crate::setting::{Http2, Server, get, limits, next, soon, text, until};

#[tokio::test]
async fn the_authority_is_the_host() {
    let server = Server::start();
    let answer = server.http2().await.get("/api?x=1").await.unwrap();
    assert_eq!(text(answer).await, "GET /api?x=1 localhost");
}

#[tokio::test]
async fn head_tells_the_length_and_sends_no_body() {
    let server = Server::start();
    let mut client = server.http2().await;
    let request = http::Request::head("https://localhost/fixed")
        .body(Full::default())
        .unwrap();
    let answer = soon(client.client.send_request(request)).await.unwrap();
    assert_eq!(answer.headers()["content-length"], "1024");
    assert_eq!(text(answer).await, "");
}

#[tokio::test]
async fn a_large_body_passes_both_ways() {
    let server = Server::start();
    let mut client = server.http2().await;
    let sent = bytes::Bytes::from(vec![b'z'; 8 << 20]);
    let request = http::Request::post("https://localhost/echo")
        .body(Full::new(sent.clone()))
        .unwrap();
    let answer = soon(client.client.send_request(request)).await.unwrap();
    assert_eq!(text(answer).await.as_bytes(), sent);
}

#[tokio::test]
async fn a_panic_costs_one_stream() {
    let server = Server::start();
    let mut client = server.http2().await;
    let mut watch = client.get("/watch").await.unwrap().into_body();
    assert_eq!(client.get("/panics").await.unwrap().status(), 500);
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    assert_eq!(client.get("/fixed").await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_that_breaks_is_reset() {
    let server = Server::start();
    let mut client = server.http2().await;
    for how in ["panic", "error"] {
        let mut body = client.get(&format!("/broken/{how}")).await.unwrap().into_body();
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "begin");
        server.news.notify_one();
        assert!(next(&mut body).await.unwrap().is_err());
    }
    assert_eq!(client.get("/fixed").await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_cancelled_request_ends_its_handler_and_leaves_the_others() {
    let server = Server::start();
    let mut client = server.http2().await;
    let mut watch = client.get("/watch").await.unwrap().into_body();
    let mut other = client.clone();
    let hanging = tokio::spawn(async move { other.get("/hang").await });
    until(|| server.seen.begun.load(Ordering::SeqCst) == 2).await;
    hanging.abort();
    until(|| server.seen.dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    drop(watch);
    until(|| server.seen.dropped.load(Ordering::SeqCst) == 2).await;
}

#[tokio::test]
async fn a_lost_connection_ends_all_its_handlers() {
    let server = Server::plain();
    let stream = server.tcp().await.into_std().unwrap();
    let cable = stream.try_clone().unwrap();
    let mut client = Http2::over(tokio::net::TcpStream::from_std(stream).unwrap()).await;
    let _watches = [client.get("/watch").await.unwrap(), client.get("/watch").await.unwrap()];
    let _hanging = tokio::spawn(async move { client.get("/hang").await });
    until(|| server.seen.begun.load(Ordering::SeqCst) == 3).await;
    cable.shutdown(std::net::Shutdown::Both).unwrap();
    until(|| server.seen.dropped.load(Ordering::SeqCst) == 3).await;
    until(|| server.serving.connections() == 0).await;
}

#[tokio::test]
async fn each_event_of_a_watch_is_sent_at_once() {
    let server = Server::start();
    let mut body = server.http2().await.get("/watch").await.unwrap().into_body();
    for _ in 0..3 {
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "event\n");
        server.news.notify_one();
    }
}

#[tokio::test]
async fn no_more_streams_than_the_limit_are_served_at_once() {
    let server = Server::with(true, limits(|limits| limits.http2_max_streams = 5));
    let mut client = server.http2().await;
    assert_eq!(client.get("/fixed").await.unwrap().status(), 200); // the settings have arrived by then
    let streams: Vec<_> = (0..8)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.client.send_request(get("/hang")).await })
        })
        .collect();
    until(|| server.seen.begun.load(Ordering::SeqCst) == 5).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.seen.begun.load(Ordering::SeqCst), 5);
    streams[0].abort();
    until(|| server.seen.begun.load(Ordering::SeqCst) >= 6).await;
}

#[tokio::test]
async fn a_thousand_idle_watches_are_cheap() {
    let server = Server::start();
    let mut bodies = Vec::new();
    for _ in 0..10 {
        let mut client = server.http2().await;
        for _ in 0..100 {
            bodies.push(client.get("/watch").await.unwrap().into_body());
        }
    }
    assert_eq!(server.seen.begun.load(Ordering::SeqCst), 1000);
    assert_eq!(server.http2().await.get("/fixed").await.unwrap().status(), 200);
    drop(bodies);
    until(|| server.seen.dropped.load(Ordering::SeqCst) == 1000).await;
}

#[tokio::test]
async fn heads_have_a_limit() {
    let server = Server::with(true, limits(|limits| limits.max_header_bytes = 64 << 10));
    let mut client = server.http2().await;
    for (size, status) in [(60 << 10, 200), (80 << 10, 431)] {
        let mut request = get("/");
        request.headers_mut().insert("x", "v".repeat(size).parse().unwrap());
        let answer = soon(client.client.send_request(request)).await.unwrap();
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn an_answer_that_closes_sends_goaway_after_it() {
    let server = Server::start();
    let mut client = server.http2().await;
    let answer = client.get("/close").await.unwrap();
    assert!(!answer.headers().contains_key("connection"));
    assert_eq!(text(answer).await, "bye");
    until(|| client.driver.is_finished()).await;
}

struct Constant(u8);

impl keelson_machinery::env::Entropy for Constant {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

#[tokio::test]
async fn some_clients_are_sent_away_when_so_configured() {
    for (drawn, sent_away) in [(1, true), (100, false)] {
        let server = Server::with(true, |config| {
            config.goaway = Some(Goaway {
                chance: 0.02,
                entropy: std::sync::Arc::new(Constant(drawn)),
            });
        });
        let mut client = server.http2().await;
        assert_eq!(text(client.get("/").await.unwrap()).await, "GET / localhost");
        if sent_away {
            until(|| client.driver.is_finished()).await;
        } else {
            assert_eq!(client.get("/").await.unwrap().status(), 200);
        }
    }
}

#[tokio::test]
async fn an_idle_connection_ends_and_a_busy_one_stays() {
    let server = Server::with(
        true,
        limits(|limits| {
            limits.idle_timeout = Duration::from_millis(200);
            limits.handshake_timeout = Duration::from_millis(400);
        }),
    );
    let (mut idle, mut busy) = (server.http2().await, server.http2().await);
    let mut watch = busy.get("/watch").await.unwrap().into_body();
    assert_eq!(text(idle.get("/").await.unwrap()).await, "GET / localhost");
    until(|| idle.driver.is_finished()).await;
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    assert!(!busy.driver.is_finished());
}
