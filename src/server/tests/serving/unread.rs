//! Answers that their clients do not read: they hold nothing for longer than a request may take, and not the server's
//! end.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::setting::{ORDERS, Server, soon};

/// Together more bytes than all buffers on the way hold.
const COUNT: usize = 40;
const NOTE: usize = 200_000;

const LIST: &str = "";
const WATCH: &str = "?watch=1";
const WATCH_LIST: &str = "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";

/// A server with a long list.
async fn setting(change: impl FnOnce(&mut keelson_server::settings::RequestSettings)) -> Server {
    let server = Server::with(change);
    let mut client = server.client().await;
    for number in 0..COUNT {
        client.create(&format!("order-{number}"), NOTE).await;
    }
    server
}

/// A client that has asked for something and does not read the answer's body.
enum Deaf {
    Http1(TcpStream),
    Http2(Incoming),
}

impl Deaf {
    /// With HTTP/2, and a window of so many bytes for each answer.
    async fn http2(server: &Server, window: u32, path: &str) -> Deaf {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = http::Request::get(format!("http://localhost{path}"))
            .body(Full::<Bytes>::default())
            .unwrap();
        let answer = soon(sender.send_request(request)).await.unwrap();
        assert_eq!(answer.status(), 200);
        Deaf::Http2(answer.into_body())
    }

    async fn http1(server: &Server, path: &str) -> Deaf {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        SockRef::from(&stream).set_recv_buffer_size(64 << 10).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        soon(stream.read_exact(&mut first)).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        Deaf::Http1(stream)
    }

    /// All three ways.
    async fn each(server: &Server, path: &str) -> [Deaf; 3] {
        [
            Deaf::http2(server, 0, path).await,
            Deaf::http2(server, 70_000, path).await,
            Deaf::http1(server, path).await,
        ]
    }

    /// Reads what there is, until the answer is broken off.
    async fn was_cut_off(self) -> bool {
        match self {
            Deaf::Http2(mut body) => loop {
                match soon(body.frame()).await {
                    Some(Ok(_)) => {}
                    last => return last.is_some(),
                }
            },
            Deaf::Http1(mut stream) => {
                let mut read = Vec::new();
                // A reset is an end too.
                let _ = soon(stream.read_to_end(&mut read)).await;
                !read.ends_with(b"0\r\n\r\n")
            }
        }
    }
}

/// The place among the requests under way is free when the time of the request is over, though the body is not asked
/// for more.
#[tokio::test]
async fn a_list_that_is_not_read_gives_its_place_back() {
    const TIME: Duration = Duration::from_secs(2);
    let server = setting(|requests| {
        requests.timeout = TIME;
        requests.max_reads = 1;
    })
    .await;
    let (list, mut other) = (format!("{ORDERS}{LIST}"), server.client().await);
    for way in 0..3 {
        let begun = Instant::now();
        let deaf = match way {
            0 => Deaf::http2(&server, 0, &list).await,
            1 => Deaf::http2(&server, 70_000, &list).await,
            _ => Deaf::http1(&server, &list).await,
        };
        assert_eq!(other.get("/version").await.status(), 429, "{way}");
        soon(async {
            while other.get("/version").await.status() == 429 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert!(begun.elapsed() >= TIME, "{way}: {:?}", begun.elapsed());
        assert!(deaf.was_cut_off().await, "{way}");
    }
}

/// The present objects have to be read in the time of a request.
#[tokio::test]
async fn a_watch_whose_beginning_is_not_read_ends() {
    const TIME: Duration = Duration::from_secs(2);
    let server = setting(|requests| requests.timeout = TIME).await;
    for query in [WATCH, WATCH_LIST] {
        let deaf = Deaf::each(&server, &format!("{ORDERS}{query}")).await;
        tokio::time::sleep(TIME + TIME / 2).await;
        for deaf in deaf {
            assert!(deaf.was_cut_off().await, "{query}");
        }
    }
}

/// What comes after that may wait for its reader, or not come at all.
#[tokio::test]
async fn a_watch_that_has_begun_goes_on() {
    let server = Server::with(|requests| requests.timeout = Duration::from_secs(1));
    let mut client = server.client().await;
    client.create("first", 0).await;
    let mut idle = server.client().await.watch("").await;
    assert_eq!(idle.next_name().await, "first");
    let unread = Deaf::http2(&server, 1000, &format!("{ORDERS}?watch=1&resourceVersion=1")).await;
    for number in 0..5 {
        client.create(&format!("order-{number}"), NOTE).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    for number in 0..5 {
        assert_eq!(idle.next_name().await, format!("order-{number}"));
    }
    let Deaf::Http2(mut body) = unread else { unreachable!() };
    let mut read = 0;
    while read < 2 * NOTE {
        read += soon(body.frame()).await.unwrap().unwrap().into_data().unwrap().len();
    }
}

/// Nobody waits for those who do not read when the server ends.
#[tokio::test]
async fn the_end_does_not_wait_for_readers_who_do_not_read() {
    for send_retry_after in [false, true] {
        let mut server = setting(|requests| requests.shutdown.send_retry_after = send_retry_after).await;
        let mut deaf = Vec::new();
        for query in [LIST, WATCH_LIST, "?watch=1&resourceVersion=1", "/order-1"] {
            deaf.extend(Deaf::each(&server, &format!("{ORDERS}{query}")).await);
        }
        let begun = Instant::now();
        server.begin_to_stop();
        soon(async {
            while !server.has_ended() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        drop(deaf);
    }
}

/// Who reads, if slowly, is told everything before the server ends.
#[tokio::test]
async fn the_end_waits_for_readers_who_read() {
    let mut server = setting(|_| {}).await;
    let Deaf::Http2(mut body) = Deaf::http2(&server, 2 << 20, &format!("{ORDERS}{LIST}")).await else {
        unreachable!()
    };
    server.begin_to_stop();
    let (mut read, mut pauses) = (Vec::new(), 0);
    while let Some(frame) = soon(body.frame()).await {
        read.extend_from_slice(&frame.unwrap().into_data().unwrap());
        if read.len() > pauses << 20 {
            pauses += 1;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    let list: serde_json::Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), COUNT);
}
