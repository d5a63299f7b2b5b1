//! The entries of a list, taken from a snapshot a few at a time.

use std::collections::VecDeque;

use keelson_storage::{Entry, Snapshot};

/// Entries taken from the snapshot at once.
const BATCH: usize = 128;

/// The entries of a list, few of them in hand at any time.
#[derive(Clone)]
pub enum Items {
    /// Keys of a prefix from `next` on, at most `left` of them.
    Range {
        snapshot: Snapshot,
        prefix: String,
        next: String,
        left: usize,
    },
    /// These.
    These(VecDeque<Entry>),
}

impl Items {
    /// The next few; empty at the end.
    pub fn batch(&mut self) -> VecDeque<Entry> {
        match self {
            Items::These(entries) => {
                let rest = entries.split_off(entries.len().min(BATCH));
                std::mem::replace(entries, rest)
            }
            Items::Range {
                snapshot,
                prefix,
                next,
                left,
            } => {
                let batch: VecDeque<Entry> = snapshot.range(prefix, next).take((*left).min(BATCH)).collect();
                *left -= batch.len();
                if let Some(last) = batch.back() {
                    next.clear();
                    next.push_str(&last.key);
                    next.push('\0');
                }
                batch
            }
        }
    }

    /// One after the other.
    pub fn entries(mut self) -> impl Iterator<Item = Entry> {
        let mut batch = VecDeque::new();
        std::iter::from_fn(move || {
            if batch.is_empty() {
                batch = self.batch();
            }
            batch.pop_front()
        })
    }
}
