//! HTTP/1.1 as clients write it, well and badly.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setting::{Server, get, limits, next, soon, text, until};

#[tokio::test]
async fn one_connection_answers_many_requests_also_pipelined() {
    let server = Server::plain();
    let one = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none";
    let two = "GET /two HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n";
    let answer = server.raw(format!("{one}{two}").as_bytes()).await;
    let (first, second) = (answer.find("\r\n\r\none").unwrap(), answer.find("GET /two y").unwrap());
    assert!(first < second && answer.contains("Connection: close"), "{answer}");
}

#[tokio::test]
async fn http_1_0_gets_an_answer_and_the_end() {
    let server = Server::plain();
    let answer = server.raw(b"GET /fixed HTTP/1.0\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("xxx"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_client_that_expects_it_is_told_to_continue() {
    let server = Server::plain();
    let mut stream = server.tcp().await;
    let head =
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    soon(stream.read_exact(&mut interim)).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"body").await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nbody"),
        "{answer}"
    );
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_the_connection_closed() {
    let server = Server::plain();
    for sent in [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nHost x\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let answer = server.raw(sent.as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{sent:?}: {answer:?}"
        );
    }
}

/// With both headers `chunked` counts, and whatever follows is not taken for a request.
#[tokio::test]
async fn nothing_is_smuggled_behind_a_body_of_two_lengths() {
    let server = Server::plain();
    let sent = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
                5\r\nwhole\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = server.raw(sent.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nwhole"),
        "{answer}"
    );
}

