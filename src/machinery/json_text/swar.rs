//! Eight bytes of text at a time, in one number: whether there is one among them that ends or needs an escape.
//!
//! Each function returns a number that is zero if there is none; else its lowest set bit is the highest bit of the
//! first such byte, counted from the low end. Bits above it may be wrong.

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// Bytes that are `wanted`.
#[inline]
fn equal(x: u64, wanted: u8) -> u64 {
    let x = x ^ (ONES * u64::from(wanted));
    x.wrapping_sub(ONES) & !x & HIGH
}

/// Bytes below a space.
#[inline]
fn control(x: u64) -> u64 {
    x.wrapping_sub(ONES * 0x20) & !x & HIGH
}

/// Bytes that a JSON string can't hold as they are: quote, backslash, control characters.
#[inline]
pub(crate) fn not_plain(x: u64) -> u64 {
    control(x) | equal(x, b'"') | equal(x, b'\\')
}

/// Bytes that Go's encoder escapes: those, `<`, `>` and `&`; and 0xE2, which begins U+2028 and U+2029.
#[inline]
pub(crate) fn escaped_by_go(x: u64) -> u64 {
    not_plain(x) | go_alone(x)
}

/// What compilers turn into a few operations on vectors: for long texts.
pub(crate) type Block = [u8; 32];

/// Whether a JSON string can hold all bytes of the block as they are; see [`not_plain`].
#[inline]
pub(crate) fn is_plain(block: &Block) -> bool {
    let found = |b: u8| u8::from(b < 0x20) | u8::from(b == b'"') | u8::from(b == b'\\');
    block.iter().fold(0, |all, &b| all | found(b)) == 0
}

/// Whether Go's encoder escapes none of the bytes of the block; see [`escaped_by_go`].
#[inline]
pub(crate) fn is_plain_to_go(block: &Block) -> bool {
    let found = |b: u8| {
        // `<` and `>` differ in one bit.
        u8::from(b & !2 == b'<') | u8::from(b == b'&') | u8::from(b == 0xE2)
    };
    is_plain(block) && block.iter().fold(0, |all, &b| all | found(b)) == 0
}

/// Of those the ones that JSON would let stand.
#[inline]
fn go_alone(x: u64) -> u64 {
    // `<` and `>` differ in one bit.
    let angle = equal(x & !(ONES * 2), b'<');
    angle | equal(x, b'&') | equal(x, 0xE2)
}

/// Whether JSON text has a byte that is white space or that Go's encoder escapes; strings may have some that do no
/// harm.
pub(crate) fn may_be_compacted(json: &[u8]) -> bool {
    let found = |x: u64| control(x) | equal(x, b' ') | go_alone(x);
    let (chunks, rest) = json.as_chunks::<8>();
    let mut last = [b'x'; 8];
    last[..rest.len()].copy_from_slice(rest);
    chunks
        .iter()
        .chain([&last])
        .any(|chunk| found(u64::from_le_bytes(*chunk)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every byte at every place, among those that are none of the wanted.
    #[test]
    fn every_byte_is_found_where_it_is() {
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                let mut text = [b'a'; 8];
                text[place] = byte;
                let x = u64::from_le_bytes(text);
                let plain = byte >= 0x20 && !b"\"\\".contains(&byte);
                let found = |bits: u64| (bits != 0).then(|| bits.trailing_zeros() as usize / 8);
                assert_eq!(found(not_plain(x)), (!plain).then_some(place), "{byte:#x}");
                let escaped = !plain || b"<>&\xe2".contains(&byte);
                assert_eq!(found(escaped_by_go(x)), escaped.then_some(place), "{byte:#x}");
            }
        }
    }

    #[test]
    fn blocks_are_what_their_bytes_are() {
        for place in 0..32 {
            for byte in 0..=u8::MAX {
                let mut block = [b'a'; 32];
                block[place] = byte;
                let x = u64::from_le_bytes([byte; 8]);
                assert_eq!(is_plain(&block), not_plain(x) == 0, "{byte:#x}");
                assert_eq!(is_plain_to_go(&block), escaped_by_go(x) == 0, "{byte:#x}");
            }
        }
    }

    #[test]
    fn compact_text_is_known_at_every_length() {
        let compact = br#"{"f:a":{".":{},"k:{\"b\":1}":[true,null,1.5e3]}}"#;
        for len in 0..compact.len() {
            let text = &compact[..len];
            assert!(!may_be_compacted(text), "{len}");
            for byte in b" \t\r\n<>&\xe2" {
                assert!(may_be_compacted(&[text, &[*byte]].concat()), "{len} {byte:#x}");
            }
        }
    }
}
