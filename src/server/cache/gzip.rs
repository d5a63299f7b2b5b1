//! gzip streams made of blocks that were compressed before.
//!
//! A block is raw deflate that ends at a byte boundary and refers to nothing before it, so blocks can stand in any order
//! in one stream; the stream's checksum is computed from those of the blocks.

use bytes::Bytes;
use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Magic, deflate, no flags, no time, fastest, unknown system: as Go's writer at its fastest level.
pub(crate) const HEAD: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff";
/// An empty last block.
const LAST: &[u8] = b"\x03\x00";

/// Compressed bytes that may stand anywhere in a stream.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub bytes: Bytes,
    checksum: u32,
    /// Before compression.
    length: u64,
}

impl Block {
    pub fn compress(plain: &[u8]) -> Block {
        let mut deflate = Compress::new(Compression::fast(), false);
        let mut bytes = Vec::with_capacity(plain.len() / 4 + 64);
        loop {
            let done = usize::try_from(deflate.total_in()).unwrap_or(plain.len());
            let rest = plain.get(done..).unwrap_or_default();
            bytes.reserve(rest.len() / 4 + 64);
            let status = deflate.compress_vec(rest, &mut bytes, FlushCompress::Sync);
            let all = deflate.total_in() == plain.len() as u64;
            // Spare room after a flush says that all of it came out.
            if all && bytes.len() < bytes.capacity() || !matches!(status, Ok(Status::Ok | Status::BufError)) {
                break;
            }
        }
        Block {
            bytes: bytes.into(),
            checksum: crc32fast::hash(plain),
            length: plain.len() as u64,
        }
    }

    /// A few bytes (at most 65 535) as they are.
    pub fn stored(plain: &'static [u8]) -> Block {
        let length = u16::try_from(plain.len()).unwrap_or_default();
        let mut bytes = vec![0];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&(!length).to_le_bytes());
        bytes.extend_from_slice(plain);
        Block {
            bytes: bytes.into(),
            checksum: crc32fast::hash(plain),
            length: plain.len() as u64,
        }
    }
}

/// The checksum and length of the blocks so far.
#[derive(Default)]
pub(crate) struct Joined {
    hasher: Hasher,
    length: u64,
}

impl Joined {
    pub fn add(&mut self, block: &Block) {
        self.hasher
            .combine(&Hasher::new_with_initial_len(block.checksum, block.length));
        self.length += block.length;
    }

    /// What ends the stream.
    pub fn end(self) -> Vec<u8> {
        let mut tail = LAST.to_vec();
        tail.extend_from_slice(&self.hasher.finalize().to_le_bytes());
        // The format has the length modulo 2³².
        tail.extend_from_slice(&(self.length as u32).to_le_bytes());
        tail
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn joined_blocks_are_one_valid_stream() {
        let mut plain = Vec::new();
        let mut stream = HEAD.to_vec();
        let mut joined = Joined::default();
        let texts: Vec<Vec<u8>> = (0..200usize)
            .map(|n| format!("{{\"n\":{n}}}").repeat(1 + n * 37 % 500).into_bytes())
            .collect();
        for (n, text) in texts.iter().enumerate() {
            for block in [(n > 0).then(|| Block::stored(b",")), Some(Block::compress(text))]
                .into_iter()
                .flatten()
            {
                stream.extend_from_slice(&block.bytes);
                joined.add(&block);
            }
            plain.extend_from_slice(if n > 0 { b"," } else { b"" });
            plain.extend_from_slice(text);
        }
        stream.extend(joined.end());
        let mut read = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&stream[..]);
        decoder.read_to_end(&mut read).unwrap();
        assert!(read == plain);
        assert!(decoder.into_inner().is_empty(), "nothing after the end");
    }

    #[test]
    fn blocks_hold_any_bytes() {
        let noise: Vec<u8> = (0..100_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for plain in [&b""[..], b"x", &noise] {
            let block = Block::compress(plain);
            let mut stream = [HEAD, &block.bytes].concat();
            let mut joined = Joined::default();
            joined.add(&block);
            stream.extend(joined.end());
            let mut read = Vec::new();
            flate2::read::GzDecoder::new(&stream[..])
                .read_to_end(&mut read)
                .unwrap();
            assert!(read == plain);
        }
    }
}
