//! Watches and the clients that do not keep up with them.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::setting::{ORDERS, Server, soon};

/// More bytes than all buffers on the way hold.
const EVENTS: usize = 600;
const NOTE: usize = 20_000;

/// A client that asks by HTTP/1.1 and does not read: its buffers fill up, and that is all.
async fn deaf(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {ORDERS}?watch=1&resourceVersion=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    soon(stream.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// A watcher that does not read costs the others nothing, and is told everything when it reads again.
#[tokio::test]
async fn a_slow_watcher_costs_only_itself() {
    let server = Server::with(|_| {});
    let (mut writer, mut healthy) = (server.client().await, server.client().await.watch("").await);
    // How late the healthy one hears of orders, in the middle.
    let mut lateness = async |numbers: std::ops::Range<usize>| {
        let mut times = Vec::new();
        for name in numbers.map(|number| format!("order-{number}")) {
            let begin = Instant::now();
            writer.create(&name, NOTE).await;
            assert_eq!(healthy.next_name().await, name);
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        times[times.len() / 2]
    };
    let alone = lateness(0..100).await;
    let mut stalled = Vec::new();
    for _ in 0..10 {
        stalled.push(deaf(&server).await);
    }
    let beside = lateness(100..EVENTS).await;
    assert!(
        beside < 5 * alone + Duration::from_millis(20),
        "{beside:?}, alone {alone:?}"
    );
    for stream in stalled {
        assert_eq!(told(stream, EVENTS - 1).await, EVENTS);
    }
}

/// Reads events, each a line, until one names `last`: how many there were. They must be in order.
async fn told(stream: TcpStream, last: usize) -> usize {
    let mark = r#""metadata":{"name":"order-"#;
    let (mut lines, mut count) = (BufReader::new(stream).lines(), 0);
    while count <= last {
        let line = soon(lines.next_line()).await.unwrap().expect("the watch ended");
        // Between events stand the sizes of chunks.
        let Some((_, rest)) = line.split_once(mark) else {
            continue;
        };
        let number: usize = rest.split('"').next().unwrap().parse().unwrap();
        assert_eq!(number, count);
        count += 1;
    }
    count
}

#[tokio::test]
async fn a_watch_ends_when_its_client_or_the_server_says_so() {
    let server = Server::with(|requests| requests.min_watch = Duration::from_millis(100));
    let mut client = server.client().await;
    client.create("a", 0).await;
    for query in ["timeoutSeconds=1", ""] {
        let mut watch = client.watch(query).await;
        assert_eq!(watch.next_name().await, "a");
        assert!(watch.next().await.is_none(), "{query}");
    }
}

/// Also where the seconds are more than Go can count.
#[tokio::test]
async fn a_watch_whose_time_has_passed_ends_at_once() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    for query in ["timeoutSeconds=-1", "timeoutSeconds=99999999999999999"] {
        let mut watch = client.watch(query).await;
        let end = async { while watch.next().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(20), end).await.expect(query);
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    for number in 0..300 {
        client.create(&format!("o{number}"), 0).await;
    }
    let query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut watch = client.watch(query).await;
    for _ in 0..300 {
        assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
    }
    let mark = watch.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(
        mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    client.create("later", 0).await;
    assert_eq!(watch.next_name().await, "later");
}
