//! One connection: TLS, the choice of protocol, its requests, its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use actix_http::Request;
use actix_http::body::{BoxBody, EitherBody, MessageBody};
use actix_service::Service;
use futures_util::FutureExt;
use http::header::UPGRADE;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::accept::{Accepted, Admission};
use super::connection::Activity;
use super::prefixed::Prefixed;
use super::response::{self, AnswerBody, Asked};
use super::{Connection, Goaway, Limits, ListenerConfig, Shutdown, Upgrade, request};
use crate::tls::TlsState;

/// The answer to plain HTTP on a TLS port, as Go's server gives it.
const HTTP_ON_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// The answer when a handler panics, as kube-apiserver gives it.
const PANICKED: &str = "This request caused apiserver to panic. Look in the logs for details.\n";

/// What all connections of a listener share.
pub(super) struct Context {
    pub(super) limits: Limits,
    pub(super) shutdown: Shutdown,
    tls: Option<Arc<TlsState>>,
    goaway: Option<Goaway>,
}

impl Context {
    pub(super) fn new(config: &ListenerConfig, shutdown: Shutdown) -> Self {
        Context {
            limits: config.limits.clone(),
            shutdown,
            tls: config.tls.clone(),
            goaway: config.goaway.clone(),
        }
    }
}

/// Serves one connection to its end. Errors of clients are theirs and only worth a debug line.
pub(super) async fn connection<S, B>(accepted: Accepted, service: Rc<S>, context: Arc<Context>)
where
    S: Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    let peer = accepted.peer;
    if let Err(error) = greet(accepted, service, context).await {
        tracing::debug!(%peer, error, "connection ended");
    }
}

type ServeError = Box<dyn std::error::Error>;

/// Finds out who is there and what they speak, within the handshake's time.
async fn greet<S, B>(accepted: Accepted, service: Rc<S>, context: Arc<Context>) -> Result<(), ServeError>
where
    S: Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    let Accepted {
        stream,
        peer,
        admission,
    } = accepted;
    let stream = TcpStream::from_std(stream)?;
    let mut connection = Connection::plain(peer, stream.local_addr()?);
    let limit = context.limits.handshake_timeout;
    let share = |connection| Conversation {
        service,
        connection: Rc::new(connection),
        activity: Rc::new(Activity::new()),
        admission: Arc::new(admission),
        context: Arc::clone(&context),
        body: PhantomData,
    };
    match &context.tls {
        None => {
            let (stream, http2) = timeout(limit, Prefixed::detect_http2(stream)).await??;
            connection.http2 = http2;
            share(connection).converse(stream).await
        }
        Some(tls) => {
            let Some(stream) = timeout(limit, handshake(stream, tls)).await?? else {
                return Ok(());
            };
            connection.learn(stream.get_ref().1);
            share(connection).converse(stream).await
        }
    }
}

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// `None`: the client spoke plain HTTP and was told.
async fn handshake(mut stream: TcpStream, tls: &TlsState) -> io::Result<Option<TlsStream>> {
    let mut first = [0; 5];
    let seen = stream.peek(&mut first).await?;
    if looks_like_http(&first[..seen]) {
        stream.write_all(HTTP_ON_TLS).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    tls.acceptor().accept(stream).await.map(Some)
}

fn looks_like_http(first: &[u8]) -> bool {
    matches!(first, b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO")
}

impl Connection {
    fn plain(peer: SocketAddr, local: SocketAddr) -> Self {
        Connection {
            peer,
            local,
            tls: false,
            http2: false,
            server_name: None,
            certificates: Vec::new(),
            memory: Default::default(),
        }
    }

    fn learn(&mut self, tls: &rustls::ServerConnection) {
        self.tls = true;
        self.http2 = tls.alpn_protocol() == Some(crate::tls::ALPN_HTTP2);
        self.server_name = tls.server_name().map(str::to_owned);
        self.certificates = tls
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .cloned()
            .map(CertificateDer::into_owned)
            .collect();
    }
}

/// Runs handlers' tasks on the worker's own thread.
#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

/// A hyper connection that can be asked to end in an orderly way.
trait Conversing: Future<Output = hyper::Result<()>> {
    fn end(self: Pin<&mut Self>);
}

impl<T, S, B> Conversing for http1::UpgradeableConnection<T, S>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    S: hyper::service::HttpService<Incoming, ResBody = B, Error = Infallible>,
    B: http_body::Body + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<T, S, B> Conversing for http2::Connection<T, S, OnThisThread>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: hyper::service::HttpService<Incoming, ResBody = B, Error = Infallible>,
    S::Future: 'static,
    B: http_body::Body + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// A client with its connection: what each of its requests needs.
struct Conversation<S, B> {
    service: Rc<S>,
    connection: Rc<Connection>,
    activity: Rc<Activity>,
    admission: Arc<Admission>,
    context: Arc<Context>,
    /// The body of the application's answers.
    body: PhantomData<fn() -> B>,
}

impl<S, B> Conversation<S, B>
where
    S: Service<Request> + 'static,
    S::Error: Into<actix_web::Error>,
    S::Response: Into<actix_http::Response<B>>,
    B: MessageBody + 'static,
{
    async fn converse<T>(self, stream: T) -> Result<(), ServeError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let this = Rc::new(self);
        let activity = Rc::clone(&this.activity);
        let context = Arc::clone(&this.context);
        let http2 = this.connection.http2;
        let stream = TokioIo::new(stream);
        let answer = service_fn(move |request| {
            let this = Rc::clone(&this);
            async move { Ok::<_, Infallible>(this.answer(request).await) }
        });
        if http2 {
            let connection = http2_settings(&context.limits).serve_connection(stream, answer);
            Ok(drive(pin!(connection), &activity, &context).await?)
        } else {
            let connection = http1_settings(&context.limits)
                .serve_connection(stream, answer)
                .with_upgrades();
            Ok(drive(pin!(connection), &activity, &context).await?)
        }
    }

    async fn answer(&self, request: http::Request<Incoming>) -> http::Response<AnswerBody<EitherBody<B>>> {
        let under_way = self.activity.begin();
        let asked = Asked {
            head: request.method() == http::Method::HEAD,
            http2: self.connection.http2,
        };
        let request = match self.translate(request) {
            Ok(request) => request,
            Err(error) => {
                tracing::debug!(%error, "refused a request");
                return response::refusal(http::StatusCode::BAD_REQUEST, "400 Bad Request\n", under_way);
            }
        };
        let called = AssertUnwindSafe(self.call(request)).catch_unwind().await;
        let answer = match called {
            Ok(answer) => answer,
            Err(panic) => {
                tracing::error!(panic = response::panic_text(panic.as_ref()), "a handler panicked");
                return response::refusal(http::StatusCode::INTERNAL_SERVER_ERROR, PANICKED, under_way);
            }
        };
        let (answer, close) = response::into_hyper(answer, &asked, under_way);
        let sent_away = asked.http2 && self.context.goaway.as_ref().is_some_and(Goaway::decide);
        if sent_away || (close && asked.http2) {
            self.activity.close();
        }
        answer
    }

    fn translate(&self, mut request: http::Request<Incoming>) -> Result<Request, request::HeadError> {
        let upgrade = self.upgrade(&mut request);
        let (head, body) = request.into_parts();
        let mut request = request::from_hyper(head, body)?;
        request.head_mut().peer_addr = Some(self.connection.peer);
        {
            let mut extensions = actix_web::HttpMessage::extensions_mut(&request);
            extensions.insert(Rc::clone(&self.connection));
            extensions.insert(self.context.shutdown.clone());
            if let Some(upgrade) = upgrade {
                extensions.insert(upgrade);
            }
        }
        Ok(request)
    }

    fn upgrade(&self, request: &mut http::Request<Incoming>) -> Option<Upgrade> {
        if request.version() != http::Version::HTTP_11 {
            return None;
        }
        let protocol = request.headers().get(UPGRADE)?.to_str().ok()?.to_owned();
        let pending = hyper::upgrade::on(request);
        Some(Upgrade {
            protocol,
            pending,
            admission: Arc::clone(&self.admission),
        })
    }

    async fn call(&self, request: Request) -> actix_http::Response<EitherBody<B>> {
        let called = match poll_fn(|cx| self.service.poll_ready(cx)).await {
            Ok(()) => self.service.call(request).await,
            Err(error) => Err(error),
        };
        match called {
            Ok(answer) => answer.into().map_body(|_, body| EitherBody::left(body)),
            Err(error) => {
                let answer: actix_http::Response<BoxBody> = error.into().error_response().into();
                answer.map_body(|_, body| EitherBody::right(body))
            }
        }
    }
}

fn http1_settings(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout)
        .max_headers(limits.max_headers)
        .max_header_size(limits.max_header_bytes)
        // The read buffer must be able to hold the largest head; hyper wants 8 KiB at least.
        .max_buf_size(limits.max_header_bytes.max(8192))
        // Go's servers write `Content-Type`; some scripts look for just that.
        .title_case_headers(true);
    builder
}

