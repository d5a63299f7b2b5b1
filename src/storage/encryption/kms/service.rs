//! A service as a provider: values are encrypted with a seed that it knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use prost::Message;
use tokio::sync::{mpsc, oneshot};

use super::keeper::{Command, Keeper, LIFETIME, ServiceError, new_uid};
use super::message::{DecryptRequest, EncryptedObject, SOURCE_KEY, SOURCE_SEED};
use super::seeds::{Found, Key, SeedError, Seeds};
use super::stored;
use crate::encryption::aes_gcm::AesGcm;
use crate::encryption::seeded::Seeded;
use crate::encryption::{Kms, Opened, Secret, TransformError, Transformer};

/// Commands that wait for a service at most; more wait in their callers.
const QUEUE: usize = 64;
/// What a health check may say of the past: so old if it is good …
const GOOD_NEWS: Duration = Duration::from_secs(20);
/// … and so old if it is not.
const BAD_NEWS: Duration = Duration::from_secs(3);

/// One key management service. Ends with its last owner.
pub struct Service {
    kms: Kms,
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    seeds: Arc<Seeds>,
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
    health: Result<(), ServiceError>,
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

    pub fn set_health(&self, health: Result<(), ServiceError>) {
        let mut state = self.state();
        if let Err(error) = &health
            && state.health.as_ref() != Err(error)
        {
            tracing::error!(%error, "a KMS is not healthy");
        }
        state.health = health;
        state.looked = Some(Instant::now());
    }

    /// What is known of the service's health; `None`: nothing that is new enough.
    fn health(&self) -> Option<Result<(), ServiceError>> {
        let state = self.state();
        let age = state.looked?.elapsed();
        let fresh = age < if state.health.is_ok() { GOOD_NEWS } else { BAD_NEWS };
        fresh.then(|| state.health.clone())
    }
}

impl Service {
    /// Begins to ask the service how it is, in a thread that ends with the last owner of what this returns.
    pub fn start(kms: &Kms) -> std::io::Result<Arc<Service>> {
        let (commands, received) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                sealing: None,
                valid: Instant::now(),
                health: Err(ServiceError::Unasked(kms.name.clone())),
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
            seeds: Arc::default(),
        }))
    }

    /// An error says what is wrong with the service. Asks it unless that is known.
    pub async fn health(&self) -> Result<(), ServiceError> {
        if let Some(known) = self.shared.health() {
            return known;
        }
        let (answer, answered) = oneshot::channel();
        if self.commands.send(Command::Look { answer }).await.is_ok() {
            let _ = answered.await;
        }
        self.shared.state().health.clone()
    }

    /// What is known of the seed of an object. If it is met for the first time, the service is asked, once: that is
    /// rare, since all values of a server's run share one.
    fn found(&self, object: &EncryptedObject, place: Vec<u8>) -> Found {
        let question = match self.seeds.find(place) {
            Found::New(question) => question,
            known => return known,
        };
        let waiting = question.waiting();
        let uid = match new_uid() {
            Ok(uid) => uid,
            Err(error) => {
                question.answer(Err(SeedError::Uid(error)));
                return Found::Asked(waiting);
            }
        };
        let request = DecryptRequest {
            ciphertext: object.source.clone(),
            uid,
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let make: fn(Secret) -> Key = match object.source_type {
            SOURCE_KEY => |secret| Arc::new(AesGcm(secret)),
            _ => |secret| Arc::new(Seeded::new(&secret)),
        };
        let command = Command::Decrypt {
            request,
            question,
            make,
        };
        if let Err(unsent) = self.commands.try_send(command)
            && let Command::Decrypt { question, .. } = unsent.into_inner()
        {
            question.answer(Err(SeedError::Busy));
        }
        Found::Asked(waiting)
    }

    /// The seed that this server encrypts with, if an object is under it.
    fn own(&self, object: &EncryptedObject) -> Option<Arc<Seeded>> {
        let sealing = self.shared.sealing().filter(|sealing| is_own(sealing, object))?;
        Some(sealing.seeded.clone())
    }

    /// What decrypts the data of an object. Holds up the calling thread while the service is asked for its seed:
    /// [`Transformer::prepare`] is there to be awaited first.
    fn seed(&self, object: &EncryptedObject) -> Result<Key, TransformError> {
        if let Some(own) = self.own(object) {
            return Ok(own);
        }
        let place = place(object);
        match self.found(object, place.clone()) {
            Found::Known(key) => Ok(key),
            Found::Refused(reason) => Err(TransformError::Kms(reason)),
            // The thread may have to finish a look at the service first.
            Found::Asked(_) | Found::New(_) => self.seeds.wait(&place, 3 * self.kms.timeout),
        }
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
    fn prepare(&self, stored: &Bytes) -> Option<BoxFuture<'static, ()>> {
        let object = stored::decode(stored).ok()?;
        if self.own(&object).is_some() {
            return None;
        }
        let Found::Asked(mut waiting) = self.found(&object, place(&object)) else {
            return None;
        };
        Some(Box::pin(async move {
            // Its sender goes when there is an answer.
            let _ = waiting.changed().await;
        }))
    }

    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError> {
        let object = stored::decode(stored).map_err(|error| TransformError::Kms(error.to_string()))?;
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
