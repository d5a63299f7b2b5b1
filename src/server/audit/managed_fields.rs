//! Objects without `metadata.managedFields`: a list of who wrote which field, of which auditors have no use and which
//! is often the larger half of an object.

use std::borrow::Cow;
use std::fmt;

use keelson_machinery::json::write_string;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The object, list or Table without managed fields; whatever is none of these as it is.
pub fn without(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    match serde_json::from_slice::<Members<'_>>(json) {
        Ok(members) => write_document(&members, &mut out),
        Err(_) => out.extend_from_slice(json),
    }
    out
}

/// The members of a JSON object in their order, unread.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;

        impl<'de> Visitor<'de> for Visit {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Visit)
    }
}

impl Members<'_> {
    /// Writes those that `write` has no part in as they are.
    fn write(&self, out: &mut Vec<u8>, write: impl Fn(&str, &str, &mut Vec<u8>) -> Part) {
        out.push(b'{');
        let start = out.len();
        for (key, value) in &self.0 {
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            match write(key, value.get(), out) {
                Part::Written => {}
                Part::AsItIs => out.extend_from_slice(value.get().as_bytes()),
                Part::LeftOut => out.truncate(before),
            }
        }
        out.push(b'}');
    }
}

enum Part {
    AsItIs,
    Written,
    LeftOut,
}

/// An object, or a list of them, or a Table.
fn write_document(members: &Members<'_>, out: &mut Vec<u8>) {
    members.write(out, |key, value, out| match key {
        "metadata" => write_metadata(value, out),
        "items" => write_each(value, out, write_document),
        "rows" => write_each(value, out, write_row),
        _ => Part::AsItIs,
    });
}

fn write_metadata(json: &str, out: &mut Vec<u8>) -> Part {
    let Ok(metadata) = serde_json::from_str::<Members<'_>>(json) else {
        return Part::AsItIs;
    };
    metadata.write(out, |key, _, _| match key {
        "managedFields" => Part::LeftOut,
        _ => Part::AsItIs,
    });
    Part::Written
}

fn write_row(row: &Members<'_>, out: &mut Vec<u8>) {
    row.write(out, |key, value, out| match key {
        "object" => match serde_json::from_str::<Members<'_>>(value) {
            Ok(object) => {
                write_document(&object, out);
                Part::Written
            }
            Err(_) => Part::AsItIs,
        },
        _ => Part::AsItIs,
    });
}

fn write_each(json: &str, out: &mut Vec<u8>, write: fn(&Members<'_>, &mut Vec<u8>)) -> Part {
    let Ok(items) = serde_json::from_str::<Vec<Members<'_>>>(json) else {
        return Part::AsItIs;
    };
    out.push(b'[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
    Part::Written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_go_wherever_objects_stand() {
        for (json, want) in [
            (
                r#"{"kind":"A","metadata":{"name":"n","managedFields":[{"x":1}],"uid":"u"},"data":{"metadata":{"managedFields":1}}}"#,
                r#"{"kind":"A","metadata":{"name":"n","uid":"u"},"data":{"metadata":{"managedFields":1}}}"#,
            ),
            (
                r#"{"metadata":{},"items":[{"metadata":{"managedFields":[]},"n":1e400},{"a":"<"}]}"#,
                r#"{"metadata":{},"items":[{"metadata":{},"n":1e400},{"a":"<"}]}"#,
            ),
            (
                r#"{"metadata":{"resourceVersion":"1"},"rows":[{"cells":["a"],"object":{"metadata":{"name":"n","managedFields":[]}}},{"object":null}]}"#,
                r#"{"metadata":{"resourceVersion":"1"},"rows":[{"cells":["a"],"object":{"metadata":{"name":"n"}}},{"object":null}]}"#,
            ),
            (r#"{"items":null,"metadata":3}"#, r#"{"items":null,"metadata":3}"#),
            ("[1]", "[1]"),
            ("{}", "{}"),
        ] {
            assert_eq!(String::from_utf8(without(json.as_bytes())).unwrap(), want);
        }
    }
}
