//! The body of a list: renditions that lie in memory, copied into chunks while they are sent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use bytes::{Bytes, BytesMut};
use keelson_storage::{Entry, Snapshot};

/// Bytes in a chunk, about.
const CHUNK: usize = 64 * 1024;
/// Room in a chunk for the object that fills it.
const ROOM: usize = 16 * 1024;
/// Entries taken from the snapshot at once.
const BATCH: usize = 128;

/// The entries of a list, few of them in hand at any time.
#[derive(Clone)]
pub(crate) enum Items {
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
}

impl Items {
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

/// Writes entries.
pub(crate) trait Write {
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), String>;
    /// What follows the last entry. `none`: there was no entry.
    fn end(&mut self, none: bool, out: &mut BytesMut);
}

/// See the module's description.
pub(crate) struct Body<W> {
    /// Chunks that go before everything else.
    begin: VecDeque<Bytes>,
    items: Items,
    batch: VecDeque<Entry>,
    write: W,
    first: bool,
    ended: bool,
}

impl<W: Write> Body<W> {
    pub fn new(begin: Bytes, items: Items, write: W) -> Body<W> {
        Body {
            begin: VecDeque::from([begin]),
            items,
            batch: VecDeque::new(),
            write,
            first: true,
            ended: false,
        }
    }

    /// Puts chunks that were taken back before the rest.
    pub fn after(mut self, chunks: [Bytes; 2]) -> Body<W> {
        self.begin.extend(chunks);
        self
    }

    /// The next chunk; `None` at the end.
    pub fn chunk(&mut self) -> Option<Result<Bytes, String>> {
        let begin = self.begin.pop_front().unwrap_or_default();
        if begin.len() >= CHUNK {
            return Some(Ok(begin));
        }
        if self.ended {
            return (!begin.is_empty()).then_some(Ok(begin));
        }
        let mut out = BytesMut::with_capacity(CHUNK + ROOM);
        out.extend_from_slice(&begin);
        while out.len() < CHUNK && !self.ended {
            if let Err(reason) = self.step(&mut out) {
                return Some(Err(reason));
            }
        }
        Some(Ok(out.freeze()))
    }

    fn step(&mut self, out: &mut BytesMut) -> Result<(), String> {
        if self.batch.is_empty() {
            self.batch = self.items.batch();
        }
        let Some(entry) = self.batch.pop_front() else {
            self.write.end(self.first, out);
            self.ended = true;
            return Ok(());
        };
        let first = std::mem::replace(&mut self.first, false);
        let written = self.write.item(&entry, first, out);
        written.map_err(|reason| format!("{}: {reason}", entry.key))
    }
}

impl<W: Write + Unpin> MessageBody for Body<W> {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let chunk = self.get_mut().chunk();
        Poll::Ready(chunk.map(|done| {
            done.map_err(|reason| {
                // The head of the answer is long gone: all that is left is to break it off.
                tracing::error!(reason, "a list could not be written");
                reason.into()
            })
        }))
    }
}
