//! JSON kept as it came: RawExtension, FieldsV1 and JSON of the API.

use bytes::Bytes;

use crate::json_text::{compact, is_of_objects, validate};
use crate::reflect::leaf::{leaf_basics, leaf_field};
use crate::reflect::{Leaf, LeafResult};
use crate::wire::{self, Reader, Wire};

/// One JSON value as text, kept byte for byte; JSON shows it without white space between the tokens. Empty is the zero
/// value and shows as `null`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RawJson(pub Bytes);

impl RawJson {
    /// The text; empty if there is no value.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for RawJson {
    fn from(json: Vec<u8>) -> Self {
        RawJson(json.into())
    }
}

leaf_field!(RawJson, Raw);

impl Leaf for RawJson {
    leaf_basics!(Raw);

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self.as_bytes() {
            b"" => out.extend_from_slice(b"null"),
            json => compact(json, out),
        }
    }

    fn read_json(&mut self, json: &[u8]) -> LeafResult {
        self.0 = if json == b"null" {
            Bytes::new()
        } else {
            Bytes::copy_from_slice(json)
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        if !self.0.is_empty() {
            wire::write_bytes_field(1, &self.0, out);
        }
    }

    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
        let mut fields = Reader::new(body);
        self.0 = Bytes::new();
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Bytes(b)) => {
                    // It must be possible to show it as JSON.
                    if !b.is_empty() && !is_of_objects(b) {
                        validate(b).map_err(|e| e.to_string())?;
                    }
                    self.0 = Bytes::copy_from_slice(b);
                }
                (1, other) => return Err(other.mismatch("Raw")),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_bytes() {
        let mut raw = RawJson::default();
        for (input, shown) in [
            (
                "{\"b\": [1, \"a b\"],\n \"<\":1.0}",
                "{\"b\":[1,\"a b\"],\"\\u003c\":1.0}",
            ),
            ("null", "null"),
            ("3", "3"),
        ] {
            raw.read_json(input.as_bytes()).unwrap();
            assert_eq!(raw.is_zero(), input == "null");
            let (mut json, mut pb) = (Vec::new(), Vec::new());
            raw.write_json(&mut json);
            assert_eq!(json, shown.as_bytes());
            raw.write_protobuf(&mut pb);
            let mut back = RawJson::default();
            back.read_protobuf(&pb).unwrap();
            assert!(back.eq_leaf(&raw));
        }
        assert!(raw.read_protobuf(b"\x0a\x01{").is_err());
    }
}
