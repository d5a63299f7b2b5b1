//! The client.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::credentials::{Credentials, Header};
use super::dial::Dialer;
use super::error::{self, CallError, Fault};
use super::pool::{Connection, Pool};
use super::sender::Sender;
use super::target::{Origin, Target};
use super::tls::{ClientTls, Connector, TlsConfigError};
use super::{Answer, Call};

/// How long a call may take where nobody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer's body that are read where nobody says otherwise.
pub const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Calls of one client that are under way at once; others wait within their time.
const MAX_CALLS: usize = 512;

/// What a client is like.
#[derive(Clone)]
pub struct ClientSettings {
    pub tls: ClientTls,
    pub credentials: Credentials,
    pub dialer: Dialer,
    /// For a whole call, from the name's resolution to the last byte of the answer.
    pub timeout: Duration,
    /// Larger answers are errors.
    pub max_answer_bytes: usize,
}

impl Default for ClientSettings {
    /// The system's authorities, no credentials, [`TIMEOUT`] and [`MAX_ANSWER_BYTES`].
    fn default() -> Self {
        ClientSettings {
            tls: ClientTls::default(),
            credentials: Credentials::None,
            dialer: Dialer::default(),
            timeout: TIMEOUT,
            max_answer_bytes: MAX_ANSWER_BYTES,
        }
    }
}

/// Sends requests to any server with one set of authorities and credentials. A clone is the same client. May be used
/// from any thread with a tokio runtime.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    connector: Connector,
    header: Header,
    dialer: Dialer,
    timeout: Duration,
    max_answer_bytes: usize,
    pool: Pool,
    permits: Semaphore,
}

impl Client {
    /// # Errors
    /// Certificates or keys that can't be read.
    pub fn new(settings: ClientSettings) -> Result<Client, TlsConfigError> {
        Ok(Client {
            inner: Arc::new(Inner {
                connector: Connector::new(&settings.tls)?,
                header: Header::new(settings.credentials),
                dialer: settings.dialer,
                timeout: settings.timeout,
                max_answer_bytes: settings.max_answer_bytes,
                pool: Pool::default(),
                permits: Semaphore::new(MAX_CALLS),
            }),
        })
    }

    /// Sends the request once and reads the whole answer.
    ///
    /// # Errors
    /// There was no answer, or none that may be read: see [`Fault`].
    pub async fn call(&self, call: &Call) -> Result<Answer, CallError> {
        let failed = |fault| CallError {
            method: capitalized(call.method.as_str()),
            url: call.url.clone(),
            fault,
        };
        let target = Target::parse(&call.url).map_err(|error| failed(Fault::Unusable(error.to_string())))?;
        let timeout = call.timeout.unwrap_or(self.inner.timeout);
        if timeout.is_zero() {
            return Err(failed(Fault::Deadline));
        }
        match tokio::time::timeout(timeout, self.inner.conversation(call, &target)).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(Fault::Deadline)),
        }
    }

    /// How long a call may take that says nothing else.
    pub fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.inner.pool.len()
    }
}

impl Inner {
    async fn conversation(&self, call: &Call, target: &Target) -> Result<Answer, Fault> {
        let _permit = self.permits.acquire().await.map_err(|_| Fault::Closed)?;
        let mut request = self.request(call, target)?;
        let mut reused = self.pool.take(&target.origin);
        loop {
            let was_reused = reused.is_some();
            let mut connection = match reused.take() {
                Some(connection) => connection,
                None => self.connect(&target.origin).await?,
            };
            let response = match connection.sender.send(request).await {
                Ok(response) => response,
                Err(failed) => match failed.unsent {
                    // Nothing of it was sent.
                    Some(unsent) if was_reused => {
                        request = *unsent;
                        continue;
                    }
                    _ => return Err(failed.fault),
                },
            };
            let limit = call.max_answer_bytes.unwrap_or(self.max_answer_bytes);
            let answer = read(response, limit).await?;
            if connection.shared().is_none() {
                self.pool.put(connection);
            }
            return Ok(answer);
        }
    }

    fn request(&self, call: &Call, target: &Target) -> Result<Request<Full<Bytes>>, Fault> {
        let unusable = |why: String| Fault::Unusable(why);
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = target
            .path
            .parse()
            .map_err(|e: http::uri::InvalidUri| unusable(e.to_string()))?;
        let headers = request.headers_mut();
        headers.extend(call.headers.clone());
        let host = HeaderValue::from_str(&target.origin.authority).map_err(|e| unusable(e.to_string()))?;
        headers.insert(HOST, host);
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("keelson/", env!("CARGO_PKG_VERSION"))),
        );
        if !headers.contains_key(ACCEPT) {
            headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        if let Some(value) = self.header.value().map_err(|error| unusable(error.to_string()))? {
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        Ok(request)
    }

    async fn connect(&self, origin: &Origin) -> Result<Connection, Fault> {
        let stream = self
            .dialer
            .connect(&origin.host, origin.port)
            .await
            .map_err(|error| Fault::Dial(error.to_string()))?;
        let sender = match origin.tls {
            true => {
                let stream = self.connector.connect(&origin.host, stream).await?;
                match stream.get_ref().1.alpn_protocol() == Some(crate::tls::ALPN_HTTP2) {
                    true => Sender::http2(stream).await?,
                    false => Sender::http1(stream).await?,
                }
            }
            false => Sender::http1(stream).await?,
        };
        let connection = Connection {
            origin: origin.clone(),
            sender,
            opened: Instant::now(),
        };
        // Others need not wait for the answer.
        if let Some(shared) = connection.shared() {
            self.pool.put(shared);
        }
        Ok(connection)
    }
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Answer, Fault> {
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    if head.status.is_redirection() && head.headers.contains_key(http::header::LOCATION) {
        return Err(Fault::Redirect(status));
    }
    if head.status.is_informational() {
        return Err(Fault::Malformed(format!("unexpected status {status}")));
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Fault::TooLarge(limit));
    }
    let version = head.version;
    let mut bytes = BytesMut::with_capacity(announced.min(64 * 1024));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error::conversation(&error, version))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(Fault::TooLarge(limit));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Answer {
        status,
        headers: head.headers,
        body: bytes.freeze(),
    })
}

/// `POST` → `Post`.
fn capitalized(method: &str) -> String {
    let (first, rest) = method.split_at(method.len().min(1));
    format!("{first}{}", rest.to_lowercase())
}
