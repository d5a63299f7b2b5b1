//! TLS: protocol choice, client certificates, names and replaced certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keelson_server::tls::ServingCertificates;
use keelson_server::tls::certs::{CertificateAuthority, CertifiedKeyPem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setting::{Http2, Server, client_config, get, soon, text, until, validity};

#[tokio::test]
async fn the_protocol_is_the_one_agreed_at_the_handshake() {
    let server = Server::start();
    for (offered, agreed) in [
        (vec!["h2", "http/1.1"], Some("h2")),
        (vec!["http/1.1"], Some("http/1.1")),
        (vec![], None),
    ] {
        let stream = server.tls(&offered, None).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes));
    }
    let answer = server.http2().await.get("/who").await.unwrap();
    assert_eq!(text(answer).await, "tls=true http2=true server=localhost client=-");
    let answer = server.http1().await.send_request(get("/who")).await.unwrap();
    assert_eq!(text(answer).await, "tls=true http2=false server=localhost client=-");
}

#[tokio::test]
async fn a_plain_listener_knows_http2_by_its_preface() {
    let server = Server::plain();
    let mut client = Http2::over(server.tcp().await).await;
    assert_eq!(
        text(client.get("/who").await.unwrap()).await,
        "tls=false http2=true server=- client=-"
    );
    let answer = server
        .raw(b"GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.ends_with("tls=false http2=false server=- client=-"), "{answer}");
}

#[tokio::test]
async fn the_client_certificate_reaches_the_handler() {
    let server = Server::start();
    let admin = server
        .ca
        .issue_client("kubernetes-admin", Some("system:masters"), validity())
        .unwrap();
    let answer = server.http2_as(Some(&admin)).await.get("/who").await.unwrap();
    assert!(
        text(answer)
            .await
            .ends_with("client=O=system:masters, CN=kubernetes-admin")
    );
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_not_refused_at_the_handshake() {
    let server = Server::start();
    let stranger = CertificateAuthority::create("another-ca", validity()).unwrap();
    let mallory = stranger.issue_client("mallory", None, validity()).unwrap();
    let answer = server.http2_as(Some(&mallory)).await.get("/who").await.unwrap();
    assert!(text(answer).await.ends_with("client=CN=mallory"));
}

#[tokio::test]
async fn a_certificate_without_its_key_is_refused() {
    let server = Server::start();
    let mut admin = server.ca.issue_client("kubernetes-admin", None, validity()).unwrap();
    let other = server.ca.issue_client("other", None, validity()).unwrap();
    admin.key_pem = other.key_pem;
    let stolen = std::panic::AssertUnwindSafe(server.tls(&["http/1.1"], Some(&admin)));
    // The client's own library may refuse the pair; if it does not, the server must.
    let Ok(Ok(mut stream)) = futures_util::FutureExt::catch_unwind(stolen).await else {
        return;
    };
    let _ = stream.write_all(b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(soon(stream.read_u8()).await.is_err());
}

#[tokio::test]
async fn replaced_certificates_are_served_from_the_next_handshake_on() {
    let server = Server::start();
    let mut before = server.http2().await;
    let pair = server.ca.issue_server("next", &["localhost"], &[], validity()).unwrap();
    server.tls.replace(ServingCertificates::new(&pair).unwrap());
    let stream = server.tls(&[], None).await.unwrap();
    let served = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(
        served,
        keelson_server::tls::certificates(&pair.certificate_pem).unwrap()[0]
    );
    assert_eq!(before.get("/fixed").await.unwrap().status(), 200);
}

#[tokio::test]
async fn renewed_files_are_served_and_broken_ones_are_not() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let next = server.ca.issue_server("next", &["localhost"], &[], validity()).unwrap();
    std::fs::write(&certificate, "half a cert").unwrap();
    std::fs::write(&key, &next.key_pem).unwrap();
    let (loads, counted) = (Arc::new(AtomicUsize::new(0)), certificate.clone());
    let count = Arc::clone(&loads);
    let load = move || {
        count.fetch_add(1, Ordering::SeqCst);
        ServingCertificates::new(&CertifiedKeyPem::read(&counted, &key)?)
    };
    let every = std::time::Duration::from_millis(10);
    let following = tokio::spawn(Arc::clone(&server.tls).follow(load, every, server.shutdown.clone()));
    let served = async || {
        let stream = server.tls(&[], None).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    };
    let before = served().await;
    until(|| loads.load(Ordering::SeqCst) > 2).await;
    assert_eq!(served().await, before);
    std::fs::write(&certificate, &next.certificate_pem).unwrap();
    let seen = loads.load(Ordering::SeqCst);
    until(|| loads.load(Ordering::SeqCst) > seen + 2).await;
    assert_eq!(
        served().await,
        keelson_server::tls::certificates(&next.certificate_pem).unwrap()[0]
    );
    server.shutdown.begin();
    soon(following).await.unwrap();
}

#[tokio::test]
async fn plain_http_on_the_tls_port_is_told_so() {
    let server = Server::start();
    let answer = server.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(
        answer,
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    );
}

/// Certificates go into the ticket, so a client that resumes is the same client.
#[tokio::test]
async fn a_resumed_session_keeps_the_client_certificate() {
    let server = Server::start();
    let admin = server.ca.issue_client("kubernetes-admin", None, validity()).unwrap();
    let config = Arc::new(client_config(&server.ca, Some(&admin), rustls::DEFAULT_VERSIONS));
    for expected in [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed] {
        let mut stream = server.tls_with(Arc::clone(&config)).await.unwrap();
        stream
            .write_all(b"GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.ends_with("client=CN=kubernetes-admin"), "{answer}");
        assert_eq!(stream.get_ref().1.handshake_kind(), Some(expected));
    }
}

#[tokio::test]
async fn tls_1_2_clients_can_show_a_certificate_too() {
    let server = Server::start();
    let admin = server.ca.issue_client("kubernetes-admin", None, validity()).unwrap();
    let mut config = client_config(&server.ca, Some(&admin), &[&rustls::version::TLS12]);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = server.tls_with(Arc::new(config)).await.unwrap();
    let answer = Http2::over(stream).await.get("/who").await.unwrap();
    assert!(
        text(answer)
            .await
            .ends_with("http2=true server=localhost client=CN=kubernetes-admin")
    );
}
