//! The queue between the writer and one watch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use super::super::version::Change;

/// Changes that wait in a watch's queue at most.
pub(super) const LENGTH: usize = 1024;
/// Room that an empty queue keeps.
const SPARE: usize = 16;

#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    changes: VecDeque<Arc<Change>>,
    /// The reader shall tell how far it is.
    asked: bool,
    /// Nothing more comes: the queue was full, or the store has ended.
    ended: bool,
    /// Nor will there be another queue: the prefix is of no interest any more.
    forgotten: bool,
    reader: Option<Waker>,
}

/// What a reader finds.
pub(super) enum Found {
    /// The oldest changes, in their order.
    Changes(Vec<Arc<Change>>),
    /// Nothing now; the second value says that somebody wants to know how far the reader is.
    Nothing { asked: bool },
    /// Nothing, and nothing more will come here.
    End,
    /// Nothing, and this watch is over.
    Forgotten,
}

impl Queue {
    /// Adds what one revision changed. False: that is more than there is room for, and now the queue is ended and
    /// empty.
    pub fn push(&self, revision: &[Arc<Change>]) -> bool {
        let mut waiting = self.lock();
        let fits = waiting.changes.len() + revision.len() <= LENGTH;
        if fits {
            waiting.changes.extend(revision.iter().cloned());
        } else {
            // What a reader that may never come back would keep alive is let go: history has it too.
            waiting.changes = VecDeque::new();
            waiting.ended = true;
        }
        wake(waiting);
        fits
    }

    /// Makes the reader tell how far it is.
    pub fn ask(&self) {
        let mut waiting = self.lock();
        waiting.asked = true;
        wake(waiting);
    }

    /// Says that nothing more comes.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        wake(waiting);
    }

    /// Says that the watch is over.
    pub fn forget(&self) {
        let mut waiting = self.lock();
        waiting.forgotten = true;
        wake(waiting);
    }

    /// Takes up to `limit` changes, and more if they share the last one's revision; when there is nothing, `cx` is
    /// woken when there is.
    pub fn take(&self, limit: usize, cx: &mut Context<'_>) -> Found {
        let mut waiting = self.lock();
        if !waiting.changes.is_empty() {
            let count = whole_revisions(&waiting.changes, limit);
            let changes = waiting.changes.drain(..count).collect();
            if waiting.changes.is_empty() && waiting.changes.capacity() > SPARE {
                waiting.changes = VecDeque::new();
            }
            return Found::Changes(changes);
        }
        if waiting.forgotten {
            return Found::Forgotten;
        }
        if waiting.ended {
            return Found::End;
        }
        let asked = std::mem::take(&mut waiting.asked);
        if !waiting
            .reader
            .as_ref()
            .is_some_and(|reader| reader.will_wake(cx.waker()))
        {
            waiting.reader = Some(cx.waker().clone());
        }
        Found::Nothing { asked }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many changes to take so that there are `limit` or a few more, and no revision is cut.
fn whole_revisions(changes: &VecDeque<Arc<Change>>, limit: usize) -> usize {
    let revision = |place: usize| changes.get(place).map(|change| change.revision);
    let mut count = changes.len().min(limit);
    while count > 0 && count < changes.len() && revision(count) == revision(count - 1) {
        count += 1;
    }
    count
}

/// Wakes the reader, if it waits; not under the lock, which it would take at once.
fn wake(mut waiting: MutexGuard<'_, Waiting>) {
    let reader = waiting.reader.take();
    drop(waiting);
    if let Some(reader) = reader {
        reader.wake();
    }
}
