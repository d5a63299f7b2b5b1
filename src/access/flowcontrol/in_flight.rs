//! Requests in flight: how many there are, and may be (`--max-requests-inflight`, `--max-mutating-requests-inflight`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::request_info::RequestInfo;

/// The requests under way.
#[derive(Debug)]
pub struct InFlight {
    reads: Arc<Places>,
    writes: Arc<Places>,
    streams: Arc<Places>,
}

/// How many of one sort are under way, and may be.
#[derive(Debug)]
struct Places {
    taken: AtomicUsize,
    /// 0: any number.
    limit: usize,
}

impl InFlight {
    /// At most so many of each sort; 0: any number.
    pub fn new(max_reads: usize, max_writes: usize) -> InFlight {
        let places = |limit| {
            Arc::new(Places {
                taken: AtomicUsize::new(0),
                limit,
            })
        };
        InFlight {
            reads: places(max_reads),
            writes: places(max_writes),
            streams: places(0),
        }
    }

    /// Requests that read.
    pub fn reads(&self) -> usize {
        self.reads.taken.load(Ordering::Relaxed)
    }

    /// Requests that may change something.
    pub fn writes(&self) -> usize {
        self.writes.taken.load(Ordering::Relaxed)
    }

    /// Watches and other long answers.
    pub fn streams(&self) -> usize {
        self.streams.taken.load(Ordering::Relaxed)
    }

    /// A place for a request; `None`: all of its sort are taken, and it has no right to more.
    pub fn take(&self, info: &RequestInfo, may_exceed: impl FnOnce() -> bool) -> Option<Place> {
        Place::take(self.of(info), may_exceed)
    }

    fn of(&self, info: &RequestInfo) -> &Arc<Places> {
        match is_write(info) {
            _ if info.is_long_running() => &self.streams,
            false => &self.reads,
            true => &self.writes,
        }
    }
}

/// Whether a request may change something.
pub fn is_write(info: &RequestInfo) -> bool {
    !matches!(info.verb.as_str(), "get" | "list" | "watch")
}

/// A request's place; free again when it is dropped.
pub struct Place(Arc<Places>);

impl Place {
    /// `None`: all are taken, and the request has no right to more.
    fn take(places: &Arc<Places>, may_exceed: impl FnOnce() -> bool) -> Option<Place> {
        let before = places.taken.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(places));
        let free = places.limit == 0 || before < places.limit;
        (free || may_exceed()).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_no_limit() {
        let places = InFlight::new(0, 0);
        let taken: Vec<_> = (0..1000)
            .map(|_| Place::take(&places.reads, || false).unwrap())
            .collect();
        assert_eq!((taken.len(), places.reads()), (1000, 1000));
    }
}
