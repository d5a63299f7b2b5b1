//! A server that the configuration names, asked with documents in JSON.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::ACCEPT;
use keelson_base::env::SystemEntropy;
use keelson_machinery::env::Entropy;
use keelson_machinery::time;
use tokio::time::Instant;

use super::backoff::retry_after;
use super::{Answer, Backoff, Call, CallError, Client, Dialer, Fault, Kubeconfig, KubeconfigError, refusal};

/// How often a call is made again because the other side says when, as with Go's clients.
const MAX_ASKED_REPEATS: u32 = 10;

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

    /// The server of a kubeconfig file's current context, on this way. `timeout` is for one call; those that follow
    /// have as much again.
    ///
    /// # Errors
    /// The file, or one that it names, cannot be used.
    pub fn from_kubeconfig(
        path: &Path,
        dialer: &Dialer,
        timeout: Duration,
        backoff: Backoff,
    ) -> Result<Webhook, KubeconfigError> {
        let mut file = Kubeconfig::read(path)?;
        file.client.dialer = dialer.clone();
        Webhook::of(file, timeout, backoff)
    }

    /// The server that a kubeconfig names. It is told how long the call may take, as Go's clients tell it.
    ///
    /// # Errors
    /// Certificates or keys that can't be used.
    pub fn of(mut file: Kubeconfig, timeout: Duration, backoff: Backoff) -> Result<Webhook, KubeconfigError> {
        file.client.timeout = timeout;
        let client = Client::new(file.client)?;
        let nanos = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        let mark = if file.server.contains('?') { '&' } else { '?' };
        let url = format!("{}{mark}timeout={}", file.server, time::Duration::from_nanos(nanos));
        Ok(Webhook::new(client, url, backoff))
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
        self.ask(document).await.map(|answer| answer.body)
    }

    /// The same, with the head of the answer, which is a success.
    ///
    /// # Errors
    /// The last failure.
    pub async fn ask(&self, document: impl Into<Bytes>) -> Result<Answer, WebhookError> {
        let call = Call::post(&self.url, "application/json", document)
            .header(ACCEPT, HeaderValue::from_static("application/json, */*"));
        let mut failed = 0;
        loop {
            let error = match self.attempt(&call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = self.backoff.wait(failed, chance());
            let Some(wait) = wait.filter(|_| error.is_transient()) else {
                return Err(error);
            };
            tracing::warn!(url = self.url, %error, "a webhook failed; it is called again");
            tokio::time::sleep(wait).await;
            failed += 1;
        }
    }

    /// One call, which is made again within its time while the other side says when.
    async fn attempt(&self, call: &Call) -> Result<Answer, WebhookError> {
        let begin = Instant::now();
        let mut repeated = 0;
        loop {
            let left = self.client.timeout().saturating_sub(begin.elapsed());
            let answer = self.client.call(&call.clone().timeout(left)).await?;
            if answer.is_success() {
                return Ok(answer);
            }
            let asked = retry_after(&answer.headers).filter(|_| answer.status == 429 || answer.status >= 500);
            let Some(wait) = asked.filter(|_| repeated < MAX_ASKED_REPEATS) else {
                return Err(refused(&answer));
            };
            let left = self.client.timeout().saturating_sub(begin.elapsed());
            tokio::time::sleep(wait.min(left)).await;
            repeated += 1;
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
