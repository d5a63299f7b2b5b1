//! TLS: protocol choice, client certificates, names and replaced certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keelson_net::tls::certs::{CertificateAuthority, CertifiedKeyPem};
use keelson_net::tls::{CipherSuite, MinVersion, ServingCertificates, TlsSettings, TlsState};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use x509_parser::prelude::{FromDer, X509Certificate};

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
        keelson_net::tls::certificates(&pair.certificate_pem).unwrap()[0]
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
        let pair = CertifiedKeyPem::read(&counted, &key)?;
        ServingCertificates::new(&pair)?.with_named(&["localhost"], &pair)
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
        keelson_net::tls::certificates(&next.certificate_pem).unwrap()[0]
    );
    server.shutdown.begin();
    soon(following).await.unwrap();
}

/// A listener with these settings, and the authority of its certificates: for `localhost` by default, for
/// `named.example.com` and 127.0.0.1 of their own.
fn with_settings(settings: &TlsSettings) -> (Server, CertificateAuthority) {
    let ca = CertificateAuthority::create("settings-ca", validity()).unwrap();
    let local = "127.0.0.1".parse().unwrap();
    let default = ca
        .issue_server("default", &["localhost"], &[local], validity())
        .unwrap();
    let named = ca
        .issue_server("named", &["named.example.com"], &[local], validity())
        .unwrap();
    let set = ServingCertificates::new(&default).and_then(|set| set.with_own_names(&named));
    let state = Arc::new(TlsState::new(set.unwrap(), settings).unwrap());
    (Server::with(true, |config| config.tls = Some(state)), ca)
}

#[tokio::test]
async fn versions_and_cipher_suites_are_those_of_the_settings() {
    let suite = |name| CipherSuite::named(name).unwrap();
    let chosen = [
        suite("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
        suite("TLS_RSA_WITH_RC4_128_SHA"),
    ];
    let of = |min_version, suites: &[CipherSuite]| TlsSettings {
        min_version,
        cipher_suites: suites.to_vec(),
        ..TlsSettings::default()
    };
    let old = [&rustls::version::TLS12];
    let new = [&rustls::version::TLS13];
    for (settings, versions, expected) in [
        (of(MinVersion::Tls12, &[]), &old, Ok(None)),
        (
            of(MinVersion::Tls12, &chosen),
            &old,
            Ok(Some(rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)),
        ),
        (of(MinVersion::Tls12, &chosen), &new, Ok(None)),
        (of(MinVersion::Tls13, &[]), &old, Err(())),
        (of(MinVersion::Tls13, &[]), &new, Ok(None)),
        (of(MinVersion::Tls12, &chosen[1..]), &old, Err(())),
        (of(MinVersion::Tls12, &chosen[1..]), &new, Ok(None)),
    ] {
        let (server, ca) = with_settings(&settings);
        let connected = server.tls_with(Arc::new(client_config(&ca, None, versions))).await;
        let spoken = connected.map_err(|_| ()).map(|stream| {
            let spoken = stream.get_ref().1.negotiated_cipher_suite().unwrap().suite();
            expected.unwrap_or_default().map(|_| spoken)
        });
        assert_eq!(spoken, expected, "{settings:?} {versions:?}");
    }
}

#[tokio::test]
async fn clients_that_name_no_host_get_the_certificate_of_the_address() {
    let (server, ca) = with_settings(&TlsSettings::default());
    let config = Arc::new(client_config(&ca, None, rustls::DEFAULT_VERSIONS));
    for (asked, served) in [
        ("localhost", "CN=default"),
        ("named.example.com", "CN=named"),
        ("127.0.0.1", "CN=named"),
    ] {
        let name = ServerName::try_from(asked).unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&config));
        let stream = connector.connect(name, server.tcp().await).await.unwrap();
        let chain = stream.get_ref().1.peer_certificates().unwrap();
        let (_, certificate) = X509Certificate::from_der(&chain[0]).unwrap();
        assert_eq!(certificate.subject().to_string(), served, "{asked}");
    }
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
