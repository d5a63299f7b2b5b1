//! Members: some keys of a JSON object, read without the rest.

use super::read;
use crate::decode::DecodeError;
use crate::json_text::scan::{AFTER_PAIR, Failure, Scanner};
use crate::reflect::Reflect;

/// Reads of a JSON object only the members with these keys, all of them objects, into the messages beside the keys, over
/// what they hold. Of the other members only the syntax is looked at.
pub fn read_members(json: &[u8], wanted: &mut [(&str, &mut dyn Reflect)]) -> Result<(), DecodeError> {
    let keys: Vec<&str> = wanted.iter().map(|(key, _)| *key).collect();
    for (place, value) in members(json, &keys).map_err(|e| *e)? {
        if let Some((_, message)) = wanted.get_mut(place) {
            read(value, &mut **message)?;
        }
    }
    Ok(())
}

/// The values under the keys, in their order, with the places of their keys; there should be one of each.
fn members<'a>(json: &'a [u8], keys: &[&str]) -> Result<Vec<(usize, &'a [u8])>, Failure> {
    let mut found = Vec::new();
    let mut scan = Scanner::new(json);
    if scan.peek() != Some(b'{') {
        return Err(scan.no_value());
    }
    scan.pos += 1;
    if scan.peek() == Some(b'}') {
        scan.pos += 1;
        return scan.end().map(|()| found);
    }
    loop {
        let name = scan.key()?;
        let value = scan.skip_value()?;
        if let Some(place) = keys.iter().position(|key| *name.bytes() == *key.as_bytes()) {
            found.push((place, value));
        }
        match scan.peek() {
            Some(b',') => scan.pos += 1,
            Some(b'}') => break,
            _ => return Err(scan.fail(AFTER_PAIR)),
        }
    }
    scan.pos += 1;
    scan.end().map(|()| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::v1::ObjectMeta;
    use crate::sample::{FULL, Widget, WidgetSpec};

    #[test]
    fn a_member_is_read_as_with_the_whole() {
        let twice = r#"{"metadata":{"name":"a","uid":"u"},"spec":{"size":1},"metadata":{"name":"b"}}"#;
        let escaped = r#"{"meta\u0064ata":{"name":"a"}}"#;
        for text in [FULL, twice, escaped, r#"{"metadata":null,"spec":{}}"#, "{}", " { } "] {
            let (mut whole, mut alone) = (Widget::default(), ObjectMeta::default());
            read(text.as_bytes(), &mut whole).unwrap();
            let mut spec = WidgetSpec::default();
            read_members(text.as_bytes(), &mut [("spec", &mut spec), ("metadata", &mut alone)]).unwrap();
            assert!(crate::reflect::equality::equal(&alone, &whole.metadata), "{text}");
            assert!(crate::reflect::equality::equal(&spec, &whole.spec), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"a":1"#,
            r#"{"a":1}x"#,
            r#"{"metadata":[]}"#,
            r#"{"spec":{"a"}}"#,
        ] {
            let read = read_members(text.as_bytes(), &mut [("metadata", &mut ObjectMeta::default())]);
            assert!(read.is_err(), "{text}");
        }
    }
}
