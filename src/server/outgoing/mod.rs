//! Connections outwards.

mod probe;

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::TcpStream;

pub use probe::health;

/// How long a connection may take to come about.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a connection. The error is what Go says about it: `dial tcp 127.0.0.1:10250: connect: connection refused`.
pub async fn dial(authority: &str) -> Result<TcpStream, String> {
    let why = match tokio::time::timeout(TIMEOUT, TcpStream::connect(authority)).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) => match error.kind() {
            ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
            ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
            _ => error.to_string(),
        },
        Err(_) => "i/o timeout".to_owned(),
    };
    Err(format!("dial tcp {authority}: {why}"))
}
