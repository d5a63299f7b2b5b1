//! The thread of a service: asks how the service is, has seeds encrypted when its key changes, and decrypted when they
//! are met.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::call::Client;
use super::message::{DecryptRequest, EncryptRequest, StatusResponse};
use super::seeds::{Key, Question, SeedError};
use super::service::{Sealing, Shared};
use super::stored::{StoredError, check_answer, check_key_id};
use crate::encryption::seeded::{SEED, Seeded};
use crate::encryption::transformer::random;
use crate::encryption::{Kms, Secret, TransformError};

/// How often a healthy service is asked for its key.
const HEALTHY: Duration = Duration::from_secs(60);
/// How often one is asked that is not.
const FAILING: Duration = Duration::from_secs(10);
/// A seed is used so long after the service has last confirmed its key.
pub(super) const LIFETIME: Duration = Duration::from_secs(3 * 60);

pub(super) enum Command {
    /// Decrypt a seed, or a key: `make` says what decrypts with it.
    Decrypt {
        request: DecryptRequest,
        question: Question,
        make: fn(Secret) -> Key,
    },
    /// Look how the service is.
    Look { answer: oneshot::Sender<()> },
}

pub(super) struct Keeper {
    pub kms: Kms,
    pub shared: Arc<Shared>,
    pub commands: mpsc::Receiver<Command>,
}

/// What is wrong with a service, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ServiceError {
    /// It was not asked yet.
    #[error("KMS Provider {0} has not answered yet")]
    Unasked(String),
    /// It does not say how it is.
    #[error("failed to perform status section of the healthz check for KMS Provider {name}, error: {reason}")]
    Status { name: String, reason: String },
    /// It says that it is not well, or nothing that could be used.
    #[error("kmsv2 Provider {name} is not healthy, error: {reason}")]
    Unhealthy { name: String, reason: String },
    /// It does not encrypt a seed.
    #[error("failed to generate envelope transformer: failed to encrypt DEK, error: {0}")]
    Seed(String),
}

/// A status that no healthy service has.
#[derive(Debug, thiserror::Error)]
enum StatusError {
    #[error("got unexpected healthz status: {0}")]
    Healthz(String),
    #[error("expected KMSv2 API version v2, got {0}")]
    Version(String),
    #[error("got invalid KMSv2 KeyID: {0}")]
    KeyId(#[from] StoredError),
}

impl Keeper {
    /// Returns when nobody can command any more.
    pub async fn run(mut self) {
        let client = Client::new(&self.kms);
        let mut next = Instant::now();
        loop {
            let command = tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    None => return,
                    command => command,
                },
                () = sleep_until(next) => None,
            };
            match command {
                Some(Command::Decrypt {
                    request,
                    question,
                    make,
                }) => {
                    // Beside the others: one that the service does not answer holds up none of them.
                    let client = client.clone();
                    tokio::spawn(async move {
                        let decrypted = client.decrypt(request).await;
                        let decrypted = decrypted.map(|answer| make(Secret::new(answer.plaintext)));
                        question.answer(decrypted.map_err(SeedError::Call));
                    });
                }
                Some(Command::Look { answer }) => {
                    next = self.look(&client).await;
                    let _ = answer.send(());
                }
                None => next = self.look(&client).await,
            }
        }
    }

    /// When to look again.
    async fn look(&self, client: &Client) -> Instant {
        let outcome = self.try_look(client).await;
        let pause = if outcome.is_ok() { HEALTHY } else { FAILING };
        self.shared.set_health(outcome);
        Instant::now() + pause
    }

    async fn try_look(&self, client: &Client) -> Result<(), ServiceError> {
        let name = || self.kms.name.clone();
        let status = client.status().await.map_err(|error| ServiceError::Status {
            name: name(),
            reason: error.to_string(),
        })?;
        check_status(&status).map_err(|error| ServiceError::Unhealthy {
            name: name(),
            reason: error.to_string(),
        })?;
        let sealing = self.shared.sealing();
        if sealing.is_some_and(|sealing| sealing.key_id == status.key_id) {
            self.shared.confirm_key();
            return Ok(());
        }
        let sealing = new_seed(client).await?;
        tracing::info!(
            provider = self.kms.name,
            "a new seed is used, under the key that the KMS has now"
        );
        self.shared.set_sealing(sealing);
        Ok(())
    }
}

fn check_status(status: &StatusResponse) -> Result<(), StatusError> {
    if status.healthz != "ok" {
        return Err(StatusError::Healthz(status.healthz.clone()));
    }
    if !matches!(status.version.as_str(), "v2" | "v2beta1") {
        return Err(StatusError::Version(status.version.clone()));
    }
    Ok(check_key_id(&status.key_id)?)
}

async fn new_seed(client: &Client) -> Result<Sealing, ServiceError> {
    fn failed(error: impl std::error::Error) -> ServiceError {
        ServiceError::Seed(error.to_string())
    }
    let mut seed = vec![0; SEED];
    random(&mut seed).map_err(failed)?;
    let uid = new_uid().map_err(failed)?;
    let plaintext = seed.clone();
    let seed = Secret::new(seed);
    let request = EncryptRequest { plaintext, uid };
    let answer = client.encrypt(request).await.map_err(failed)?;
    check_answer(&answer).map_err(failed)?;
    Ok(Sealing {
        seeded: Arc::new(Seeded::new(&seed)),
        key_id: answer.key_id,
        source: answer.ciphertext,
        annotations: answer.annotations,
    })
}

/// A random UUID, by which a service's log knows a call.
pub(super) fn new_uid() -> Result<String, TransformError> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    // version 4, variant 1
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