#[tokio::test]
async fn heads_have_a_limit_and_big_ones_below_it_pass() {
    let server = Server::with(false, limits(|limits| limits.max_header_bytes = 64 << 10));
    let request = |size: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\nConnection: close\r\n\r\n",
            "v".repeat(size)
        )
    };
    assert!(
        server
            .raw(request(60 << 10).as_bytes())
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    assert!(
        server
            .raw(request(65 << 10).as_bytes())
            .await
            .starts_with("HTTP/1.1 431 ")
    );
    let many = |count: usize| {
        let headers: String = (0..count).map(|number| format!("X-{number}: v\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n")
    };
    assert!(
        server
            .raw(many(990).as_bytes())
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    assert!(server.raw(many(1001).as_bytes()).await.starts_with("HTTP/1.1 431 "));
}

/// A target has 65 534 bytes at most; kube-apiserver takes those that the limit of heads allows.
#[tokio::test]
async fn a_target_that_is_too_long_is_refused_as_such() {
    let server = Server::plain();
    for (size, begin) in [
        (60 << 10, "HTTP/1.1 200 "),
        (66 << 10, "HTTP/1.1 414 "),
        (1000 << 10, "HTTP/1.1 414 "),
    ] {
        let path = "v".repeat(size);
        let request = format!("GET /?q={path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = server.raw(request.as_bytes()).await;
        assert!(answer.starts_with(begin), "{size}: {}", &answer[..answer.len().min(80)]);
    }
}

#[tokio::test]
async fn head_tells_the_length_and_sends_no_body() {
    let server = Server::plain();
    let answer = server
        .raw(b"HEAD /fixed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert!(
        answer.contains("Content-Length: 1024\r\n") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_stream_of_known_size_is_not_chunked() {
    let server = Server::plain();
    let answer = server
        .raw(b"GET /sized HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert!(
        answer.contains("Content-Length: 7\r\n") && answer.ends_with("\r\n\r\none,two"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_target_with_an_authority_gives_the_host() {
    let server = Server::plain();
    let answer = server
        .raw(b"GET http://real/a?b HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.ends_with("GET /a?b real"), "{answer}");
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let server = Server::start();
    let mut client = server.http1().await;
    let answer = client.send_request(get("/panics")).await.unwrap();
    assert_eq!(answer.status(), 500);
    assert_eq!(
        text(answer).await,
        "This request caused apiserver to panic. Look in the logs for details.\n"
    );
    let answer = client.send_request(get("/fixed")).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_body_that_breaks_is_not_passed_off_as_whole() {
    let server = Server::start();
    for how in ["panic", "error"] {
        let mut client = server.http1().await;
        let mut body = client
            .send_request(get(&format!("/broken/{how}")))
            .await
            .unwrap()
            .into_body();
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "begin");
        server.news.notify_one();
        assert!(next(&mut body).await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_handler_and_its_watch() {
    let server = Server::start();
    for path in ["/hang", "/watch"] {
        let before = server.seen.dropped.load(Ordering::SeqCst);
        let mut client = server.http1().await;
        let request = tokio::spawn(async move { client.send_request(get(path)).await });
        until(|| server.seen.begun.load(Ordering::SeqCst) > before).await;
        if path == "/watch" {
            drop(soon(request).await);
        } else {
            request.abort();
        }
        until(|| server.seen.dropped.load(Ordering::SeqCst) > before).await;
    }
}

#[tokio::test]
async fn each_event_of_a_watch_is_sent_at_once() {
    let server = Server::start();
    let mut client = server.http1().await;
    let mut body = soon(client.send_request(get("/watch"))).await.unwrap().into_body();
    for _ in 0..3 {
        assert_eq!(next(&mut body).await.unwrap().unwrap(), "event\n");
        server.news.notify_one();
    }
}

#[tokio::test]
async fn a_large_body_passes_both_ways() {
    let server = Server::start();
    let mut client = server.http1().await;
    let sent = bytes::Bytes::from(vec![b'z'; 8 << 20]);
    let request = http::Request::post("/echo")
        .header("host", "x")
        .body(Full::new(sent.clone()))
        .unwrap();
    let answer = soon(client.send_request(request)).await.unwrap();
    assert_eq!(text(answer).await.as_bytes(), sent);
}

#[tokio::test]
async fn a_head_that_never_comes_ends_the_connection() {
    let quick = limits(|limits| {
        limits.handshake_timeout = std::time::Duration::from_millis(200);
        limits.idle_timeout = std::time::Duration::from_millis(300);
    });
    let server = Server::with(false, quick);
    for sent in ["", "GET / HTTP/1.1\r\nHo", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        server.raw_bytes(sent.as_bytes()).await;
    }
}

/// "Slowloris": many connections, each with a head that never ends.
#[tokio::test]
async fn a_head_that_dawdles_ends_its_connection_and_an_idle_one_stays() {
    let server = Server::with(
        false,
        limits(|limits| limits.head_timeout = std::time::Duration::from_millis(100)),
    );
    let (mut idle, mut slow) = (server.tcp().await, server.tcp().await);
    ask(&mut idle).await;
    ask(&mut slow).await;
    let dawdle = async {
        // Until the server closes; each byte comes well before the time is over.
        while slow.write_all(b"G").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    soon(dawdle).await;
    ask(&mut idle).await;
}

/// A request and its whole answer.
async fn ask(stream: &mut tokio::net::TcpStream) {
    stream
        .write_all(b"GET /fixed HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(&[b'x'; 1024]) {
        assert!(soon(stream.read_buf(&mut answer)).await.unwrap() > 0);
    }
}

/// The handler of `/fixed` reads no body.
fn refused(length: usize) -> String {
    format!("POST /fixed HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n")
}

#[tokio::test]
async fn a_short_body_that_nobody_read_does_not_end_the_connection() {
    let server = Server::plain();
    let mut stream = server.tcp().await;
    let head = refused(100_000);
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        stream.write_all(&[b'x'; 10_000]).await.unwrap();
    }
    let next = "GET /next HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n";
    stream.write_all(next.as_bytes()).await.unwrap();
    let mut answers = String::new();
    soon(stream.read_to_string(&mut answers)).await.unwrap();
    assert!(
        answers.starts_with("HTTP/1.1 200 OK") && answers.ends_with("GET /next y"),
        "{answers}"
    );
}

/// Such a client reads only when all is written: a reset in between would cost it the answer.
#[tokio::test]
async fn a_long_body_that_nobody_read_leaves_the_answer_to_its_client() {
    let server = Server::plain();
    for _ in 0..20 {
        let mut stream = server.tcp().await;
        let head = refused(4 << 20);
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        for _ in 0..64 {
            stream.write_all(&[b'x'; 64 << 10]).await.unwrap();
        }
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 OK") && answer.contains("Connection: close"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_client_whose_body_is_not_wanted_is_not_told_to_continue() {
    let server = Server::plain();
    let head = refused(10);
    let answer = server
        .raw(format!("{head}Expect: 100-continue\r\n\r\n").as_bytes())
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.contains("Connection: close"),
        "{answer}"
    );
}
