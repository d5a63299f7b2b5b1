//! A service as a provider: values are encrypted with a seed that it knows.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use tokio::sync::{mpsc, oneshot};

use super::keeper::{Command, Keeper, LIFETIME, new_uid};
use super::message::{DecryptRequest, EncryptedObject, SOURCE_KEY, SOURCE_SEED};
use super::stored;
use crate::encryption::aes_gcm::AesGcm;
use crate::encryption::seeded::Seeded;
use crate::encryption::{Kms, Opened, TransformError, Transformer};

/// Commands that wait for a service at most; more wait in their callers.
const QUEUE: usize = 64;
/// Seeds in memory at most. Servers make one at each start and for each key.
const SEEDS: usize = 1000;
/// What a health check may say of the past: so old if it is good …
const GOOD_NEWS: Duration = Duration::from_secs(20);
/// … and so old if it is not.
const BAD_NEWS: Duration = Duration::from_secs(3);
/// A seed that could not be decrypted is asked for again after so many times the time that this took, so that a
/// service that does not answer can't hold up everything …
const PATIENCE: u32 = 10;
/// … but after this time at the latest.
const LONGEST_PATIENCE: Duration = Duration::from_secs(30);

/// One key management service. Ends with its last owner.
pub struct Service {
    kms: Kms,
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    seeds: Mutex<Seeds>,
}

/// What new values are encrypted with.
pub(super) struct Sealing {
    pub seeded: Arc<Seeded>,
    pub key_id: String,
    /// The seed as the service has encrypted it.
    pub source: Vec<u8>,
    pub annotations: BTreeMap<String, Vec<u8>>,
}

/// What a service and its thread share.
pub(super) struct Shared {
    state: Mutex<State>,
}

struct State {
    sealing: Option<Arc<Sealing>>,
    /// Until when the seed may be used.
    valid: Instant,
    health: Result<(), String>,
    /// When the service was last asked; `None`: not yet.
    looked: Option<Instant>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn sealing(&self) -> Option<Arc<Sealing>> {
        self.state().sealing.clone()
    }

    pub fn set_sealing(&self, sealing: Sealing) {
        let mut state = self.state();
        state.sealing = Some(Arc::new(sealing));
        state.valid = Instant::now() + LIFETIME;
    }

    /// The service still encrypts with the key that the seed is under.
    pub fn confirm_key(&self) {
        self.state().valid = Instant::now() + LIFETIME;
    }

    pub fn set_health(&self, health: Result<(), String>) {
        let mut state = self.state();
        if let Err(reason) = &health
            && state.health.as_ref() != Err(reason)
        {
            tracing::error!(reason, "a KMS is not healthy");
        }
        state.health = health;
        state.looked = Some(Instant::now());
    }

    /// What is known of the service's health; `None`: nothing that is new enough.
    fn health(&self) -> Option<Result<(), String>> {
        let state = self.state();
        let age = state.looked?.elapsed();
        let fresh = age < if state.health.is_ok() { GOOD_NEWS } else { BAD_NEWS };
        fresh.then(|| state.health.clone())
    }
}

/// Seeds (and keys) that were decrypted, by what is stored of them, and those that could not be.
#[derive(Default)]
struct Seeds {
    known: HashMap<Vec<u8>, Arc<dyn Transformer>>,
    refused: HashMap<Vec<u8>, (Instant, String)>,
}

