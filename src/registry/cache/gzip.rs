//! gzip streams made of blocks that were compressed before.
//!
//! A block is raw deflate that ends at a byte boundary and refers to nothing before it, so blocks can stand in any
//! order in one stream; the stream's checksum is computed from those of the blocks.

use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Magic, deflate, no flags, no time, fastest, unknown system: as Go's writer at its fastest level.
pub const HEAD: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x04\xff";
/// An empty last block.
const LAST: &[u8] = b"\x03\x00";

/// Compressed bytes that may stand anywhere in a stream.
#[derive(Clone, Debug)]
pub struct Block {
    pub bytes: Bytes,
    checksum: u32,
    /// Before compression.
    length: u64,
    /// What so many bytes do to the checksum of what stands before them, see [`crc`].
    shift: u32,
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
        Block::of(bytes, plain)
    }

    /// A few bytes (at most 65 535) as they are.
    pub fn stored(plain: &[u8]) -> Block {
        let length = u16::try_from(plain.len()).unwrap_or_default();
        let mut bytes = vec![0];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&(!length).to_le_bytes());
        bytes.extend_from_slice(plain);
        Block::of(bytes, plain)
    }

    fn of(bytes: Vec<u8>, plain: &[u8]) -> Block {
        Block::deflated(bytes, crc32fast::hash(plain), plain.len() as u64)
    }

    /// What was compressed elsewhere: raw deflate up to a flush, and the checksum and length of the plain bytes.
    pub fn deflated(bytes: Vec<u8>, checksum: u32, length: u64) -> Block {
        Block {
            bytes: bytes.into(),
            checksum,
            length,
            shift: crc::shift(length),
        }
    }

    /// Bytes before compression.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Checksums of texts put together. A CRC is a polynomial over two elements, modulo that of the format; bytes behind a
/// text multiply its checksum by a power of x that depends on their number alone. With that power at hand a block is
/// added by one multiplication, where the crate that computes checksums needs a dozen to find it.
mod crc {
    /// The polynomial of gzip. The highest bit is the lowest power.
    const MODULUS: u32 = 0xedb8_8320;
    const ONE: u32 = 1 << 31;
    /// x to the power of the bits of a byte.
    const BYTE: u32 = ONE >> 8;

    pub fn multiply(a: u32, b: u32) -> u32 {
        let (mut product, mut b) = (0, b);
        for bit in (0..u32::BITS).rev() {
            // All ones or none, because branches would go either way at random.
            product ^= b & (a >> bit & 1).wrapping_neg();
            b = b >> 1 ^ MODULUS & (b & 1).wrapping_neg();
        }
        product
    }

    /// What `length` bytes multiply the checksum before them by.
    pub fn shift(mut length: u64) -> u32 {
        let (mut shift, mut power) = (ONE, BYTE);
        while length > 0 {
            if length & 1 == 1 {
                shift = multiply(shift, power);
            }
            power = multiply(power, power);
            length >>= 1;
        }
        shift
    }
}

/// The checksum and length of the blocks so far.
#[derive(Default)]
pub struct Joined {
    checksum: u32,
    length: u64,
}

impl Joined {
    pub fn add(&mut self, block: &Block) {
        self.checksum = crc::multiply(self.checksum, block.shift) ^ block.checksum;
        self.length += block.length;
    }

    /// What ends the stream.
    pub fn end(self) -> Vec<u8> {
        let mut tail = LAST.to_vec();
        tail.extend_from_slice(&self.checksum.to_le_bytes());
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
    fn checksums_are_those_of_the_whole_text() {
        let text: Vec<u8> = (0..70_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        for cut in [0, 1, 2, 255, 256, 4_097, 65_536, text.len()] {
            let (front, back) = text.split_at(cut);
            let joined = crc::multiply(crc32fast::hash(front), crc::shift(back.len() as u64)) ^ crc32fast::hash(back);
            assert_eq!(joined, crc32fast::hash(&text), "{cut}");
        }
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
