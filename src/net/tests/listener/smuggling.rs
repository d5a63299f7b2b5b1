//! Requests that two readers could take for different ones: whoever sends one gets an error or the end, and never an
//! answer to what was hidden in it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setting::{Server, soon};

/// What is hidden behind another request.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

/// Sends it all and reads until the server closes or has nothing more to say; whether it closed.
async fn raw(server: &Server, sent: &[u8]) -> (String, bool) {
    let mut stream = server.tcp().await;
    stream.write_all(sent).await.unwrap();
    let mut came = Vec::new();
    let quiet = std::time::Duration::from_millis(300);
    let closed = loop {
        match tokio::time::timeout(quiet, stream.read_buf(&mut came)).await {
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(_)) => {}
            Err(_) => break false,
        }
    };
    (String::from_utf8_lossy(&came).into_owned(), closed)
}

fn statuses(answer: &str) -> Vec<&str> {
    let lines = answer.split("HTTP/1.").skip(1);
    lines.filter_map(|line| line.get(2..5)).collect()
}

/// Reliability, request smuggling: what is ambiguous is refused, and the connection closed.
#[tokio::test]
async fn ambiguous_requests_are_refused_and_end_the_connection() {
    let server = Server::plain();
    let post = |headers: &str, body: &str| format!("POST /echo HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{HIDDEN}");
    let chunked = |body: &str| post("Transfer-Encoding: chunked\r\n", body);
    let mut wrong = Vec::new();
    for sent in [
        // The length is said twice, or in a way that others read otherwise.
        post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        post("Content-Length: 5, 6\r\n", "hello"),
        post("Content-Length: +5\r\n", "hello"),
        post("Content-Length: -5\r\n", "hello"),
        post("Content-Length: 0x5\r\n", "hello"),
        post("Content-Length: 5 5\r\n", "hello"),
        post("Content-Length: 5a\r\n", "hello"),
        post("Content-Length: 5.0\r\n", "hello"),
        post("Content-Length: 99999999999999999999999\r\n", "hello"),
        post("Content-Length: \r\n", ""),
        // Encodings that end somewhere else, or nowhere.
        post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: identity\r\n", "0\r\n\r\n"),
        post(
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "0\r\n\r\n",
        ),
        post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding:\x0bchunked\r\n", "0\r\n\r\n"),
        // Names of headers that others trim or cut.
        post("Transfer-Encoding : chunked\r\nContent-Length: 0\r\n", ""),
        post(" Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("Content-Length : 5\r\n", "hello"),
        post("Content-Length\t: 5\r\n", "hello"),
        post("X: y\rTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("X: y\0\r\n", ""),
        post("Content-Length\r\n", ""),
        // A line that goes on in the next.
        post("X: y\r\n Transfer-Encoding: chunked\r\n", ""),
        post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
        // Chunks with sizes that others read otherwise.
        chunked("-1\r\nx\r\n0\r\n\r\n"),
        chunked("+1\r\nx\r\n0\r\n\r\n"),
        chunked("0x1\r\nx\r\n0\r\n\r\n"),
        chunked("g\r\nx\r\n0\r\n\r\n"),
        chunked("\r\nx\r\n0\r\n\r\n"),
        chunked("FFFFFFFFFFFFFFFFF\r\nx\r\n0\r\n\r\n"),
        chunked("1\nx\r\n0\r\n\r\n"),
        chunked("1\rx\r\n0\r\n\r\n"),
        chunked("1\r\nxy\r\n0\r\n\r\n"),
        chunked("1;a\nb\r\nx\r\n0\r\n\r\n"),
        // First lines that are no first lines.
        format!("GET /a HTTP/1.1 HTTP/1.1\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET  /a HTTP/1.1\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/1.2\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/2.0\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/0.9\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET /a\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("G@T /a HTTP/1.1\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!(" GET /a HTTP/1.1\r\nHost: x\r\n\r\n{HIDDEN}"),
        // Whom it is for is said twice, wrongly, or not at all.
        format!("GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/1.1\r\nHost: x y\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n{HIDDEN}"),
        format!("GET /a HTTP/1.1\r\n\r\n{HIDDEN}"),
        // The older protocol knows no chunks.
        format!("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"),
    ] {
        let (answer, closed) = soon(raw(&server, sent.as_bytes())).await;
        let statuses = statuses(&answer);
        let refused = statuses.iter().all(|status| matches!(*status, "400" | "501" | "505"));
        if !closed || !refused || statuses.len() > 1 || answer.contains("/smuggled") {
            wrong.push(format!("{sent:?}, closed: {closed}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Ways to say it that only one meaning has: the body ends where it ends, and what follows is a request of its own.
#[tokio::test]
async fn unusual_but_plain_requests_end_where_they_end() {
    let server = Server::plain();
    let post = |headers: &str, body: &str| format!("POST /echo HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{HIDDEN}");
    for (sent, body) in [
        (post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), "hello"),
        (post("Content-Length:5\r\n", "hello"), "hello"),
        (post("content-LENGTH: 005\r\n", "hello"), "hello"),
        (
            post("Transfer-Encoding: Chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            "hello",
        ),
        (
            post("Transfer-Encoding:\tchunked\r\n", "0005\r\nhello\r\n0\r\n\r\n"),
            "hello",
        ),
        (
            post(
                "Transfer-Encoding: chunked\r\n",
                "5;a=b\r\nhello\r\n0;c\r\nTrailer: x\r\n\r\n",
            ),
            "hello",
        ),
    ] {
        let (answer, _) = soon(raw(&server, sent.as_bytes())).await;
        assert_eq!(statuses(&answer), ["200", "200"], "{sent:?}: {answer:?}");
        let (first, second) = answer.rsplit_once("HTTP/1.1").unwrap();
        assert!(first.ends_with(&format!("\r\n\r\n{body}")), "{sent:?}: {answer:?}");
        assert!(second.ends_with("GET /smuggled x"), "{sent:?}: {answer:?}");
    }
}

/// Both lengths: the encoding counts, and nothing is read behind its end, whoever else counted otherwise.
#[tokio::test]
async fn nothing_is_read_behind_two_kinds_of_length() {
    let server = Server::plain();
    for (length, body) in [
        (4, "5\r\nhello\r\n0\r\n\r\n"),
        (6, "0\r\n\r\nX"),
        (99, "0\r\n\r\n"),
        (0, "0\r\n\r\n"),
    ] {
        for encoding in ["Transfer-Encoding: chunked\r\n", "transfer-encoding:chunked\r\n"] {
            for first in [true, false] {
                let length = format!("Content-Length: {length}\r\n");
                let headers = if first {
                    format!("{length}{encoding}")
                } else {
                    format!("{encoding}{length}")
                };
                let sent = format!("POST /echo HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{HIDDEN}");
                let (answer, closed) = soon(raw(&server, sent.as_bytes())).await;
                assert!(!answer.contains("/smuggled") && closed, "{sent:?}: {answer:?}");
            }
        }
    }
}

/// Chunks may have notes beside their sizes, but not without end.
#[tokio::test]
async fn notes_beside_chunks_are_bounded() {
    let server = Server::plain();
    let note = "a".repeat(1 << 20);
    let sent = format!(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;{note}\r\nx\r\n0\r\n\r\n{HIDDEN}"
    );
    let answer = server.raw(sent.as_bytes()).await;
    assert!(!answer.contains("/smuggled"), "{answer:?}");
    let trailers = "T: x\r\n".repeat(100_000);
    let sent =
        format!("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}\r\n{HIDDEN}");
    let answer = server.raw(sent.as_bytes()).await;
    assert!(!answer.contains("/smuggled"), "{answer:?}");
}
