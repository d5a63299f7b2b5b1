//! A listener with a small application, and clients for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use actix_web::body::{BodyStream, SizedStream};
use actix_web::{App, HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson_net::listener::{Connection, Limits, ListenerConfig, Serving, Shutdown, Upgrade, bind};
use keelson_net::tls::certs::{CertificateAuthority, CertifiedKeyPem, Validity};
use keelson_net::tls::{ServingCertificates, TlsSettings, TlsState, certificates};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use x509_parser::prelude::{FromDer, X509Certificate};

/// No test waits longer for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Awaits what must happen.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it did not happen in time")
}

/// Waits until `condition` holds.
pub async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// What handlers tell the test.
#[derive(Default)]
pub struct Seen {
    pub begun: AtomicUsize,
    pub dropped: AtomicUsize,
    /// Pieces of endless answers that were asked for.
    pub pieces: AtomicUsize,
}

struct Guard(Arc<Seen>);

impl Guard {
    fn new(seen: &Arc<Seen>) -> Self {
        seen.begun.fetch_add(1, Ordering::SeqCst);
        Guard(Arc::clone(seen))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

async fn who(request: HttpRequest) -> String {
    let connection = Connection::of(&request).unwrap();
    let name = connection.certificates.first().map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).unwrap();
        certificate.subject().to_string()
    });
    format!(
        "tls={} http2={} server={} client={}",
        connection.tls,
        connection.http2,
        connection.server_name.as_deref().unwrap_or("-"),
        name.as_deref().unwrap_or("-")
    )
}

async fn head_of(request: HttpRequest) -> String {
    let host = request
        .headers()
        .get("host")
        .map(|host| host.to_str().unwrap().to_owned());
    format!("{} {} {}", request.method(), request.uri(), host.unwrap_or_default())
}

async fn echo(body: web::Bytes) -> HttpResponse {
    HttpResponse::Ok().body(body)
}

async fn hang(seen: web::Data<Seen>) -> HttpResponse {
    let _guard = Guard::new(&seen.into_inner());
    std::future::pending().await
}

/// A watch: one event at once, one each time the test says so, the end when the server ends.
async fn watch(request: HttpRequest, seen: web::Data<Seen>, news: web::Data<tokio::sync::Notify>) -> HttpResponse {
    let shutdown = Box::pin(Shutdown::of(&request).unwrap().wait());
    let guard = Guard::new(&seen.into_inner());
    let first = stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"event\n")) });
    let later = stream::unfold((news.into_inner(), guard), |(news, guard)| async move {
        news.notified().await;
        Some((Ok(Bytes::from_static(b"event\n")), (news, guard)))
    });
    HttpResponse::Ok().body(BodyStream::new(first.chain(later).take_until(shutdown)))
}

/// Pieces of 64 KiB without end.
async fn endless(seen: web::Data<Seen>) -> HttpResponse {
    let guard = Guard::new(&seen.into_inner());
    let pieces = stream::repeat_with(move || {
        guard.0.pieces.fetch_add(1, Ordering::SeqCst);
        Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 64 << 10]))
    });
    HttpResponse::Ok().body(BodyStream::new(pieces))
}

/// A body that fails after its first piece, when the test says so.
async fn broken(path: web::Path<String>, news: web::Data<tokio::sync::Notify>) -> HttpResponse {
    let first = stream::once(async { Ok::<_, std::io::Error>(Bytes::from_static(b"begin")) });
    let panics = path.as_str() == "panic";
    let last = stream::once(async move {
        news.notified().await;
        assert!(!panics, "a body that panics");
        Err(std::io::Error::other("a body that fails"))
    });
    HttpResponse::Ok().body(BodyStream::new(Box::pin(first.chain(last))))
}

async fn panics() -> HttpResponse {
    panic!("a handler that panics")
}

async fn sized() -> HttpResponse {
    let chunks = stream::iter([
        Ok::<_, std::io::Error>(Bytes::from_static(b"one,")),
        Ok(Bytes::from_static(b"two")),
    ]);
    HttpResponse::Ok().body(SizedStream::new(7, chunks))
}

async fn close() -> HttpResponse {
    HttpResponse::Ok().insert_header(("connection", "close")).body("bye")
}

async fn upgrade(request: HttpRequest) -> HttpResponse {
    let Some(upgrade) = Upgrade::take(&request) else {
        return HttpResponse::BadRequest().finish();
    };
    if upgrade.protocol.starts_with("unwanted") {
        return HttpResponse::Forbidden().body("no");
    }
    let protocol = upgrade.protocol.clone();
    let shutdown = Shutdown::of(&request).unwrap();
    tokio::task::spawn_local(async move {
        let mut stream = upgrade.accepted().await.unwrap();
        let mut read = [0; 1024];
        loop {
            let count = tokio::select! {
                count = stream.read(&mut read) => count.unwrap_or(0),
                () = shutdown.wait() => 0,
            };
            if count == 0 {
                break;
            }
            stream.write_all(&read[..count]).await.unwrap();
        }
        let _ = stream.shutdown().await;
    });
    HttpResponse::SwitchingProtocols()
        .insert_header(("upgrade", protocol))
        .finish()
}

/// A running listener.
pub struct Server {
    pub serving: Serving,
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    pub seen: Arc<Seen>,
    pub news: Arc<tokio::sync::Notify>,
    pub tls: Arc<TlsState>,
    pub ca: CertificateAuthority,
}

pub fn validity() -> Validity {
    Validity::years_from(SystemTime::now(), 1)
}

impl Server {
    /// With TLS.
    pub fn start() -> Self {
        Self::with(true, |_| {})
    }

    /// Without TLS.
    pub fn plain() -> Self {
        Self::with(false, |_| {})
    }

