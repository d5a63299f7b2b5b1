//! JSON as Go prints a tree of values: sorted keys, numbers of 64 bits, no white space.

use super::write::{write_float, write_int};
use crate::json_text::compact;
use crate::json_text::scan::{Shape, parse_shape};
use crate::json_text::write_string;

/// What nests deeper is copied as it stands.
const MAX_DEPTH: u32 = 200;

/// Checked JSON text with the keys of its objects sorted and its numbers and strings as Go prints them; of a repeated
/// key the last one counts.
pub(crate) fn canonical(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    write_value(json, MAX_DEPTH, &mut out);
    out
}

fn write_value(json: &[u8], depth: u32, out: &mut Vec<u8>) {
    let (Some(depth), Ok(shape)) = (depth.checked_sub(1), parse_shape(json)) else {
        return compact(json, out);
    };
    match shape {
        Shape::Object(members) => {
            let mut sorted: Vec<_> = members.iter().map(|(key, value)| (key.decode(), *value)).collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            out.push(b'{');
            for (i, (key, value)) in sorted.iter().enumerate() {
                if sorted.get(i + 1).is_some_and(|next| next.0 == *key) {
                    continue;
                }
                if out.last() != Some(&b'{') {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write_value(value, depth, out);
            }
            out.push(b'}');
        }
        Shape::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(item, depth, out);
            }
            out.push(b']');
        }
        Shape::String(text) => write_string(&text.decode(), out),
        Shape::Number(text) => write_number(text, out),
        Shape::Literal(word) => out.extend_from_slice(word.as_bytes()),
    }
}

/// A whole number of 64 bits, or a float.
pub(crate) fn write_number(text: &str, out: &mut Vec<u8>) {
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(n), _) => write_int(n, out),
        (_, Ok(n)) => write_float(n, out),
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_go_prints_a_tree() {
        for (json, want) in [
            (
                r#"{"z": 1.50, "a": [1e3, "<&>", null , {"b" : 1, "a":12345678901234567890}], "u":"\u00e9\u003c", "z":2}"#,
                r#"{"a":[1000,"\u003c\u0026\u003e",null,{"a":12345678901234567000,"b":1}],"u":"é\u003c","z":2}"#,
            ),
            (
                "[1e21,1e-7,-0,0.10,9223372036854775807]",
                "[1e+21,1e-7,0,0.1,9223372036854775807]",
            ),
        ] {
            assert_eq!(String::from_utf8(canonical(json.as_bytes())).unwrap(), want);
        }
        let deep = format!("{}1{}", "[".repeat(9_000), "]".repeat(9_000));
        assert_eq!(canonical(deep.as_bytes()), deep.as_bytes());
    }
}
