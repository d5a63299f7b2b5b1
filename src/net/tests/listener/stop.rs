//! The end of a server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::Full;
use keelson_net::listener::{Bind, ListenerConfig, ListenerError, bind};
use tokio::net::TcpStream;

use crate::setting::{Server, get, limits, next, soon, text, until};

#[tokio::test]
async fn watches_end_idle_clients_get_goaway_and_the_port_closes() {
    let server = Server::start();
    let (mut idle, mut watcher) = (server.http2().await, server.http2().await);
    let mut old = server.http1().await;
    assert_eq!(text(idle.get("/").await.unwrap()).await, "GET / localhost");
    assert_eq!(text(old.send_request(get("/")).await.unwrap()).await, "GET / localhost");
    let mut watch = watcher.get("/watch").await.unwrap().into_body();
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    let address = server.address;
    soon(server.serving.stop()).await;
    let last = next(&mut watch).await;
    assert!(last.is_none(), "a watch ends in order, not with {last:?}");
    until(|| idle.driver.is_finished() && watcher.driver.is_finished() && old.is_closed()).await;
    assert!(TcpStream::connect(address).await.is_err());
}

/// GOAWAY, not a cut: the request under way gets its answer, and a new one is not begun on that connection.
#[tokio::test]
async fn a_request_under_way_is_finished() {
    let server = Server::start();
    let mut client = server.http2().await;
    let (sender, body) = piecewise_body();
    let request = http::Request::post("https://localhost/echo").body(body).unwrap();
    let (mut streaming, connection) = hyper::client::conn::http2::handshake(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(server.tls(&["h2"], None).await.unwrap()),
    )
    .await
    .unwrap();
    let driver = tokio::spawn(connection);
    let answer = tokio::spawn(async move { streaming.send_request(request).await });
    assert_eq!(client.get("/").await.unwrap().status(), 200);
    sender.send(bytes::Bytes::from_static(b"first ")).await.unwrap();
    // The server has the request once a later connection's request was answered after its first bytes.
    until(|| server.serving.connections() == 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.shutdown.begin();
    until(|| client.driver.is_finished()).await;
    sender.send(bytes::Bytes::from_static(b"last")).await.unwrap();
    drop(sender);
    assert_eq!(text(soon(answer).await.unwrap().unwrap()).await, "first last");
    soon(driver).await.unwrap().unwrap();
    soon(server.serving.ended()).await;
}

fn piecewise_body() -> (tokio::sync::mpsc::Sender<bytes::Bytes>, StreamedBody) {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    (sender, StreamedBody(receiver))
}

/// A request body the test sends piece by piece.
struct StreamedBody(tokio::sync::mpsc::Receiver<bytes::Bytes>);

impl http_body::Body for StreamedBody {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece))))
    }
}

#[tokio::test]
async fn an_http1_connection_closes_after_its_answer() {
    let server = Server::start();
    let mut client = server.http1().await;
    let request = http::Request::get("/watch")
        .header("host", "x")
        .body(Full::default())
        .unwrap();
    let mut watch = soon(client.send_request(request)).await.unwrap().into_body();
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    soon(server.serving.stop()).await;
    assert!(next(&mut watch).await.is_none());
    until(|| client.is_closed()).await;
}

#[tokio::test]
async fn what_does_not_end_is_cut_after_the_drain_timeout() {
    let server = Server::with(true, limits(|limits| limits.drain_timeout = Duration::from_millis(100)));
    let mut client = server.http2().await;
    let hanging = tokio::spawn(async move { client.get("/hang").await });
    until(|| server.seen.begun.load(Ordering::SeqCst) == 1).await;
    soon(server.serving.stop()).await;
    assert!(soon(hanging).await.unwrap().is_err());
    assert_eq!(server.seen.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = Server::with(true, limits(|limits| limits.max_connections = 2));
    let held = [server.http2().await, server.http2().await];
    let third = server.http2();
    tokio::pin!(third);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), &mut third)
            .await
            .is_err()
    );
    assert_eq!(server.serving.connections(), 2);
    held[0].driver.abort();
    assert_eq!(soon(third).await.get("/").await.unwrap().status(), 200);
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = bind(ListenerConfig::new(address, None)).unwrap_err();
    assert!(matches!(error, ListenerError::Bind { .. }));
    assert!(
        error.to_string().starts_with(&format!("cannot listen on {address}: ")),
        "{error}"
    );
}

#[tokio::test]
async fn a_socket_bound_before_is_taken_over() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let server = Server::with(false, |config| config.bind = Bind::Socket(socket));
    assert_eq!(server.address, address);
    assert!(
        server
            .raw(b"GET /fixed HTTP/1.0\r\n\r\n")
            .await
            .starts_with("HTTP/1.0 200 OK")
    );
}
