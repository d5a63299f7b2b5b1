//! Leaving HTTP/1.1 for a protocol nobody here knows.

use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setting::{Server, soon, text, until};

fn request(method: &str, protocol: &str) -> http::Request<Full<bytes::Bytes>> {
    http::Request::builder()
        .method(method)
        .uri("/upgrade")
        .header("host", "x")
        .header("connection", "Upgrade")
        .header("upgrade", protocol)
        .body(Full::default())
        .unwrap()
}

#[tokio::test]
async fn any_protocol_gets_its_bytes_echoed_by_get_and_post() {
    let server = Server::start();
    for (method, protocol) in [
        ("GET", "invented/7.3"),
        ("POST", "invented/7.3"),
        ("POST", "SPDY/3.1"),
        ("GET", "websocket"),
    ] {
        let mut client = server.http1().await;
        let answer = soon(client.send_request(request(method, protocol))).await.unwrap();
        assert_eq!(answer.status(), 101);
        assert_eq!(answer.headers()["upgrade"], protocol);
        assert_eq!(answer.headers()["connection"], "Upgrade");
        let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
        for _ in 0..3 {
            stream.write_all(b"\x00\xffping").await.unwrap();
            let mut back = [0; 6];
            soon(stream.read_exact(&mut back)).await.unwrap();
            assert_eq!(&back, b"\x00\xffping");
        }
    }
    until(|| server.serving.connections() == 0).await;
}

/// A client may write without waiting for the 101; those bytes belong to the new protocol.
#[tokio::test]
async fn bytes_sent_with_the_request_are_not_lost() {
    let server = Server::plain();
    let mut stream = server.tcp().await;
    let head = "POST /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: invented\r\nContent-Length: 0\r\n\r\nearly";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"early") {
        answer.push(soon(stream.read_u8()).await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 Switching Protocols\r\n"));
}

#[tokio::test]
async fn a_refused_upgrade_stays_http() {
    let server = Server::start();
    let mut client = server.http1().await;
    let answer = client.send_request(request("POST", "unwanted")).await.unwrap();
    assert_eq!(answer.status(), 403);
    assert_eq!(text(answer).await, "no");
    let answer = client.send_request(request("POST", "invented")).await.unwrap();
    assert_eq!(answer.status(), 101);
}

#[tokio::test]
async fn an_upgraded_connection_is_open_until_the_server_ends() {
    let server = Server::start();
    let mut client = server.http1().await;
    let answer = client.send_request(request("GET", "invented")).await.unwrap();
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    drop(client);
    stream.write_all(b"a").await.unwrap();
    assert_eq!(soon(stream.read_u8()).await.unwrap(), b'a');
    assert_eq!(server.serving.connections(), 1);
    soon(server.serving.stop()).await;
    assert!(soon(stream.read_u8()).await.is_err());
}
