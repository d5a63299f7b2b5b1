//! Work that comes round by itself: leases that expire, history that grows old, watches that want to hear how far
//! they are. One thread per store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::mvcc::Mvcc;
use crate::{Clock, HistoryLimits, LeaseId, Revision, StoreError};

/// How often leases and limits are looked at; a lease ends at most so much too late.
const TICK: Duration = Duration::from_millis(500);
/// Keys that end with their leases at once, so that other writes have a turn when there are many.
pub(crate) const EXPIRE: usize = 1024;

/// A thread that calls a function every [`TICK`], and whenever it is unparked, until this is dropped.
pub(crate) struct Maintenance {
    stopped: Arc<AtomicBool>,
    waker: Thread,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Maintenance {
    pub fn spawn(mut tick: impl FnMut() + Send + 'static) -> Result<Self, StoreError> {
        let stopped = Arc::new(AtomicBool::new(false));
        let told = stopped.clone();
        let thread = std::thread::Builder::new()
            .name("store-upkeep".to_owned())
            .spawn(move || {
                loop {
                    std::thread::park_timeout(TICK);
                    if told.load(Ordering::Acquire) {
                        break;
                    }
                    tick();
                }
            })
            .map_err(|error| StoreError::Unavailable(format!("starting a thread: {error}")))?;
        Ok(Maintenance {
            stopped,
            waker: thread.thread().clone(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Unparked, it has the function called at once.
    pub fn waker(&self) -> Thread {
        self.waker.clone()
    }

    fn tell(&self) {
        self.stopped.store(true, Ordering::Release);
        self.waker.unpark();
    }

    /// Waits until the last call is over.
    pub fn stop(&self) {
        self.tell();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the upkeep of the store had ended early");
        }
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.tell();
    }
}

/// What is due at a tick.
#[derive(Default, Debug, PartialEq)]
pub(crate) struct Due {
    pub expired: Vec<LeaseId>,
    pub compact: Option<Revision>,
}

/// Decides what is due.
pub(crate) struct Schedule {
    mvcc: Arc<Mvcc>,
    clock: Arc<dyn Clock>,
    limits: HistoryLimits,
    /// When history was last looked at, and the revision of that moment.
    mark: (Duration, Revision),
}

impl Schedule {
    pub fn new(mvcc: Arc<Mvcc>, clock: Arc<dyn Clock>, limits: HistoryLimits) -> Self {
        let now = clock.now();
        let mark = (now, mvcc.current_revision().unwrap_or_default());
        Schedule {
            mvcc,
            clock,
            limits,
            mark,
        }
    }

    /// Says what is due.
    pub fn due(&mut self) -> Due {
        let now = self.clock.now();
        let mut compact = None;
        let (marked, revision) = self.mark;
        if self.limits.age.is_some_and(|age| now >= marked + age) {
            compact = Some(revision);
            self.mark = (now, self.mvcc.current_revision().unwrap_or(revision));
        }
        let compact = compact.max(self.mvcc.over_budget(self.limits.bytes));
        let compact = compact.filter(|revision| self.mvcc.check_compaction(*revision).unwrap_or(false));
        Due {
            expired: self.mvcc.expired(now),
            compact,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytes::Bytes;

    use super::*;
    use crate::mvcc::Batch;
    use crate::{Expect, Write};

    #[derive(Default)]
    struct Hands(AtomicU64);

    impl Clock for Hands {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    fn put(mvcc: &Mvcc, key: &str, size: usize) {
        let mut batch = Batch::new(mvcc).unwrap();
        let write = Write::Put {
            value: Bytes::from(vec![0; size]),
            lease: None,
        };
        batch.write(key, Expect::Absent, write).unwrap();
        mvcc.apply(&batch.into_changes());
    }

    fn schedule(age: u64, bytes: usize) -> (Arc<Mvcc>, Arc<Hands>, Schedule) {
        let (mvcc, clock) = (Mvcc::empty(), Arc::new(Hands::default()));
        let limits = HistoryLimits {
            age: Some(Duration::from_secs(age)),
            bytes,
        };
        (mvcc.clone(), clock.clone(), Schedule::new(mvcc, clock, limits))
    }

    #[test]
    fn history_is_kept_for_one_to_two_times_its_age() {
        let (mvcc, clock, mut schedule) = schedule(300, usize::MAX);
        put(&mvcc, "/a", 1);
        assert_eq!(schedule.due().compact, None);
        clock.0.store(300, Ordering::Relaxed);
        assert_eq!(
            schedule.due().compact,
            Some(Revision(1)),
            "what was there when the clock started"
        );
        put(&mvcc, "/b", 1);
        clock.0.store(599, Ordering::Relaxed);
        assert_eq!(schedule.due().compact, None);
        clock.0.store(600, Ordering::Relaxed);
        assert_eq!(schedule.due().compact, Some(Revision(2)));
    }

    #[test]
    fn history_over_its_size_is_cut_to_half() {
        let (mvcc, _, mut schedule) = schedule(300, 100_000);
        for n in 0..10 {
            put(&mvcc, &format!("/{n}"), 9_000);
        }
        assert_eq!(schedule.due().compact, None);
        put(&mvcc, "/more", 9_000);
        let Some(revision) = schedule.due().compact else {
            panic!("not compacted")
        };
        mvcc.compact(revision);
        assert!((5..=8).contains(&revision.0), "{revision}");
        assert_eq!(schedule.due().compact, None);
    }

    #[test]
    fn leases_are_due_when_their_time_is_over() {
        let (mvcc, clock, mut schedule) = schedule(300, usize::MAX);
        mvcc.leases().insert(LeaseId(1), Duration::from_secs(10));
        clock.0.store(9, Ordering::Relaxed);
        assert_eq!(schedule.due().expired, []);
        clock.0.store(10, Ordering::Relaxed);
        assert_eq!(schedule.due().expired, [LeaseId(1)]);
    }
}
