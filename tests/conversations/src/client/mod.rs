//! The client: HTTP/1.1 to the server that is examined, with connections that are used again.

mod certificate;
mod connect;
mod trust;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;

pub use certificate::{identity_of, signing_key};
pub use connect::{Address, Connector};

use crate::fault::Fault;

/// An answer is given up after this time. Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// A connection that was idle for longer is not used again: the server may be about to close it.
const IDLE: Duration = Duration::from_secs(5);

/// A request; headers in the spelling of the case.
#[derive(Debug, Clone, Default)]
pub struct Sent {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// An answer as a whole, decompressed.
#[derive(Debug)]
pub struct Received {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    /// The values of a header, joined.
    pub fn header(&self, name: &str) -> Option<String> {
        let values = self.header_values(name);
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The values of a header, one by one.
    pub fn header_values(&self, name: &str) -> Vec<String> {
        let values = self.headers.get_all(name);
        values.iter().map(|value| latin1(value.as_bytes())).collect()
    }
}

type Sender = SendRequest<Full<Bytes>>;

/// Connections to one server.
pub struct Client {
    pub address: Address,
    connector: Connector,
    idle: Mutex<Vec<(Sender, Instant)>>,
}

impl Client {
    pub fn new(address: Address, connector: Connector) -> Client {
        Client {
            address,
            connector,
            idle: Mutex::default(),
        }
    }

    /// Sends a request and reads the answer; with the certificate at `certificate` (`.crt`, `.key`) if there is one.
    pub async fn send(&self, sent: &Sent, certificate: Option<&Path>) -> Result<Received, Fault> {
        let exchange = self.exchange(sent, certificate);
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .unwrap_or_else(|_| Err(Fault::transport("no answer in time")))
    }

    /// Sends a request on a connection of its own; the body is still to be read.
    pub async fn open(&self, sent: &Sent) -> Result<Response<Incoming>, Fault> {
        let request = self.request(sent)?;
        let mut sender = self.connector.connect(&self.address, None).await?;
        sender.send_request(request).await.map_err(Fault::transport)
    }

    async fn exchange(&self, sent: &Sent, certificate: Option<&Path>) -> Result<Received, Fault> {
        let mut request = self.request(sent)?;
        while let Some(mut sender) = self.reused().filter(|_| certificate.is_none()) {
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => return self.receive(response, sender, true).await,
                // Closed before the request was on its way.
                Err(mut error) => match error.take_message() {
                    Some(message) => request = message,
                    None => return Err(Fault::transport(error.into_error())),
                },
            }
        }
        let mut sender = self.connector.connect(&self.address, certificate).await?;
        let response = sender.send_request(request).await.map_err(Fault::transport)?;
        self.receive(response, sender, certificate.is_none()).await
    }

    async fn receive(&self, response: Response<Incoming>, sender: Sender, keep: bool) -> Result<Received, Fault> {
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Fault::transport)?.to_bytes();
        if keep && !sender.is_closed() {
            self.lock().push((sender, Instant::now()));
        }
        let compressed = head
            .headers
            .get("content-encoding")
            .is_some_and(|value| value == "gzip")
            && !body.is_empty();
        let body = if compressed { decompressed(&body)? } else { body };
        Ok(Received {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }

    fn reused(&self) -> Option<Sender> {
        let mut idle = self.lock();
        idle.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE);
        idle.pop().map(|(sender, _)| sender)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Sender, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, sent: &Sent) -> Result<Request<Full<Bytes>>, Fault> {
        let uri: Uri = sent.path.parse().map_err(Fault::unusable)?;
        let method = Method::from_bytes(sent.method.as_bytes()).map_err(Fault::unusable)?;
        let body = Full::new(Bytes::from(sent.body.clone().unwrap_or_default()));
        let mut request = Request::new(body);
        *request.uri_mut() = uri;
        *request.method_mut() = method;
        let host = HeaderValue::from_str(&self.address.to_string()).map_err(Fault::unusable)?;
        request.headers_mut().insert("host", host);
        for (name, value) in &sent.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(Fault::unusable)?;
            request.headers_mut().append(name, header_value(value)?);
        }
        Ok(request)
    }
}

/// The headers of a request, with those that are usual unless the case has them, in the spelling of either.
pub fn with_usual(usual: &[(&str, String)], own: Vec<(String, Vec<String>)>) -> Vec<(String, String)> {
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in usual {
        headers.insert((*name).to_owned(), vec![value.clone()]);
    }
    headers.extend(own);
    let each = |(name, values): (String, Vec<String>)| values.into_iter().map(move |value| (name.clone(), value));
    headers.into_iter().flat_map(each).collect()
}

/// Headers are bytes: every character below U+0100 is one.
fn header_value(text: &str) -> Result<HeaderValue, Fault> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    let bytes = bytes.ok_or_else(|| Fault::unusable(format!("header {text:?}: characters beyond a byte")))?;
    HeaderValue::from_bytes(&bytes).map_err(Fault::unusable)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn decompressed(body: &[u8]) -> Result<Bytes, Fault> {
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(body), &mut plain).map_err(Fault::transport)?;
    Ok(plain.into())
}
