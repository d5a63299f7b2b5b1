//! Node ports: each service gets its own out of the range of the command line. Which are taken says one record of the
//! store, which servers change by comparing what they replace.

pub mod bitmap;
pub mod plan;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keelson_api::core::v1::RangeAllocation;
use keelson_machinery::env::Entropy;
use keelson_machinery::status::StatusError;
use keelson_registry::{Record, Recorded, Registry, Replaced, Verbs};
use tokio::sync::oneshot;

use bitmap::Bitmap;

/// Where the record is, below the prefix of all keys.
const PATH: &str = "ranges/servicenodeports";
/// How often a change is tried while other servers are faster.
const MAX_ATTEMPTS: usize = 256;

/// The first and the last port of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    /// As the API writes it: `30000-32767`.
    pub fn parse(text: &str) -> Option<PortRange> {
        let (first, last) = text.split_once('-')?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(PortRange { first, last })
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Why there is no port, in the words of the API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// All are taken.
    Full,
    /// Another service has it.
    Taken,
    /// The range does not have it.
    NotInRange(PortRange),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Full => f.write_str("range is full"),
            Fault::Taken => f.write_str("provided port is already allocated"),
            Fault::NotInRange(range) => write!(
                f,
                "provided port is not in the valid range. The range of valid ports is {range}"
            ),
        }
    }
}

/// A port that a service wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// This one.
    This(i32),
    /// Any.
    Any,
}

/// What is done at once: all of it, or nothing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Batch {
    pub take: Vec<Want>,
    pub free: Vec<i32>,
}

/// What came of a batch: the ports that were taken, in the order in which they were wanted; or which of them could not
/// be taken, and why.
pub type Outcome = Result<Vec<u16>, (usize, Fault)>;

/// Gives ports to services.
pub struct Ports {
    range: PortRange,
    record: OnceLock<Record<RangeAllocation>>,
    /// What this server knows to be recorded: the next change begins with it.
    known: tokio::sync::Mutex<Option<Known>>,
    /// What is to be done when it is its turn: as much as has come by then goes into one write.
    waiting: Mutex<Vec<Waiting>>,
}

struct Known {
    bitmap: Bitmap,
    recorded: Recorded<RangeAllocation>,
}

struct Waiting {
    batch: Batch,
    answer: oneshot::Sender<Result<Outcome, StatusError>>,
}

