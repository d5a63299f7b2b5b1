//! The body of a list: renditions that lie in memory, copied into chunks while they are sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use actix_web::body::{BodySize, MessageBody};
use bytes::{Bytes, BytesMut};
use keelson_base::cooperative::Slices;
use keelson_machinery::status::StatusError;
use keelson_registry::cache::Items;
use keelson_storage::Entry;

/// Bytes in a chunk, about.
const CHUNK: usize = 64 * 1024;
/// Room in a chunk for the object that fills it.
const ROOM: usize = 16 * 1024;
/// The clock is looked at after so many entries, or bytes.
const ENTRIES_PER_LOOK: usize = 4;
const BYTES_PER_LOOK: usize = 16 * 1024;

/// An object of a list that can't be written.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {error}")]
pub struct ItemError {
    /// The key of its entry.
    key: String,
    error: StatusError,
}

/// Writes entries.
pub trait Write {
    /// Writes one.
    ///
    /// # Errors
    /// It can't be decoded or converted.
    fn item(&mut self, entry: &Entry, first: bool, out: &mut BytesMut) -> Result<(), StatusError>;
    /// What follows the last entry. `none`: there was no entry.
    fn end(&mut self, none: bool, out: &mut BytesMut);
}

/// See the module's description.
pub struct Body<W> {
    /// Chunks that go before everything else.
    begin: VecDeque<Bytes>,
    items: Items,
    batch: VecDeque<Entry>,
    write: W,
    first: bool,
    ended: bool,
    /// The chunk that is being made.
    out: BytesMut,
    slices: Slices,
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
            out: BytesMut::new(),
            slices: Slices::begin(),
        }
    }

    /// Puts chunks that were taken back before the rest.
    pub fn after(mut self, chunks: [Bytes; 2]) -> Body<W> {
        self.begin.extend(chunks);
        self
    }

    /// The next chunk; `None` at the end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, ItemError>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Makes the next chunk, a slice at a time.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ItemError>>> {
        if let Some(begin) = self.begin.pop_front() {
            if begin.len() >= CHUNK {
                return Poll::Ready(Some(Ok(begin)));
            }
            self.out.extend_from_slice(&begin);
        }
        while self.out.len() < CHUNK && !self.ended {
            ready!(self.slices.poll_between(cx));
            self.out.reserve((CHUNK + ROOM).saturating_sub(self.out.len()));
            if let Err(error) = self.piece() {
                self.ended = true;
                return Poll::Ready(Some(Err(error)));
            }
        }
        let chunk = self.out.split().freeze();
        Poll::Ready((!chunk.is_empty()).then_some(Ok(chunk)))
    }

    /// Goes on until the chunk is full, or a slice is over.
    fn piece(&mut self) -> Result<(), ItemError> {
        let end = self.slices.end_of_piece();
        let (mut entries, mut looked) = (0, self.out.len());
        while self.out.len() < CHUNK && !self.ended {
            self.step()?;
            entries += 1;
            if entries % ENTRIES_PER_LOOK == 0 || self.out.len() - looked >= BYTES_PER_LOOK {
                looked = self.out.len();
                if Instant::now() >= end {
                    break;
                }
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), ItemError> {
        if self.batch.is_empty() {
            self.batch = self.items.batch();
        }
        let Some(entry) = self.batch.pop_front() else {
            self.write.end(self.first, &mut self.out);
            self.ended = true;
            return Ok(());
        };
        let first = std::mem::replace(&mut self.first, false);
        let written = self.write.item(&entry, first, &mut self.out);
        written.map_err(|error| ItemError {
            key: entry.key.to_string(),
            error,
        })
    }
}

impl<W: Write + Unpin> MessageBody for Body<W> {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let chunk = ready!(self.get_mut().poll_chunk(cx));
        Poll::Ready(chunk.map(|done| {
            done.map_err(|error| {
                // The head of the answer is long gone: all that is left is to break it off.
                tracing::error!(reason = %error, "a list could not be written");
                error.into()
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keelson_storage::{Revision, Version};

    use super::*;

    const COUNT: usize = 64;
    const ITEM: usize = 4096;

    /// Takes its time for each entry.
    struct Slow;

    impl Write for Slow {
        fn item(&mut self, entry: &Entry, _: bool, out: &mut BytesMut) -> Result<(), StatusError> {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(300) {}
            out.extend_from_slice(&[entry.key.as_bytes()[1]; ITEM]);
            Ok(())
        }

        fn end(&mut self, _: bool, out: &mut BytesMut) {
            out.extend_from_slice(b"end");
        }
    }

    /// Whoever reads the list gets full chunks, and others have their turn several times within each.
    #[tokio::test]
    async fn a_list_is_made_in_slices() {
        keelson_base::cooperative::yield_everywhere();
        let version = || Version::new(Bytes::new(), Revision(2), Revision(2), 1);
        let entries = (0..COUNT).map(|n| Entry::new(format!("/{n}"), version()));
        let mut body = Body::new(Bytes::from_static(b"begin"), Items::These(entries.collect()), Slow);
        let (mut waits, mut chunks) = (0, Vec::new());
        std::future::poll_fn(|cx| {
            loop {
                match Pin::new(&mut body).poll_next(cx) {
                    Poll::Ready(Some(chunk)) => chunks.push(chunk.unwrap()),
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => waits += 1,
                }
            }
        })
        .await;
        assert!(waits >= COUNT / ENTRIES_PER_LOOK, "{waits}");
        let (last, full) = chunks.split_last().unwrap();
        assert!(full.iter().all(|chunk| chunk.len() >= CHUNK) && last.ends_with(b"end"));
        let all: usize = chunks.iter().map(Bytes::len).sum();
        assert_eq!(all, 5 + COUNT * ITEM + 3);
    }
}
