//! Health probes of components on this machine.

use std::time::Duration;

use super::{Call, CallError, Client, ClientSettings, ClientTls, TlsConfigError};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 4096;

/// Why a component is not known to be well.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProbeError {
    /// It can't be asked.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// It does not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It is not well; what it says, for people.
    #[error("{0}")]
    Ill(String),
}

/// What `/healthz` of the component at this port of this machine says; a text for people.
///
/// The neighbours make their own certificates, so that there is nothing to check these with, and nothing that is told
/// to them or believed of them but this.
///
/// # Errors
/// It is not well, or does not answer.
pub async fn health(port: u16) -> Result<String, ProbeError> {
    let client = Client::new(ClientSettings {
        tls: ClientTls {
            insecure: true,
            ..ClientTls::default()
        },
        timeout: TIMEOUT,
        max_answer_bytes: MAX_ANSWER_BYTES,
        ..ClientSettings::default()
    });
    let client = client?;
    let call = Call::get(format!("https://127.0.0.1:{port}/healthz"));
    let answer = client.call(&call).await?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.status {
        200 => Ok(text),
        _ => Err(ProbeError::Ill(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stub::{Reply, Stub};
    use super::*;

    #[tokio::test]
    async fn a_neighbour_is_believed_whatever_its_certificate() {
        let well = Stub::https(|_| Reply::new(200, "ok")).await;
        assert_eq!(health(well.port()).await.as_deref(), Ok("ok"));
        let ill = Stub::https(|_| Reply::new(500, "bad")).await;
        assert_eq!(health(ill.port()).await, Err(ProbeError::Ill("bad".to_owned())));
    }

    #[tokio::test]
    async fn a_neighbour_that_is_away_is_named() {
        // The port of a listener that is gone: nobody else has it.
        let port = super::super::stub::vacant_port();
        assert_eq!(
            health(port).await.unwrap_err().to_string(),
            format!("Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused")
        );
    }
}
