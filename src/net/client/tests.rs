//! Clients against servers that are slow, large, evil or not there.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::stub::{Reply, Seen, Stub, vacant_port, validity};
use super::*;
use crate::tls::certs::CertificateAuthority;

async fn get(settings: ClientSettings, url: String) -> Result<Answer, String> {
    let client = Client::new(settings).unwrap();
    client.call(&Call::get(url)).await.map_err(|error| error.to_string())
}

/// A server that sends these bytes to whoever comes, and closes.
async fn raw(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = [0; 4096];
            let _ = stream.read(&mut read).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    port
}

#[tokio::test]
async fn a_request_carries_what_it_should_and_nothing_else() {
    let stub = Stub::https(|_| Reply::new(200, "hello")).await;
    let settings = ClientSettings {
        credentials: Credentials::Bearer(Secret::new("t")),
        ..stub.trusted()
    };
    let client = Client::new(settings).unwrap();
    let call = Call::post(stub.url("/a?b=c"), "application/json", "{}");
    let answer = client.call(&call).await.unwrap();
    assert_eq!((answer.status, &*answer.body), (200, &b"hello"[..]));
    let [seen] = &stub.seen()[..] else {
        panic!("one request")
    };
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/a?b=c"));
    assert_eq!(seen.header("authorization"), "Bearer t");
    assert_eq!(seen.header("host"), format!("127.0.0.1:{}", stub.port()));
    let mut names: Vec<&str> = seen.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let all = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    ];
    assert_eq!(names, all);
}

#[tokio::test]
async fn connections_are_used_again_and_replaced_when_they_broke() {
    let stub = Stub::http(|seen: &Seen| match seen.path.as_str() {
        "/close" => Reply::new(200, "").header("connection", "close"),
        _ => Reply::new(200, ""),
    })
    .await;
    let client = Client::new(ClientSettings::default()).unwrap();
    for path in ["/", "/", "/close", "/"] {
        client.call(&Call::get(stub.url(path))).await.unwrap();
    }
    assert_eq!((stub.connections(), client.idle()), (2, 1));
}

/// reliability: redirect of a webhook (CVE-2020-8561, CVE-2022-3172).
#[tokio::test]
async fn a_connection_of_http2_has_many_requests_at_once() {
    let stub = Stub::http2(|seen| {
        let delay = if seen.path.ends_with("slow") { 200 } else { 0 };
        Reply::new(200, seen.body.clone()).after(Duration::from_millis(delay))
    })
    .await;
    let client = Client::new(stub.trusted()).unwrap();
    let call = |path: &str| Call::post(stub.url(path), "application/json", "{}");
    assert_eq!(&*client.call(&call("/a?b=c")).await.unwrap().body, b"{}");
    let [seen] = &stub.seen()[..] else {
        panic!("one request")
    };
    assert_eq!(seen.path, stub.url("/a?b=c"));
    assert!(!seen.headers.contains_key("host"));
    let (slow, quick) = (call("/slow"), call("/quick"));
    let all = std::iter::repeat_n(&slow, 20).chain(std::iter::repeat_n(&quick, 20));
    let all = futures_util::future::join_all(all.map(|call| client.call(call))).await;
    assert!(
        all.iter()
            .all(|answer| answer.as_ref().is_ok_and(|answer| answer.status == 200))
    );
    assert_eq!((stub.connections(), client.idle()), (1, 1));
}

#[tokio::test]
async fn a_request_of_http2_that_is_given_up_leaves_the_others_alone() {
    let stub = Stub::http2(|seen| {
        let delay = if seen.path.ends_with("slow") { 60 } else { 0 };
        Reply::new(200, "x").after(Duration::from_secs(delay))
    })
    .await;
    let client = Client::new(stub.trusted()).unwrap();
    let mut slow = Call::get(stub.url("/slow"));
    slow.timeout = Some(Duration::from_millis(50));
    let error = client.call(&slow).await.unwrap_err();
    assert_eq!(error.fault, Fault::Deadline);
    assert_eq!(client.call(&Call::get(stub.url("/quick"))).await.unwrap().status, 200);
    let mut large = Call::get(stub.url("/quick"));
    large.max_answer_bytes = Some(0);
    assert_eq!(client.call(&large).await.unwrap_err().fault, Fault::TooLarge(0));
    assert_eq!(client.call(&Call::get(stub.url("/quick"))).await.unwrap().status, 200);
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Stub::http(|_| Reply::new(200, "secret")).await;
    let location = other.url("/");
    for status in [301, 302, 303, 307, 308] {
        let location = location.clone();
        let evil = Stub::https(move |_| Reply::new(status, "").header("location", &location)).await;
        let url = evil.url("/x");
        assert_eq!(
            get(evil.trusted(), url.clone()).await.unwrap_err(),
            format!("Get {url:?}: the answer is a redirect ({status}), which is not followed")
        );
    }
    assert!(other.seen().is_empty());
}

