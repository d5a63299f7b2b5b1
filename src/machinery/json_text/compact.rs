//! Compact JSON text.

use super::strings::write_escaped;
use super::swar;

/// Appends valid JSON text without its white space and with Go's escapes in its strings.
pub fn compact(json: &[u8], out: &mut Vec<u8>) {
    if !swar::may_be_compacted(json) {
        return out.extend_from_slice(json);
    }
    let mut rest = json;
    while let Some(&b) = rest.first() {
        let len = match b {
            b' ' | b'\t' | b'\r' | b'\n' => 0,
            b'"' => {
                let len = string_len(rest);
                write_escaped(&rest[..len], out);
                rest = &rest[len..];
                continue;
            }
            _ => rest
                .iter()
                .take_while(|b| !matches!(b, b'"' | b' ' | b'\t' | b'\r' | b'\n'))
                .count(),
        };
        out.extend_from_slice(&rest[..len]);
        rest = &rest[len.max(1)..];
    }
}

/// The length of the string that the text begins with, with its quotes.
fn string_len(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(b) = json.get(at) {
        match b {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}