fn http2_settings(limits: &Limits) -> http2::Builder<OnThisThread> {
    let mut builder = http2::Builder::new(OnThisThread);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_max_streams)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(limits.http2_max_pending_resets)
        .max_local_error_reset_streams(limits.http2_max_error_resets)
        .initial_stream_window_size(limits.http2_stream_window)
        .initial_connection_window_size(limits.http2_connection_window)
        .max_send_buf_size(limits.http2_max_send_buffer)
        .keep_alive_interval(limits.http2_ping_interval)
        .keep_alive_timeout(limits.http2_ping_timeout);
    builder
}

/// Drives a connection until it ends, and ends it when the server does, an answer says so, or it idles too long.
async fn drive<C: Conversing>(
    mut connection: Pin<&mut C>,
    activity: &Activity,
    context: &Context,
) -> hyper::Result<()> {
    let Limits {
        handshake_timeout,
        idle_timeout,
        ..
    } = context.limits;
    let mut shutdown = pin!(context.shutdown.wait());
    let mut check = pin!(sleep_until(Instant::now() + handshake_timeout));
    let mut ending = false;
    loop {
        let now_ending = tokio::select! {
            biased;
            result = connection.as_mut() => return result,
            () = &mut shutdown, if !ending => true,
            () = activity.closed(), if !ending => true,
            () = &mut check => {
                let now = Instant::now();
                let idle_since = activity.idle_since();
                if idle_since.is_some() && (ending || activity.begun() == 0) {
                    // The first head never came, or the client ignores that we part.
                    return Ok(());
                }
                let due = idle_since.unwrap_or(now) + idle_timeout;
                check.as_mut().reset(due);
                due <= now
            }
        };
        if now_ending && !ending {
            ending = true;
            connection.as_mut().end();
            check.as_mut().reset(Instant::now() + handshake_timeout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_told_from_tls_by_its_first_bytes() {
        for (first, expected) in [
            (b"GET /".as_slice(), true),
            (b"POST ", true),
            (b"\x16\x03\x01\x02\x00", false),
            (b"GET", false),
            (b"", false),
        ] {
            assert_eq!(looks_like_http(first), expected, "{first:?}");
        }
    }
}
