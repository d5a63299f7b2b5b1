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
    reader: Option<Waker>,
}

/// What a reader finds.
pub(super) enum Found {
    /// The oldest changes, in their order.
    Changes(Vec<Arc<Change>>),
    /// Nothing now; the second value says that somebody wants to know how far the reader is.
    Nothing { asked: bool },
    /// Nothing, and nothing more will come.
    End,
}

impl Queue {
    /// Adds a change. False: nobody has read for so long that the queue is full, and now it is ended and empty.
    pub fn push(&self, change: &Arc<Change>) -> bool {
        let mut waiting = self.lock();
        let fits = waiting.changes.len() < LENGTH;
        if fits {
            waiting.changes.push_back(Arc::clone(change));
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

    /// Takes up to `limit` changes; when there is nothing, `cx` is woken when there is.
    pub fn take(&self, limit: usize, cx: &mut Context<'_>) -> Found {
        let mut waiting = self.lock();
        if !waiting.changes.is_empty() {
            let count = waiting.changes.len().min(limit);
            let changes = waiting.changes.drain(..count).collect();
            if waiting.changes.is_empty() && waiting.changes.capacity() > SPARE {
                waiting.changes = VecDeque::new();
            }
            return Found::Changes(changes);
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

/// Wakes the reader, if it waits; not under the lock, which it would take at once.
fn wake(mut waiting: MutexGuard<'_, Waiting>) {
    let reader = waiting.reader.take();
    drop(waiting);
    if let Some(reader) = reader {
        reader.wake();
    }
}