impl Ports {
    /// Of a range.
    pub fn new(range: PortRange) -> Ports {
        Ports {
            range,
            record: OnceLock::new(),
            known: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Takes and frees ports. It is done whether somebody waits for it or not; who does not wait till the end gets
    /// nothing.
    ///
    /// # Errors
    /// There is no record yet, or the store fails.
    pub async fn change(self: &Arc<Self>, verbs: &Arc<Verbs>, batch: Batch) -> Result<Outcome, StatusError> {
        let (answer, answered) = oneshot::channel();
        self.wait(Waiting { batch, answer });
        let (ports, verbs) = (self.clone(), verbs.clone());
        tokio::spawn(async move { ports.serve(&verbs).await });
        let lost = |_| Err(StatusError::service_unavailable("node ports can't be given now"));
        answered.await.unwrap_or_else(lost)
    }

    /// Whether a port is taken, as far as this server knows.
    ///
    /// # Errors
    /// There is no record yet, or the store fails.
    pub async fn is_taken(&self, verbs: &Verbs, port: i32) -> Result<bool, StatusError> {
        let mut known = self.known.lock().await;
        let known = self.current(self.record(verbs)?, &mut known).await?;
        Ok(known.bitmap.has(port))
    }

    fn wait(&self, one: Waiting) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(one);
    }

    fn record(&self, verbs: &Verbs) -> Result<&Record<RangeAllocation>, StatusError> {
        if let Some(record) = self.record.get() {
            return Ok(record);
        }
        let record = record(&verbs.registry)?;
        Ok(self.record.get_or_init(|| record))
    }

    /// Does what waits, with one write.
    async fn serve(self: &Arc<Self>, verbs: &Arc<Verbs>) {
        let mut known = self.known.lock().await;
        let all = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if all.is_empty() {
            return;
        }
        let batches = all.iter().map(|one| &one.batch);
        let done = match self.record(verbs) {
            Ok(record) => {
                let entropy = &*verbs.backend.entropy;
                let done = self
                    .write(record, &mut known, &batches.collect::<Vec<_>>(), entropy)
                    .await;
                done.inspect_err(|_| *known = None)
            }
            Err(error) => Err(error),
        };
        let mut left = Vec::new();
        match done {
            Ok(outcomes) => {
                for (one, outcome) in all.into_iter().zip(outcomes) {
                    // Who left has no use for what was taken.
                    if let Err(Ok(Ok(taken))) = one.answer.send(Ok(outcome)) {
                        left.extend(taken.into_iter().map(i32::from));
                    }
                }
            }
            Err(error) => all
                .into_iter()
                .for_each(|one| drop(one.answer.send(Err(error.clone())))),
        }
        drop(known);
        if !left.is_empty() {
            self.give_back(verbs, left).await;
        }
    }

    async fn give_back(self: &Arc<Self>, verbs: &Arc<Verbs>, free: Vec<i32>) {
        let mut known = self.known.lock().await;
        let batch = Batch { take: Vec::new(), free };
        let Ok(record) = self.record(verbs) else { return };
        let entropy = &*verbs.backend.entropy;
        if let Err(error) = self.write(record, &mut known, &[&batch], entropy).await {
            tracing::warn!(%error, "node ports could not be given back; they will be found later");
            *known = None;
        }
    }

    /// Applies batches to what is recorded, again while other servers are faster.
    async fn write(
        &self,
        record: &Record<RangeAllocation>,
        known: &mut Option<Known>,
        batches: &[&Batch],
        entropy: &dyn Entropy,
    ) -> Result<Vec<Outcome>, StatusError> {
        for _ in 0..MAX_ATTEMPTS {
            let now = self.current(record, known).await?;
            let mut bitmap = now.bitmap.clone();
            let outcomes = batches.iter().map(|batch| bitmap.apply(batch, entropy)).collect();
            if bitmap == now.bitmap {
                return Ok(outcomes);
            }
            let next = RangeAllocation {
                data: bitmap.to_bytes().into(),
                ..now.recorded.value.clone()
            };
            match record.replace(Some(&now.recorded), next).await? {
                Replaced::Done(recorded) => {
                    *known = Some(Known { bitmap, recorded });
                    return Ok(outcomes);
                }
                Replaced::Overtaken(current) => *known = current.map(|current| self.read(current)).transpose()?,
            }
        }
        let text = "node ports can't be given now: other servers are faster";
        Err(StatusError::service_unavailable(text))
    }

    /// What is known, or else what is recorded.
    async fn current<'k>(
        &self,
        record: &Record<RangeAllocation>,
        known: &'k mut Option<Known>,
    ) -> Result<&'k Known, StatusError> {
        let now = match known.take() {
            Some(now) => now,
            None => {
                let recorded = record.read().await?.ok_or_else(not_yet)?;
                self.read(recorded)?
            }
        };
        Ok(known.insert(now))
    }

    fn read(&self, recorded: Recorded<RangeAllocation>) -> Result<Known, StatusError> {
        if recorded.value.range != self.range.to_string() {
            let text = "the provided range does not match the current range";
            return Err(StatusError::unknown(text));
        }
        Ok(Known {
            bitmap: Bitmap::from_bytes(self.range, &recorded.value.data),
            recorded,
        })
    }
}

/// The record of the ports that are taken.
///
/// # Errors
/// The server has no services.
pub fn record(registry: &Registry) -> Result<Record<RangeAllocation>, StatusError> {
    let services = registry.resource("", "services");
    let services = services.ok_or_else(StatusError::no_such_resource)?;
    Ok(Record::new(services, PATH))
}

/// Who repairs makes the record when it first looks at all services: until then nobody knows what they have.
fn not_yet() -> StatusError {
    StatusError::unknown("cannot allocate resources of type servicenodeportallocations at this time")
}
