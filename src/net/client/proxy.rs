//! Connections through a proxy that is asked for them (`CONNECT`), over TCP, TLS or a socket of this machine.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::Dialer;
use super::error::Fault;
use super::stream::Stream;
use super::target::{Origin, Target};
use super::tls::{ClientTls, Connector};

/// Bytes of the proxy's answer.
const MAX_ANSWER_BYTES: usize = 8 * 1024;
/// How long the proxy may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where a proxy is.
enum Place {
    Tcp(Origin, Option<Box<Connector>>),
    Unix(PathBuf),
}

/// A proxy, which finds the addresses of names itself.
pub struct Proxy {
    place: Place,
}

impl Proxy {
    /// The proxy at `http://host:port`, or at `https://host:port` with certificates.
    ///
    /// # Errors
    /// No such address; certificates that can't be used.
    pub fn tcp(url: &str, tls: Option<&ClientTls>) -> Result<Proxy, String> {
        let origin = Target::parse(url)?.origin;
        let connector = match tls {
            Some(tls) => Some(Box::new(Connector::new(tls).map_err(|error| error.to_string())?)),
            None => None,
        };
        Ok(Proxy {
            place: Place::Tcp(origin, connector),
        })
    }

    /// The proxy at a socket of this machine.
    pub fn unix(path: impl Into<PathBuf>) -> Proxy {
        Proxy {
            place: Place::Unix(path.into()),
        }
    }

    fn name(&self) -> String {
        match &self.place {
            Place::Tcp(origin, _) => origin.authority.clone(),
            Place::Unix(path) => path.display().to_string(),
        }
    }

    /// A connection to `host:port` from there.
    ///
    /// # Errors
    /// What Go says about it.
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, String> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let authority = format!("{host}:{port}");
        match tokio::time::timeout(TIMEOUT, self.ask(&authority)).await {
            Ok(connected) => connected,
            Err(_) => Err(format!(
                "proxy error from {} while dialing {authority}: i/o timeout",
                self.name()
            )),
        }
    }

    async fn ask(&self, authority: &str) -> Result<Box<dyn Stream>, String> {
        let name = self.name();
        let failed = |why: String| format!("dialing proxy {name:?} failed: {why}");
        let mut stream: Box<dyn Stream> = match &self.place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                Box::new(stream.map_err(|error| failed(error.to_string()))?)
            }
            Place::Tcp(origin, connector) => {
                let direct = Dialer::default().direct(&origin.host, origin.port).await;
                let stream = direct.map_err(failed)?;
                match connector {
                    None => Box::new(stream),
                    Some(connector) => {
                        let secured = connector.connect(&origin.host, stream).await;
                        Box::new(secured.map_err(|fault: Fault| failed(fault.to_string()))?)
                    }
                }
            }
        };
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        let wrong = |why: String| format!("proxy error from {name} while dialing {authority}: {why}");
        let written = stream.write_all(request.as_bytes()).await;
        written.map_err(|error| failed(error.to_string()))?;
        stream.flush().await.map_err(|error| failed(error.to_string()))?;
        match answer(&mut stream).await.map_err(wrong)?.as_str() {
            "200" => Ok(stream),
            code => Err(wrong(format!("code {code}"))),
        }
    }
}

/// The code of the proxy's answer. Not a byte behind it is read: that belongs to the one behind the proxy.
async fn answer(stream: &mut Box<dyn Stream>) -> Result<String, String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_ANSWER_BYTES {
            return Err(format!("the answer is larger than {MAX_ANSWER_BYTES} bytes"));
        }
        head.push(stream.read_u8().await.map_err(|error| error.to_string())?);
    }
    let text = String::from_utf8_lossy(&head);
    let mut words = text.split(' ');
    match (words.next(), words.next()) {
        (Some(version), Some(code)) if version.starts_with("HTTP/1.") => Ok(code.trim().to_owned()),
        _ => Err("malformed HTTP response".to_owned()),
    }
}
