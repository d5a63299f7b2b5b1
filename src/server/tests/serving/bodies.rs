//! Bodies that mean to cost more than they are worth.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::setting::{ORDERS, Server, soon};

const MIB: usize = 1 << 20;

async fn connect(server: &Server, method: &str, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The first line and all the rest.
async fn answer(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    // The server may close while it has bytes of ours unread, which is a reset.
    let _ = soon(stream.read_to_end(&mut all)).await;
    String::from_utf8_lossy(&all).into_owned()
}

/// Sends `piece` again and again until the server answers or closes: the answer, and how many bytes went out.
async fn flood(stream: TcpStream, piece: &[u8]) -> (String, usize) {
    let (mut read, mut write) = stream.into_split();
    let mut sent = 0;
    let mut first = [0; 512];
    let count = loop {
        tokio::select! {
            biased;
            count = read.read(&mut first) => break count.unwrap_or(0),
            written = write.write(piece) => sent += written.unwrap_or(0),
        }
        assert!(sent < 64 * MIB, "it takes everything");
    };
    (String::from_utf8_lossy(&first[..count]).into_owned(), sent)
}

/// A body without an end is read as far as the limit and what the buffers on the way hold.
#[tokio::test]
async fn an_endless_body_is_refused_at_the_limit() {
    let server = Server::with(|_| {});
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for headers in [
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
        "Content-Type: application/json\r\nContent-Length: 99999999999\r\n",
        "Content-Type: application/json\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n",
    ] {
        let mut stream = connect(&server, "POST", ORDERS, headers).await;
        if headers.contains("Expect") {
            let mut interim = [0; 25];
            soon(stream.read_exact(&mut interim)).await.unwrap();
            assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let (answer, sent) = soon(flood(stream, piece.as_bytes())).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{headers}: {answer}");
        assert!(sent > 3 * MIB, "{headers}: refused after {sent} bytes");
    }
}

/// A body that says it is compressed is not unpacked: what it holds costs nothing.
#[tokio::test]
async fn compressed_bodies_are_not_unpacked() {
    let server = Server::with(|_| {});
    let mut zipped = GzEncoder::new(Vec::new(), Compression::best());
    (0..64).for_each(|_| zipped.write_all(&[b' '; MIB]).unwrap());
    let zipped = zipped.finish().unwrap();
    assert!(zipped.len() < MIB);
    for encoding in ["gzip", "deflate", "gzip, gzip"] {
        let headers = format!(
            "Content-Type: application/json\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\nConnection: close\r\n",
            zipped.len()
        );
        let mut stream = connect(&server, "POST", ORDERS, &headers).await;
        stream.write_all(&zipped).await.unwrap();
        let answer = answer(stream).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{encoding}: {answer}");
    }
}

/// A body that dawdles is given up with the request's time, as kube-apiserver does it.
#[tokio::test]
async fn a_body_that_dawdles_ends_with_its_request() {
    let server = Server::with(|requests| requests.timeout = Duration::from_millis(500));
    let headers = "Content-Type: application/json\r\nContent-Length: 1000\r\nConnection: close\r\n";
    let (mut read, mut write) = connect(&server, "POST", ORDERS, headers).await.into_split();
    let dawdling = tokio::spawn(async move {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut first = [0; 512];
    let count = soon(read.read(&mut first)).await.unwrap();
    let answer = String::from_utf8_lossy(&first[..count]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    dawdling.abort();
}

/// Documents and patches that grow, nest or repeat are refused by whoever reads them, and the server goes on:
/// CVE-2019-11253, CVE-2019-11254 and CVE-2019-1002100 as a client would try them. What each may cost is held in
/// `src/machinery/tests/bombs.rs`.
#[tokio::test]
async fn bombs_are_refused() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    client.create("one", 0).await;
    let one = format!("{ORDERS}/one");
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        laughs.push_str(&format!(
            "a{n}: &a{n} [{}]\n",
            vec![format!("*a{}", n - 1); 10].join(", ")
        ));
    }
    let nested = format!("{{\"spec\":{}1{}}}", "{\"a\":".repeat(20_000), "}".repeat(20_000));
    let nop = r#"{"op":"test","path":"/kind","value":"Order"}"#;
    let many = format!("[{}]", vec![nop; 10_001].join(","));
    let copy = |n: usize| format!(r#"{{"op":"copy","from":"/spec/notes","path":"/spec/notes/n{n}"}}"#);
    let doubling = format!("[{}]", (0..40).map(copy).collect::<Vec<_>>().join(","));
    let json_patch = "application/json-patch+json";
    for (method, path, kind, body) in [
        ("POST", ORDERS, "application/yaml", laughs.as_str()),
        ("POST", ORDERS, "application/json", &nested),
        ("PATCH", &one, "application/merge-patch+json", &nested),
        ("PATCH", &one, "application/apply-patch+yaml", &laughs),
        ("PATCH", &one, json_patch, &many),
        ("PATCH", &one, json_patch, &doubling),
    ] {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}?fieldManager=m"))
            .header("content-type", kind)
            .body(http_body_util::Full::from(body.to_owned()))
            .unwrap();
        let status = soon(client.sender.send_request(request)).await.unwrap().status();
        assert!(matches!(status.as_u16(), 400 | 413 | 422), "{kind}: {status}");
    }
    assert_eq!(client.get(&one).await.status(), 200);
}

/// Selectors as long as a request may be are answered, and the server goes on.
#[tokio::test]
async fn long_selectors_are_answered() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    client.create("one", 0).await;
    let terms = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    let values = |count: usize| {
        format!(
            "k+in+({})",
            (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        )
    };
    for (name, text) in [
        ("labelSelector", terms(6_000)),
        ("labelSelector", values(9_000)),
        ("labelSelector", "(".repeat(60_000)),
        ("labelSelector", "!".repeat(60_000)),
        ("fieldSelector", terms(6_000)),
        ("fieldSelector", "\\".repeat(60_000)),
    ] {
        let answer = client.get(&format!("{ORDERS}?{name}={text}")).await;
        assert!(
            matches!(answer.status().as_u16(), 200 | 400),
            "{name}: {}",
            answer.status()
        );
    }
}