    /// With changed settings.
    pub fn with(tls: bool, change: impl FnOnce(&mut ListenerConfig)) -> Self {
        let ca = CertificateAuthority::create("test-ca", validity()).unwrap();
        let pair = ca
            .issue_server("server", &["localhost"], &["127.0.0.1".parse().unwrap()], validity())
            .unwrap();
        let set = ServingCertificates::new(&pair).unwrap();
        let state = Arc::new(TlsState::new(set, &TlsSettings::default()).unwrap());
        let mut config = ListenerConfig::new("127.0.0.1:0".parse().unwrap(), tls.then(|| Arc::clone(&state)));
        config.workers = 2;
        change(&mut config);
        let (seen, news) = (Arc::new(Seen::default()), Arc::new(tokio::sync::Notify::new()));
        let data = (web::Data::from(Arc::clone(&seen)), web::Data::from(Arc::clone(&news)));
        let application = move || {
            App::new()
                .app_data(data.0.clone())
                .app_data(data.1.clone())
                .app_data(web::PayloadConfig::new(64 << 20))
                .route("/who", web::get().to(who))
                .route(
                    "/fixed",
                    web::route().to(|| async { HttpResponse::Ok().body(vec![b'x'; 1024]) }),
                )
                .route("/echo", web::post().to(echo))
                .route("/hang", web::get().to(hang))
                .route("/watch", web::get().to(watch))
                .route("/endless", web::get().to(endless))
                .route("/broken/{how}", web::get().to(broken))
                .route("/panics", web::get().to(panics))
                .route("/sized", web::get().to(sized))
                .route("/close", web::get().to(close))
                .route("/upgrade", web::route().to(upgrade))
                .default_service(web::route().to(head_of))
        };
        let shutdown = Shutdown::new();
        let serving = bind(config).unwrap().serve(application, shutdown.clone()).unwrap();
        let address = serving.local_addr();
        Server {
            serving,
            address,
            shutdown,
            seen,
            news,
            tls: state,
            ca,
        }
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends raw bytes and reads until the server closes.
    pub async fn raw_bytes(&self, sent: &[u8]) -> Vec<u8> {
        let mut stream = self.tcp().await;
        stream.write_all(sent).await.unwrap();
        let mut answer = Vec::new();
        // The server may close while it still has bytes of ours unread, which is a reset.
        let _ = soon(stream.read_to_end(&mut answer)).await;
        answer
    }

    /// As [`Self::raw_bytes`], for answers that are text.
    pub async fn raw(&self, sent: &[u8]) -> String {
        String::from_utf8(self.raw_bytes(sent).await).unwrap()
    }

    /// A TLS connection that offers `alpn` and, if given, a client certificate.
    pub async fn tls(
        &self,
        alpn: &[&str],
        client: Option<&CertifiedKeyPem>,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let mut config = client_config(&self.ca, client, rustls::DEFAULT_VERSIONS);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        self.tls_with(Arc::new(config)).await
    }

    /// A TLS connection as this client makes it.
    pub async fn tls_with(
        &self,
        config: Arc<ClientConfig>,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").unwrap();
        tokio_rustls::TlsConnector::from(config)
            .connect(name, self.tcp().await)
            .await
    }

    /// An HTTP/2 client over TLS.
    pub async fn http2(&self) -> Http2 {
        self.http2_as(None).await
    }

    pub async fn http2_as(&self, client: Option<&CertifiedKeyPem>) -> Http2 {
        Http2::over(self.tls(&["h2"], client).await.unwrap()).await
    }

    /// An HTTP/1.1 client over TLS.
    pub async fn http1(&self) -> http1::SendRequest<Full<Bytes>> {
        let stream = self.tls(&["http/1.1"], None).await.unwrap();
        let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        client
    }
}

/// A client that trusts `ca` and, if given, shows a certificate.
pub fn client_config(
    ca: &CertificateAuthority,
    client: Option<&CertifiedKeyPem>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(certificates(&ca.pem().certificate_pem).unwrap().remove(0))
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap();
    let builder = builder.with_root_certificates(roots);
    match client {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
            builder
                .with_client_auth_cert(certificates(&pair.certificate_pem).unwrap(), key)
                .unwrap()
        }
    }
}

/// An HTTP/2 client on one connection.
#[derive(Clone)]
pub struct Http2 {
    pub client: http2::SendRequest<Full<Bytes>>,
    /// Ends with the connection.
    pub driver: Arc<tokio::task::JoinHandle<hyper::Result<()>>>,
}

impl Http2 {
    pub async fn over<T>(stream: T) -> Self
    where
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_max_send_streams(None).max_header_list_size(16 << 20);
        let (client, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        Http2 {
            client,
            driver: Arc::new(tokio::spawn(connection)),
        }
    }

    pub async fn get(&mut self, path: &str) -> hyper::Result<http::Response<hyper::body::Incoming>> {
        soon(self.client.send_request(get(path))).await
    }
}

/// A GET request.
pub fn get(path: &str) -> http::Request<Full<Bytes>> {
    http::Request::get(format!("https://localhost{path}"))
        .header("host", "localhost")
        .body(Full::default())
        .unwrap()
}

/// The whole body as text.
pub async fn text(answer: http::Response<hyper::body::Incoming>) -> String {
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The next piece of a body that is not empty.
pub async fn next(body: &mut hyper::body::Incoming) -> Option<hyper::Result<Bytes>> {
    loop {
        match soon(body.frame()).await?.map(|frame| frame.into_data().unwrap()) {
            Ok(piece) if piece.is_empty() => {}
            piece => return Some(piece),
        }
    }
}

pub fn limits(change: impl FnOnce(&mut Limits)) -> impl FnOnce(&mut ListenerConfig) {
    move |config| change(&mut config.limits)
}
