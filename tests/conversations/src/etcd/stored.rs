//! Stored values: an envelope and, in it, protobuf as `[field, value]` in the order stored, or JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Numbers in this range are taken for times in seconds.
const TIMES: std::ops::Range<u64> = 1_600_000_001..4_000_000_000;
/// No message of Kubernetes has a higher field number.
const HIGHEST_FIELD: u64 = 5000;
/// Bytes of a text that nobody understands.
const SHOWN: usize = 200;

/// What a stored value says; `None` where its envelope is broken.
pub fn stored(value: &[u8]) -> Option<Value> {
    let Some(envelope) = value.strip_prefix(b"k8s\0") else {
        return Some(match serde_json::from_slice::<Value>(value) {
            Ok(json) => json!({"encoding": "json", "value": json, "endsWithNewline": value.ends_with(b"\n")}),
            Err(_) => {
                let text = String::from_utf8_lossy(&value[..value.len().min(SHOWN)]);
                json!({"encoding": "unknown", "text": text})
            }
        });
    };
    let mut fields = BTreeMap::new();
    let mut reader = Reader(envelope);
    while !reader.0.is_empty() {
        let tag = reader.varint()?;
        let length = reader.varint()?;
        fields.insert(tag >> 3, reader.bytes(length)?);
    }
    let part = |field: u64| fields.get(&field).copied().unwrap_or_default();
    let meta = message(part(1))?;
    let of_meta = |number: u64| {
        meta.iter()
            .rev()
            .find(|pair| pair[0] == number)
            .map(|pair| pair[1].clone())
    };
    Some(json!({
        "encoding": "protobuf",
        "envelopeFields": fields.keys().collect::<Vec<_>>(),
        "apiVersion": of_meta(1),
        "kind": of_meta(2),
        "contentEncoding": String::from_utf8_lossy(part(3)),
        "contentType": String::from_utf8_lossy(part(4)),
        "fields": message(part(2))?,
    }))
}

/// Bytes as the fields of a message; `None` where they are none.
fn message(bytes: &[u8]) -> Option<Vec<Value>> {
    let mut reader = Reader(bytes);
    let mut fields = Vec::new();
    while !reader.0.is_empty() {
        let tag = reader.varint()?;
        let (field, wire) = (tag >> 3, tag & 7);
        if field == 0 || field > HIGHEST_FIELD {
            return None;
        }
        let value = match wire {
            0 => match reader.varint()? {
                number if TIMES.contains(&number) => "<time>".into(),
                number => number.into(),
            },
            1 => hex(reader.bytes(8)?),
            5 => hex(reader.bytes(4)?),
            2 => {
                let length = reader.varint()?;
                delimited(reader.bytes(length)?)
            }
            _ => return None,
        };
        fields.push(json!([field, value]));
    }
    Some(fields)
}

/// A text, a message, or bytes: whichever it may be.
fn delimited(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).ok();
    match (text, message(bytes)) {
        (Some(text), _) if text.chars().all(is_printable) => text.into(),
        (_, Some(fields)) => fields.into(),
        (Some(text), None) => text.into(),
        (None, None) => json!({"bytes": bytes.len()}),
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

fn hex(bytes: &[u8]) -> Value {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>()
        .into()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_names_the_kind_and_holds_the_fields_in_their_order() {
        // apiVersion v1, kind Pod; fields 1: "ab", 3: a message with a time, 4: bytes, 2: 7, 5: fixed32.
        let raw = [
            b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x17".as_slice(),
            b"\x0a\x02ab\x1a\x06\x08\x80\xa8\xd6\xb9\x07",
            b"\x22\x02\xff\xff\x10\x07\x2d\x01\x02\x03\x04",
            b"\x1a\x00\x22\x00",
        ]
        .concat();
        assert_eq!(
            stored(&raw).unwrap(),
            json!({
                "encoding": "protobuf", "envelopeFields": [1, 2, 3, 4], "apiVersion": "v1", "kind": "Pod",
                "contentEncoding": "", "contentType": "",
                "fields": [[1, "ab"], [3, [[1, "<time>"]]], [4, {"bytes": 2}], [2, 7], [5, "01020304"]]
            })
        );
    }

    #[test]
    fn json_and_what_nobody_understands() {
        assert_eq!(
            stored(b"{\"a\":1}\n").unwrap(),
            json!({"encoding": "json", "value": {"a": 1}, "endsWithNewline": true})
        );
        assert_eq!(stored(b"what").unwrap(), json!({"encoding": "unknown", "text": "what"}));
        assert_eq!(stored(b"k8s\0\x0a\x09"), None);
    }
}