/// reliability: sizes are capped, whether the length is announced or not.
#[tokio::test]
async fn a_large_answer_is_cut_off() {
    let stub = Stub::https(|_| Reply::new(200, vec![b'x'; 100])).await;
    let bounded = |bytes| ClientSettings {
        max_answer_bytes: bytes,
        ..stub.trusted()
    };
    assert_eq!(get(bounded(100), stub.url("/")).await.unwrap().body.len(), 100);
    let error = get(bounded(99), stub.url("/")).await.unwrap_err();
    assert!(
        error.ends_with("the answer is larger than the 99 bytes that are read"),
        "{error}"
    );
    let chunked = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n40\r\n").await;
    let error = get(bounded(63), format!("http://127.0.0.1:{chunked}/"))
        .await
        .unwrap_err();
    assert!(error.contains("larger than the 63 bytes"), "{error}");
    let head = raw(b"HTTP/1.1 200 OK\r\nX: ").await;
    assert!(get(bounded(63), format!("http://127.0.0.1:{head}/")).await.is_err());
}

/// reliability: time is capped from the first to the last byte.
#[tokio::test]
async fn a_slow_answer_is_given_up() {
    let stub = Stub::https(|_| Reply::new(200, "late").after(Duration::from_secs(60))).await;
    let settings = ClientSettings {
        timeout: Duration::from_millis(100),
        ..stub.trusted()
    };
    let url = stub.url("/");
    assert_eq!(
        get(settings.clone(), url.clone()).await.unwrap_err(),
        format!("Get {url:?}: context deadline exceeded")
    );
    let dawdling = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", dawdling.local_addr().unwrap());
    let error = get(settings, url).await.unwrap_err();
    assert!(error.ends_with("context deadline exceeded"), "{error}");
}

struct Changing(AtomicUsize);