impl Service {
    /// Begins to ask the service how it is, in a thread that ends with the last owner of what this returns.
    pub fn start(kms: &Kms) -> std::io::Result<Arc<Service>> {
        let (commands, received) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                sealing: None,
                valid: Instant::now(),
                health: Err(format!("KMS Provider {} has not answered yet", kms.name)),
                looked: None,
            }),
        });
        let keeper = Keeper {
            kms: kms.clone(),
            shared: shared.clone(),
            commands: received,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("kms".to_owned())
            .spawn(move || runtime.block_on(keeper.run()))?;
        Ok(Arc::new(Service {
            kms: kms.clone(),
            shared,
            commands,
            seeds: Mutex::default(),
        }))
    }

    /// An error says what is wrong with the service. Asks it unless that is known.
    pub async fn health(&self) -> Result<(), String> {
        if let Some(known) = self.shared.health() {
            return known;
        }
        let (answer, answered) = oneshot::channel();
        if self.commands.send(Command::Look { answer }).await.is_ok() {
            let _ = answered.await;
        }
        self.shared.state().health.clone()
    }

    fn seeds(&self) -> MutexGuard<'_, Seeds> {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What decrypts the data of an object. Asks the service for a seed that is met for the first time, and holds up the
    /// calling thread meanwhile: that is rare, since all values of a server's run share one.
    fn seed(&self, object: &EncryptedObject) -> Result<Arc<dyn Transformer>, TransformError> {
        let sealing = self.shared.sealing();
        if let Some(sealing) = sealing.filter(|sealing| is_own(sealing, object)) {
            return Ok(sealing.seeded.clone());
        }
        let place = place(object);
        // Held while the service is asked, so that it is asked once.
        let mut seeds = self.seeds();
        if let Some(known) = seeds.known.get(&place) {
            return Ok(known.clone());
        }
        if let Some((until, reason)) = seeds.refused.get(&place)
            && Instant::now() < *until
        {
            return Err(TransformError::Kms(reason.clone()));
        }
        let began = Instant::now();
        match self.decrypt(object) {
            Ok(found) => {
                if seeds.known.len() >= SEEDS {
                    seeds.known.clear();
                }
                seeds.refused.remove(&place);
                seeds.known.insert(place, found.clone());
                Ok(found)
            }
            Err(reason) => {
                if seeds.refused.len() >= SEEDS {
                    seeds.refused.clear();
                }
                let until = Instant::now() + (began.elapsed() * PATIENCE).min(LONGEST_PATIENCE);
                seeds.refused.insert(place, (until, reason.clone()));
                Err(TransformError::Kms(reason))
            }
        }
    }

    fn decrypt(&self, object: &EncryptedObject) -> Result<Arc<dyn Transformer>, String> {
        let failed = |reason: &str| format!("failed to decrypt DEK, error: {reason}");
        let request = DecryptRequest {
            ciphertext: object.source.clone(),
            uid: new_uid()?,
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let (answer, answered) = sync_channel(1);
        let sent = self.commands.try_send(Command::Decrypt { request, answer });
        sent.map_err(|_| failed("the KMS is busy"))?;
        // The thread may have to finish a look at the service first.
        let decrypted = answered
            .recv_timeout(3 * self.kms.timeout)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => failed("context deadline exceeded"),
                RecvTimeoutError::Disconnected => failed("the thread of the KMS has ended"),
            })?;
        let secret = decrypted.map_err(|reason| failed(&reason))?;
        Ok(match object.source_type {
            SOURCE_KEY => Arc::new(AesGcm(secret)),
            _ => Arc::new(Seeded::new(&secret)),
        })
    }
}

/// What tells one seed from another.
fn place(object: &EncryptedObject) -> Vec<u8> {
    let object = EncryptedObject {
        data: Bytes::new(),
        ..object.clone()
    };
    object.encode_to_vec()
}

fn is_own(sealing: &Sealing, object: &EncryptedObject) -> bool {
    object.source_type == SOURCE_SEED && object.source == sealing.source && object.key_id == sealing.key_id
}

impl Transformer for Arc<Service> {
    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError> {
        let object = stored::decode(stored).map_err(TransformError::Kms)?;
        let opened = self.seed(&object)?.open(&object.data, key)?;
        // Other servers have seeds of their own under the same key.
        let sealing = self.shared.sealing();
        let stale = sealing.is_some_and(|now| now.key_id != object.key_id) || object.source_type != SOURCE_SEED;
        Ok(Opened { stale, ..opened })
    }

    fn seal(&self, value: &[u8], key: &str) -> Result<Vec<u8>, TransformError> {
        let (sealing, valid) = {
            let state = self.shared.state();
            (state.sealing.clone(), state.valid)
        };
        let reason =
            |why: &str| TransformError::Kms(format!("unable to encrypt with KMS Provider {}: {why}", self.kms.name));
        let sealing = sealing.ok_or_else(|| reason("it has not given a key yet"))?;
        if Instant::now() > valid {
            return Err(reason("it has not confirmed its key for too long"));
        }
        let object = EncryptedObject {
            data: sealing.seeded.seal(value, key)?.into(),
            key_id: sealing.key_id.clone(),
            source: sealing.source.clone(),
            annotations: sealing.annotations.clone(),
            source_type: SOURCE_SEED,
        };
        Ok(object.encode_to_vec())
    }
}
