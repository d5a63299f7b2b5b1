//! JSON texts in the forms that recordings were made with: all characters beyond ASCII escaped, and for sorting with
//! sorted keys.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Without white space between tokens: the server keeps some fields as raw bytes.
pub fn compact(value: &Value) -> String {
    write(value, Ascii { separators: [",", ":"] })
}

/// With a blank behind separators.
pub fn spaced(value: &Value) -> String {
    write(
        value,
        Ascii {
            separators: [", ", ": "],
        },
    )
}

/// With sorted keys and a blank behind separators: what elements are sorted by.
pub fn sortable(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    spaced(&value)
}

fn write(value: &Value, formatter: Ascii) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail, and keys of a Value are strings.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    String::from_utf8(out).unwrap_or_default()
}

/// Between elements, and between key and value.
struct Ascii {
    separators: [&'static str; 2],
}

impl Ascii {
    fn separate<W: ?Sized + Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(self.separators[0].as_bytes())
        }
    }
}

impl Formatter for Ascii {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(self.separators[1].as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|c: char| !c.is_ascii()) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let mut after = rest[at..].chars();
            for unit in after.next().unwrap_or_default().encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = after.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn characters_beyond_ascii_are_escaped() {
        let value = json!({"b": ["é", "😀\n"], "a": 1.5});
        assert_eq!(compact(&value), r#"{"b":["\u00e9","\ud83d\ude00\n"],"a":1.5}"#);
        assert_eq!(sortable(&value), r#"{"a": 1.5, "b": ["\u00e9", "\ud83d\ude00\n"]}"#);
    }
}