impl Resolver for Changing {
    fn resolve<'a>(&'a self, _host: &'a str) -> super::dial::Resolved<'a> {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        let address: IpAddr = if first { "127.0.0.1" } else { "127.0.0.2" }.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

/// reliability: DNS rebinding (CVE-2020-8562): what was checked is what is connected to, and a name is asked for once.
#[tokio::test]
async fn a_name_is_resolved_once_and_its_address_checked() {
    let stub = Stub::http(|_| Reply::new(200, "")).await;
    let resolver = Arc::new(Changing(AtomicUsize::new(0)));
    let checked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = checked.clone();
    let dialer = Dialer::new(resolver.clone()).permitting(move |address| {
        seen.lock().unwrap().push(address.to_string());
        match address.to_string().as_str() {
            "127.0.0.1" => Ok(()),
            other => Err(format!("{other} is not allowed")),
        }
    });
    let settings = ClientSettings {
        dialer,
        ..ClientSettings::default()
    };
    let url = format!("http://name.example:{}/", stub.port());
    assert_eq!(get(settings.clone(), url.clone()).await.unwrap().status, 200);
    assert_eq!(resolver.0.load(Ordering::SeqCst), 1);
    let error = get(settings, url).await.unwrap_err();
    assert!(error.ends_with("127.0.0.2 is not allowed"), "{error}");
    assert_eq!(*checked.lock().unwrap(), ["127.0.0.1", "127.0.0.2"]);
}

/// reliability: addresses in disguise are checked as what they are.
#[tokio::test]
async fn mapped_addresses_are_checked_as_what_they_are() {
    let dialer = Dialer::default().permitting(|address| match address {
        IpAddr::V4(v4) if v4.is_loopback() => Err("loopback".to_owned()),
        _ => Ok(()),
    });
    for host in ["127.0.0.1", "::ffff:127.0.0.1"] {
        let error = dialer.connect(host, 1).await.err().unwrap().to_string();
        assert!(error.ends_with(": loopback"), "{error}");
    }
}

#[tokio::test]
async fn certificates_that_are_not_to_be_trusted_are_refused_in_gos_words() {
    let stub = Stub::https(|_| Reply::new(200, "")).await;
    let error = |settings: ClientSettings, host: &str| {
        let url = format!("https://{host}:{}/", stub.port());
        async move {
            let error = get(settings, url.clone()).await.unwrap_err();
            error.strip_prefix(&format!("Get {url:?}: ")).unwrap().to_owned()
        }
    };
    let named = |name: &str| {
        let mut settings = stub.trusted();
        settings.tls.server_name = Some(name.to_owned());
        settings
    };
    let stranger = CertificateAuthority::create("stranger", validity()).unwrap();
    let mut distrusting = stub.trusted();
    distrusting.tls.roots = Roots::Pem(stranger.pem().certificate_pem.clone());
    let verify = "tls: failed to verify certificate: x509:";
    assert_eq!(
        error(distrusting, "127.0.0.1").await,
        format!("{verify} certificate signed by unknown authority")
    );
    assert_eq!(
        error(named("other.example"), "127.0.0.1").await,
        format!("{verify} certificate is valid for stub.example, not other.example")
    );
    assert_eq!(
        error(named("10.0.0.1"), "127.0.0.1").await,
        format!("{verify} certificate is valid for 127.0.0.1, not 10.0.0.1")
    );
    assert_eq!(get(named("stub.example"), stub.url("/")).await.unwrap().status, 200);
    let plain = Stub::http(|_| Reply::new(200, "")).await;
    let url = format!("https://127.0.0.1:{}/", plain.port());
    assert_eq!(
        get(stub.trusted(), url.clone()).await.unwrap_err(),
        format!("Get {url:?}: http: server gave HTTP response to HTTPS client")
    );
}

#[tokio::test]
async fn expired_certificates_are_refused() {
    let ca = CertificateAuthority::create("stub", validity()).unwrap();
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let addresses = ["127.0.0.1".parse().unwrap()];
    let past = crate::tls::certs::Validity::years_from(long_ago, 1);
    let pair = ca.issue_server("stub", &[], &addresses, past).unwrap();
    let stub = Stub::start(|_| Reply::new(200, ""), Some(&pair), &ca.pem().certificate_pem, false).await;
    let error = get(stub.trusted(), stub.url("/")).await.unwrap_err();
    assert!(
        error.contains("x509: certificate has expired or is not yet valid: current time 2"),
        "{error}"
    );
    assert!(error.ends_with("Z is after 2002-09-09T01:46:40Z"), "{error}");
}

/// What `openssl req -x509` makes: an authority that serves with its own certificate.
#[tokio::test]
async fn a_server_may_be_its_own_authority() {
    let mut params = rcgen::CertificateParams::new(vec!["stub.example".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let pair = crate::tls::certs::CertifiedKeyPem {
        certificate_pem: pem.clone(),
        key_pem: key.serialize_pem(),
    };
    let stub = Stub::start(|_| Reply::new(200, ""), Some(&pair), &pem, false).await;
    let mut settings = stub.trusted();
    settings.tls.server_name = Some("stub.example".to_owned());
    assert_eq!(get(settings.clone(), stub.url("/")).await.unwrap().status, 200);
    settings.tls.server_name = Some("other.example".to_owned());
    assert!(
        get(settings, stub.url("/"))
            .await
            .unwrap_err()
            .contains("certificate is valid for stub.example")
    );
}

#[tokio::test]
async fn clients_show_their_certificates() {
    let ca = CertificateAuthority::create("stub", validity()).unwrap();
    let stub = Stub::mutual(|_| Reply::new(200, ""), &ca).await;
    let mut settings = stub.trusted();
    let error = get(settings.clone(), stub.url("/")).await.unwrap_err();
    assert!(error.ends_with("remote error: tls: certificate required"), "{error}");
    settings.tls.identity = Some(ca.issue_client("me", None, validity()).unwrap());
    assert_eq!(get(settings, stub.url("/")).await.unwrap().status, 200);
}

#[tokio::test]
async fn what_is_no_answer_is_told() {
    let answer = |port: u16| get(ClientSettings::default(), format!("http://127.0.0.1:{port}/"));
    let text = |port: u16, why: &str| format!("Get \"http://127.0.0.1:{port}/\": {why}");
    let vacant = vacant_port();
    let refused = format!("dial tcp 127.0.0.1:{vacant}: connect: connection refused");
    assert_eq!(answer(vacant).await.unwrap_err(), text(vacant, &refused));
    let silent = raw(b"").await;
    assert_eq!(answer(silent).await.unwrap_err(), text(silent, "EOF"));
    let talking = raw(b"SSH-2.0-x\r\n\r\n").await;
    let error = answer(talking).await.unwrap_err();
    assert!(error.contains("transport connection broken"), "{error}");
    let upgrading = raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n").await;
    assert!(answer(upgrading).await.is_err());
    let nobody = get(ClientSettings::default(), "http://nobody.invalid/".to_owned())
        .await
        .unwrap_err();
    assert!(
        nobody.ends_with("dial tcp: lookup nobody.invalid: no such host"),
        "{nobody}"
    );
}

const QUICK: Backoff = Backoff {
    initial: Duration::from_millis(1),
    ..Backoff::WEBHOOK
};

#[tokio::test]
async fn webhooks_try_again_what_may_pass() {
    for (status, calls) in [(500, 5), (429, 5), (504, 5), (503, 1), (400, 1), (302, 1)] {
        let stub = Stub::http(move |_| Reply::new(status, "x").header("location", "http://127.0.0.1:1/")).await;
        let webhook = Webhook::new(Client::new(ClientSettings::default()).unwrap(), stub.url("/w"), QUICK);
        assert!(webhook.post("{}").await.is_err());
        assert_eq!(stub.seen().len(), calls, "{status}");
    }
    let fails_once = AtomicUsize::new(0);
    let stub = Stub::http(move |_| match fails_once.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::new(500, ""),
        _ => Reply::new(201, "fine"),
    })
    .await;
    let webhook = Webhook::new(Client::new(ClientSettings::default()).unwrap(), stub.url("/w"), QUICK);
    assert_eq!(&*webhook.post("{}").await.unwrap(), b"fine");
}

#[tokio::test]
async fn webhooks_are_found_by_kubeconfig_files() {
    let stub = Stub::https(|_| Reply::new(200, "fine")).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), stub.kubeconfig("/hook?x=y")).unwrap();
    let webhook = Webhook::from_kubeconfig(file.path(), &Dialer::default(), TIMEOUT, Backoff::ONCE).unwrap();
    assert_eq!(&*webhook.post(r#"{"a":1}"#).await.unwrap(), b"fine");
    let seen = &stub.seen()[0];
    assert_eq!(
        (seen.path.as_str(), seen.json()["a"].as_u64()),
        ("/hook?x=y&timeout=30s", Some(1))
    );
    assert_eq!(seen.header("content-type"), "application/json");
    assert_eq!(seen.header("accept"), "application/json, */*");
}

#[tokio::test]
async fn webhooks_wait_as_they_are_asked_to_but_not_beyond_their_time() {
    let times = AtomicUsize::new(0);
    let stub = Stub::http(move |_| match times.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::new(503, "").header("retry-after", "0"),
        _ => Reply::new(200, "fine"),
    })
    .await;
    let webhook = Webhook::new(
        Client::new(ClientSettings::default()).unwrap(),
        stub.url("/w"),
        Backoff::ONCE,
    );
    assert_eq!(&*webhook.post("{}").await.unwrap(), b"fine");
    let stub = Stub::http(|_| Reply::new(503, "").header("retry-after", "3600")).await;
    let settings = ClientSettings {
        timeout: Duration::from_millis(100),
        ..ClientSettings::default()
    };
    let webhook = Webhook::new(Client::new(settings).unwrap(), stub.url("/w"), Backoff::ONCE);
    assert!(webhook.post("{}").await.unwrap_err().is_deadline());
}
