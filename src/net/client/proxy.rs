//! Connections through a proxy that is asked for them (`CONNECT`), over TCP, TLS or a socket of this machine.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::dial::{DialError, Dialer};
use super::error::Fault;
use super::stream::Stream;
use super::target::{Origin, Target, TargetError};
use super::tls::{ClientTls, Connector, TlsConfigError};

/// Bytes of the proxy's answer.
const MAX_ANSWER_BYTES: usize = 8 * 1024;
/// How long the proxy may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where a proxy is.
enum Place {
    Tcp(Origin, Option<Box<Connector>>),
    Unix(PathBuf),
}

/// A proxy that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Its address is none.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Its certificates are none.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
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
    pub fn tcp(url: &str, tls: Option<&ClientTls>) -> Result<Proxy, ProxyError> {
        let origin = Target::parse(url)?.origin;
        let connector = match tls {
            Some(tls) => Some(Box::new(Connector::new(tls)?)),
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
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, DialError> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let authority = format!("{host}:{port}");
        match tokio::time::timeout(TIMEOUT, self.ask(&authority)).await {
            Ok(connected) => connected,
            Err(_) => Err(DialError::Proxy {
                proxy: self.name(),
                authority,
                reason: "i/o timeout".to_owned(),
            }),
        }
    }

    async fn ask(&self, authority: &str) -> Result<Box<dyn Stream>, DialError> {
        let name = self.name();
        let failed = |reason: String| DialError::ProxyDial {
            proxy: name.clone(),
            reason,
        };
        let mut stream: Box<dyn Stream> = match &self.place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                Box::new(stream.map_err(|error| failed(error.to_string()))?)
            }
            Place::Tcp(origin, connector) => {
                let direct = Dialer::default().direct(&origin.host, origin.port).await;
                let stream = direct.map_err(|error| failed(error.to_string()))?;
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
        let wrong = |reason: String| DialError::Proxy {
            proxy: name.clone(),
            authority: authority.to_owned(),
            reason,
        };
        let written = stream.write_all(request.as_bytes()).await;
        written.map_err(|error| failed(error.to_string()))?;
        stream.flush().await.map_err(|error| failed(error.to_string()))?;
        let answer = answer(&mut stream).await;
        match answer.map_err(|error| wrong(error.to_string()))?.as_str() {
            "200" => Ok(stream),
            code => Err(wrong(format!("code {code}"))),
        }
    }
}

/// An answer of a proxy that says nothing.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error("the answer is larger than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
    #[error("malformed HTTP response")]
    Malformed,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The code of the proxy's answer. Not a byte behind it is read: that belongs to the one behind the proxy.
async fn answer(stream: &mut Box<dyn Stream>) -> Result<String, AnswerError> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_ANSWER_BYTES {
            return Err(AnswerError::TooLarge);
        }
        head.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head);
    let mut words = text.split(' ');
    match (words.next(), words.next()) {
        (Some(version), Some(code)) if version.starts_with("HTTP/1.") => Ok(code.trim().to_owned()),
        _ => Err(AnswerError::Malformed),
    }
}
