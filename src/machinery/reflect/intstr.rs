//! A value that is a 32-bit number or a string: ports by number or name, counts or percentages.

use std::fmt;

use crate::json_text as text;
use crate::reflect::leaf::{leaf_basics, leaf_field, string_or_null, wrong_number, wrong_type};
use crate::reflect::{Leaf, LeafResult};
use crate::wire::{self, Reader, Wire};

/// A number or a string; JSON shows it as what it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IntOrString {
    Int(i32),
    String(String),
}

impl IntOrString {
    /// The number, or the number that the string spells; 0 if it spells none.
    pub fn int_value(&self) -> i64 {
        match self {
            IntOrString::Int(n) => i64::from(*n),
            IntOrString::String(s) => s.parse().unwrap_or(0),
        }
    }
}

impl Default for IntOrString {
    fn default() -> Self {
        IntOrString::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(n: i32) -> Self {
        IntOrString::Int(n)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        IntOrString::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrString::Int(n) => n.fmt(f),
            IntOrString::String(s) => s.fmt(f),
        }
    }
}

leaf_field!(IntOrString, IntOrString);

impl Leaf for IntOrString {
    leaf_basics!(IntOrString);

    fn is_zero(&self) -> bool {
        *self == IntOrString::Int(0)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            IntOrString::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
            IntOrString::String(s) => text::write_string(s, out),
        }
    }

    fn read_json(&mut self, json: &[u8]) -> LeafResult {
        *self = match json.first() {
            Some(b'"') => IntOrString::String(string_or_null(json)?.into_owned()),
            Some(b'-' | b'0'..=b'9') => {
                let n = std::str::from_utf8(json).ok().and_then(|s| s.parse().ok());
                IntOrString::Int(n.ok_or_else(|| wrong_number(json, "int32"))?)
            }
            Some(b'n') => IntOrString::Int(0),
            _ => return Err(wrong_type(json, "int32")),
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        let (kind, number, string) = match self {
            IntOrString::Int(n) => (0, *n, ""),
            IntOrString::String(s) => (1, 0, s.as_str()),
        };
        wire::write_varint_field(1, kind, out);
        wire::write_varint_field(2, i64::from(number) as u64, out);
        wire::write_bytes_field(3, string.as_bytes(), out);
    }

    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
        let (mut kind, mut number, mut string) = (0, 0, String::new());
        let mut fields = Reader::new(body);
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Varint(n)) => kind = n,
                (2, Wire::Varint(n)) => number = n as i32,
                (3, Wire::Bytes(b)) => string = crate::json_text::lossy(b).into_owned(),
                (1..=3, other) => return Err(other.mismatch("IntOrString")),
                _ => {}
            }
        }
        *self = match kind {
            0 => IntOrString::Int(number),
            1 => IntOrString::String(string),
            _ => return Err("impossible IntOrString.Type".to_owned()),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_forms() {
        let cases: &[(&str, Result<IntOrString, &str>)] = &[
            ("1", Ok(1.into())),
            ("-2147483648", Ok(i32::MIN.into())),
            ("\"50%\"", Ok("50%".into())),
            ("\"\"", Ok("".into())),
            ("null", Ok(0.into())),
            (
                "1.0",
                Err("json: cannot unmarshal number 1.0 into Go value of type int32"),
            ),
            (
                "2147483648",
                Err("json: cannot unmarshal number 2147483648 into Go value of type int32"),
            ),
            ("true", Err("json: cannot unmarshal bool into Go value of type int32")),
            ("[]", Err("json: cannot unmarshal array into Go value of type int32")),
            ("{}", Err("json: cannot unmarshal object into Go value of type int32")),
        ];
        for (input, want) in cases {
            let mut got = IntOrString::default();
            let result = got.read_json(input.as_bytes()).map(|()| got.clone());
            assert_eq!(result, want.clone().map_err(str::to_owned), "{input}");
            let mut out = Vec::new();
            got.write_json(&mut out);
            if want.is_ok() && *input != "null" {
                assert_eq!(out, input.as_bytes());
            }
        }
    }

    #[test]
    fn protobuf_writes_all_three_fields() {
        let mut out = Vec::new();
        IntOrString::from(-1).write_protobuf(&mut out);
        assert_eq!(out, [8, 0, 16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 26, 0]);
        let mut back = IntOrString::default();
        back.read_protobuf(&out).unwrap();
        assert_eq!(back, IntOrString::Int(-1));

        out.clear();
        IntOrString::from("http").write_protobuf(&mut out);
        assert_eq!(out, b"\x08\x01\x10\x00\x1a\x04http");
        back.read_protobuf(&out).unwrap();
        assert_eq!(back, IntOrString::from("http"));
        assert_eq!(
            back.read_protobuf(&[8, 2]),
            Err("impossible IntOrString.Type".to_owned())
        );
    }
}
