//! Base64 as Go's decoder takes it: line breaks anywhere, padding required, and the position of the first wrong byte in
//! the error.

const INVALID: u8 = 0xFF;

const VALUES: [u8; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [INVALID; 256];
    let mut i = 0;
    while i < 64 {
        table[alphabet[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// The bytes, or where the text is wrong.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    while let Some([a, b, c, d]) = text.get(at..at + 4) {
        let [a, b, c, d] = [a, b, c, d].map(|x| VALUES[usize::from(*x)]);
        if a | b | c | d > 63 {
            break;
        }
        out.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
        at += 4;
    }
    decode_carefully(text, at, &mut out)?;
    Ok(out)
}

/// From `at` on, one byte at a time.
fn decode_carefully(text: &[u8], mut at: usize, out: &mut Vec<u8>) -> Result<(), usize> {
    let (mut bits, mut count) = (0u32, 0);
    while let Some(&b) = text.get(at) {
        at += 1;
        if matches!(b, b'\n' | b'\r') {
            continue;
        }
        let value = VALUES[usize::from(b)];
        if value == INVALID {
            if b != b'=' || count < 2 {
                return Err(at - 1);
            }
            return finish(text, at, bits, count, out);
        }
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    if count == 0 { Ok(()) } else { Err(at - count) }
}

/// What follows the first padding character, at `at`.
fn finish(text: &[u8], at: usize, bits: u32, count: usize, out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = skip_breaks(text, at);
    if count == 2 {
        match text.get(at) {
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
            None => return Err(text.len()),
        }
        out.push((bits >> 4) as u8);
    } else {
        out.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]);
    }
    let end = skip_breaks(text, at);
    if end < text.len() { Err(end) } else { Ok(()) }
}

fn skip_breaks(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| matches!(b, b'\n' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_go() {
        let cases: &[(&str, Result<&[u8], usize>)] = &[
            ("", Ok(b"")),
            ("aGVsbG8=", Ok(b"hello")),
            ("aGVsbG8h", Ok(b"hello!")),
            ("aGVs\nbG8=\r\n", Ok(b"hello")),
            ("aA==", Ok(b"h")),
            ("aA=\n=", Ok(b"h")),
            ("+/8=", Ok(&[251, 255])),
            ("aGVsbG8", Err(4)),
            ("aGVs bG8=", Err(4)),
            ("-_8=", Err(0)),
            ("!!", Err(0)),
            ("=", Err(0)),
            ("a===", Err(1)),
            ("aA=", Err(3)),
            ("aA=x", Err(2)),
            ("aA==x", Err(4)),
            ("aGU=aGU=", Err(4)),
        ];
        for (text, want) in cases {
            assert_eq!(decode(text.as_bytes()).as_deref().map_err(|e| *e), *want, "{text:?}");
        }
    }
}
