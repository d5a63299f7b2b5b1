//! JSON as Go writes a tree of maps.

use super::{compact, write_float};
use crate::json_text::scan::{Shape, parse_shape};
use crate::json_text::write_string;

/// Objects that nest deeper keep the order of their keys.
const MAX_DEPTH: usize = 200;

/// Valid JSON with its keys sorted, the last of repeated keys alone, numbers in their shortest form and Go's escapes.
pub fn sorted(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    write(json, MAX_DEPTH, &mut out);
    out
}

fn write(json: &[u8], depth: usize, out: &mut Vec<u8>) {
    match parse_shape(json) {
        Ok(Shape::Object(members)) if depth > 0 => {
            let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key.decode(), value)).collect();
            members.reverse();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            members.dedup_by(|a, b| a.0 == b.0);
            out.push(b'{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(&key, out);
                out.push(b':');
                write(value, depth - 1, out);
            }
            out.push(b'}');
        }
        Ok(Shape::Array(items)) if depth > 0 => {
            out.push(b'[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, depth - 1, out);
            }
            out.push(b']');
        }
        Ok(Shape::String(text)) => write_string(&text.decode(), out),
        Ok(Shape::Number(digits)) => match (digits.parse::<i64>(), digits.parse::<f64>()) {
            (Err(_), Ok(n)) if n.is_finite() => write_float(n, out),
            _ => out.extend_from_slice(digits.as_bytes()),
        },
        _ => compact(json, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_writes_maps() {
        let json = br#" {"b": [1.0, 2.50, {"z":1,"y":"<"}], "a": null, "b2":1e3, "a": true} "#;
        let text = String::from_utf8(sorted(json)).unwrap();
        assert_eq!(text, r#"{"a":true,"b":[1,2.5,{"y":"\u003c","z":1}],"b2":1000}"#);
    }
}
