//! Asks a neighbour whether it is well.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::dial;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 4096;

/// What `/healthz` of the component at this port of this machine says; `Ok` if it is well. Both texts are for people.
pub async fn health(port: u16) -> Result<String, String> {
    let authority = format!("127.0.0.1:{port}");
    let failed = |why: String| format!("Get \"https://{authority}/healthz\": {why}");
    match tokio::time::timeout(TIMEOUT, ask(&authority)).await {
        Ok(Ok((200, body))) => Ok(body),
        Ok(Ok((_, body))) => Err(body),
        Ok(Err(why)) => Err(failed(why)),
        Err(_) => Err(failed("context deadline exceeded".to_owned())),
    }
}

/// Status code and body of `/healthz`. The neighbours make their own certificates, so that there is nothing to check
/// these with, and nothing that is told to them or believed of them but this.
async fn ask(authority: &str) -> Result<(u16, String), String> {
    let text = |e: &dyn Display| e.to_string();
    let stream = dial(authority).await?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| text(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let host = ServerName::try_from("localhost").map_err(|e| text(&e))?;
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(host, stream).await.map_err(|e| text(&e))?;
    let request = format!("GET /healthz HTTP/1.0\r\nHost: {authority}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| text(&e))?;
    let mut answer = Vec::new();
    stream
        .take(MAX_ANSWER_BYTES)
        .read_to_end(&mut answer)
        .await
        .map_err(|e| text(&e))?;
    parse(&answer).ok_or_else(|| "malformed HTTP response".to_owned())
}

fn parse(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, body.to_owned()))
}

/// Takes any certificate, as long as its key signs the handshake.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        assert_eq!(
            parse(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\nok"),
            Some((200, "ok".to_owned()))
        );
        assert_eq!(parse(b"HTTP/1.0 500 No\r\n\r\nbad"), Some((500, "bad".to_owned())));
        assert_eq!(parse(b"HTTP/1.0"), None);
    }

    #[tokio::test]
    async fn a_neighbour_that_is_away_is_named() {
        // The port of a listener that is gone: nobody else has it.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        assert_eq!(
            health(port).await.unwrap_err(),
            format!("Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused")
        );
    }
}
