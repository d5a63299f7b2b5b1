//! A look at SQLite's write-ahead log before SQLite reads it.
//!
//! SQLite takes the log up to the first frame that is not whole, since that is what a crash leaves: the transaction
//! that was being written. It does so too when damage is in the middle, and transactions that were durable would be
//! gone without a word. Each transaction is synced before the next is written, so whole transactions beyond the one
//! that is not prove damage. (The last transaction alone, damaged, can't be told from one that a crash cut.)
//!
//! The format is that of <https://sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::StoreError;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first bytes, but for the lowest bit, which says how checksums read their words.
const MAGIC: u32 = 0x377f_0682;
/// SQLite's limits of a page.
const PAGES: std::ops::RangeInclusive<usize> = 512..=65536;

/// What stands in a log.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Log {
    /// Whole transactions, or nothing.
    Whole,
    /// Whole transactions, and then the rest of one that is not.
    Torn,
}

/// Damage that no crash leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
enum Damage {
    #[error("the header of the log is damaged")]
    Header,
    /// Frames are counted from 1.
    #[error("frame {0} of the log is damaged")]
    Frame(u64),
}

/// Fails with [`StoreError::Corrupt`] if transactions were lost that had been durable.
pub(super) fn check(path: &Path) -> Result<Log, StoreError> {
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Log::Whole),
        Err(error) => Err(failed(error)),
        Ok(file) => match scan(BufReader::with_capacity(1 << 20, file)).map_err(failed)? {
            Ok(log) => Ok(log),
            Err(damage) => Err(StoreError::Corrupt(format!("{}: {damage}", path.display()))),
        },
    }
}

/// The running checksum of a log.
#[derive(Clone, Copy, PartialEq, Default)]
struct Sum(u32, u32);

impl Sum {
    fn add(self, bytes: &[u8], word: fn([u8; 4]) -> u32) -> Sum {
        let Sum(mut one, mut two) = self;
        for pair in bytes.as_chunks::<8>().0 {
            let [a, b, c, d, e, f, g, h] = *pair;
            one = one.wrapping_add(word([a, b, c, d])).wrapping_add(two);
            two = two.wrapping_add(word([e, f, g, h])).wrapping_add(one);
        }
        Sum(one, two)
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes: &[u8; 4]| u32::from_be_bytes(*bytes))
}

fn scan(mut log: impl Read) -> io::Result<Result<Log, Damage>> {
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(Ok(Log::Whole));
    }
    let magic = number(&header, 0);
    let word = if magic & 1 == 0 {
        u32::from_le_bytes
    } else {
        u32::from_be_bytes
    };
    let mut sum = Sum::default().add(&header[..24], word);
    let page = number(&header, 8) as usize;
    if magic & !1 != MAGIC || sum != Sum(number(&header, 24), number(&header, 28)) || !PAGES.contains(&page) {
        // The header is synced before anything follows it.
        let mut next = [0; 1];
        return Ok(match fill(&mut log, &mut next)? {
            true => Err(Damage::Header),
            false => Ok(Log::Torn),
        });
    }
    let mut frame = vec![0; FRAME_HEADER + page];
    let (mut index, mut whole) = (0u64, true);
    let mut rest = Rest::default();
    while fill(&mut log, &mut frame)? {
        let same_log = frame[8..16] == header[16..24];
        let ends = number(&frame, 4) != 0;
        if whole && same_log {
            let next = sum.add(&frame[..8], word).add(&frame[FRAME_HEADER..], word);
            if next == Sum(number(&frame, 16), number(&frame, 20)) {
                sum = next;
                index += 1;
                rest.open = !ends;
                continue;
            }
        }
        if whole {
            whole = false;
            rest.first = index;
        }
        if same_log {
            rest.frames += 1;
            rest.after_end += u64::from(rest.ends > 0);
            rest.ends += u64::from(ends);
        }
        index += 1;
    }
    Ok(rest.judge())
}

/// What follows the frames that are whole.
#[derive(Default)]
struct Rest {
    /// The frames that are whole end within a transaction.
    open: bool,
    /// Number of the first frame that is not whole.
    first: u64,
    /// Frames of this log, and how many of them end a transaction.
    frames: u64,
    ends: u64,
    /// Frames after the first that ends a transaction.
    after_end: u64,
}

impl Rest {
    fn judge(&self) -> Result<Log, Damage> {
        if self.after_end > 0 {
            return Err(Damage::Frame(self.first + 1));
        }
        Ok(match self.open || self.frames > 0 {
            true => Log::Torn,
            false => Log::Whole,
        })
    }
}

/// False: there is not as much left.
fn fill(log: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
