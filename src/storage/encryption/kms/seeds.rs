//! The seeds that a service has decrypted, could not decrypt, or is being asked for.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::call::CallError;
use crate::encryption::{TransformError, Transformer};

/// Seeds in memory at most. Servers make one at each start and for each key.
const SEEDS: usize = 1000;
/// A seed that could not be decrypted is asked for again after so many times the time that this took, so that a
/// service that does not answer can't hold up everything …
const PATIENCE: u32 = 10;
/// … but after this time at the latest.
const LONGEST_PATIENCE: Duration = Duration::from_secs(30);

/// Why a seed is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum SeedError {
    /// The service does not decrypt it.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A call has no name.
    #[error(transparent)]
    Uid(TransformError),
    #[error("the KMS is busy")]
    Busy,
    #[error("the KMS was not asked")]
    Unasked,
    /// The service did not answer in time.
    #[error("context deadline exceeded")]
    Deadline,
}

/// What decrypts the data of objects.
pub(super) type Key = Arc<dyn Transformer>;

/// Seeds (and keys) by what is stored of them. Nobody waits for one while all are locked.
#[derive(Default)]
pub(super) struct Seeds {
    all: Mutex<HashMap<Vec<u8>, Seed>>,
    answered: Condvar,
}

enum Seed {
    Known(Key),
    Refused {
        until: Instant,
        reason: String,
    },
    /// Until the sender is dropped.
    Asked(watch::Receiver<()>),
}

/// What is known of a seed.
pub(super) enum Found {
    Known(Key),
    Refused(String),
    /// The service is being asked; the receiver fails when it has answered.
    Asked(watch::Receiver<()>),
    /// The service is to be asked.
    New(Question),
}

/// A seed that the service is to decrypt. If this is dropped without an answer, the seed counts as refused.
pub(super) struct Question {
    seeds: Arc<Seeds>,
    place: Vec<u8>,
    began: Instant,
    answered: bool,
    /// Wakes who waits when it is dropped.
    done: watch::Sender<()>,
}

impl Seeds {
    fn all(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Seed>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the seed that is stored so.
    pub fn find(self: &Arc<Self>, place: Vec<u8>) -> Found {
        let mut all = self.all();
        match all.get(&place) {
            Some(Seed::Known(key)) => return Found::Known(key.clone()),
            Some(Seed::Asked(waiting)) => return Found::Asked(waiting.clone()),
            Some(Seed::Refused { until, reason }) if Instant::now() < *until => {
                return Found::Refused(reason.clone());
            }
            Some(Seed::Refused { .. }) | None => {}
        }
        if all.len() >= SEEDS {
            all.retain(|_, seed| matches!(seed, Seed::Asked(_)));
        }
        let (done, waiting) = watch::channel(());
        all.insert(place.clone(), Seed::Asked(waiting));
        Found::New(Question {
            seeds: self.clone(),
            place,
            began: Instant::now(),
            answered: false,
            done,
        })
    }

    /// What the service has answered; holds up the calling thread until then, but not for longer than `limit`.
    pub fn wait(&self, place: &[u8], limit: Duration) -> Result<Key, TransformError> {
        let asked = |all: &mut HashMap<Vec<u8>, Seed>| matches!(all.get(place), Some(Seed::Asked(_)));
        let waited = self.answered.wait_timeout_while(self.all(), limit, asked);
        let (all, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match all.get(place) {
            Some(Seed::Known(key)) => Ok(key.clone()),
            Some(Seed::Refused { reason, .. }) => Err(TransformError::Kms(reason.clone())),
            Some(Seed::Asked(_)) | None => Err(TransformError::Kms(failed(&SeedError::Deadline))),
        }
    }
}

impl Question {
    /// Fails when there is an answer.
    pub fn waiting(&self) -> watch::Receiver<()> {
        self.done.subscribe()
    }

    /// Tells all who wait.
    pub fn answer(mut self, answer: Result<Key, SeedError>) {
        self.put(answer);
    }

    fn put(&mut self, answer: Result<Key, SeedError>) {
        self.answered = true;
        let seed = match answer {
            Ok(key) => Seed::Known(key),
            Err(error) => Seed::Refused {
                until: Instant::now() + (self.began.elapsed() * PATIENCE).min(LONGEST_PATIENCE),
                reason: failed(&error),
            },
        };
        self.seeds.all().insert(std::mem::take(&mut self.place), seed);
        self.seeds.answered.notify_all();
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if !self.answered {
            self.put(Err(SeedError::Unasked));
        }
    }
}

fn failed(error: &SeedError) -> String {
    format!("failed to decrypt DEK, error: {error}")
}
