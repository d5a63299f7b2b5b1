//! A server that the configuration names, asked with documents in JSON.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::ACCEPT;
use keelson_machinery::env::Entropy;

use super::backoff::retry_after;
use super::{Answer, Backoff, Call, CallError, Client, Fault, Kubeconfig, KubeconfigError, refusal};
use crate::env::SystemEntropy;

/// Why a webhook has no answer for the one who asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// There was no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The answer is no success: its code, and what it says.
    #[error("{text}")]
    Refused { status: u16, text: String },
}

impl WebhookError {
    /// Whether the same call may succeed a moment later: the other side is overloaded or broke down, or the connection
    /// did.
    pub fn is_transient(&self) -> bool {
        match self {
            WebhookError::Call(error) => error.fault.is_connection(),
            WebhookError::Refused { status, .. } => matches!(status, 429 | 500 | 504),
        }
    }
}

/// A client for one address. A clone is the same webhook.
#[derive(Clone)]
pub struct Webhook {
    client: Client,
    url: String,
    backoff: Backoff,
}

impl Webhook {
    pub fn new(client: Client, url: impl Into<String>, backoff: Backoff) -> Webhook {
        Webhook {
            client,
            url: url.into(),
            backoff,
        }
    }

    /// The server of a kubeconfig file's current context. `timeout` is for one call; those that follow have as much
    /// again.
    ///
    /// # Errors
    /// The file, or one that it names, cannot be used.
    pub fn from_kubeconfig(path: &Path, timeout: Duration, backoff: Backoff) -> Result<Webhook, KubeconfigError> {
        let mut file = Kubeconfig::read(path)?;
        file.client.timeout = timeout;
        let client = Client::new(file.client)?;
        Ok(Webhook::new(client, file.server, backoff))
    }

    /// Tells the other side in the query how long an answer may take, as clients of kube-apiserver do.
    #[must_use]
    pub fn asking_with_timeout(mut self, timeout: Duration) -> Webhook {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        self.url = format!("{}{separator}timeout={}s", self.url, timeout.as_secs());
        self
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends the document and returns the document that comes back. Failures that may pass are tried again; who wants
    /// to bound the whole puts a timeout around this.
    ///
    /// # Errors
    /// The last failure.
    pub async fn post(&self, document: impl Into<Bytes>) -> Result<Bytes, WebhookError> {
        let call = Call::post(&self.url, "application/json", document)
            .header(ACCEPT, HeaderValue::from_static("application/json, */*"));
        let mut failed = 0;
        loop {
            let (error, asked) = match self.client.call(&call).await {
                Ok(answer) if answer.is_success() => return Ok(answer.body),
                Ok(answer) => (refused(&answer), retry_after(&answer.headers)),
                Err(error) => (WebhookError::Call(error), None),
            };
            let wait = self.backoff.wait(failed, chance());
            let Some(wait) = wait.filter(|_| error.is_transient()) else {
                return Err(error);
            };
            tracing::warn!(url = self.url, %error, "a webhook failed; it is called again");
            tokio::time::sleep(asked.map_or(wait, |asked| asked.max(wait))).await;
            failed += 1;
        }
    }
}

fn refused(answer: &Answer) -> WebhookError {
    WebhookError::Refused {
        status: answer.status,
        text: refusal(answer),
    }
}

/// From 0 to 1.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    SystemEntropy.fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

impl WebhookError {
    /// Whether the time was up.
    pub fn is_deadline(&self) -> bool {
        matches!(self, WebhookError::Call(error) if error.fault == Fault::Deadline)
    }
}
