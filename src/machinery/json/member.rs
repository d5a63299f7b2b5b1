//! Members: one key of a JSON object, read without the rest.

use super::read;
use crate::decode::DecodeError;
use crate::json_text::scan::{AFTER_PAIR, Failure, Scanner};
use crate::reflect::Reflect;

/// Reads of a JSON object only its member `key`, an object, into `message`, over what it holds. Of the other members
/// only the syntax is looked at.
pub fn read_member(json: &[u8], key: &str, message: &mut dyn Reflect) -> Result<(), DecodeError> {
    for value in members(json, key).map_err(|e| *e)? {
        read(value, message)?;
    }
    Ok(())
}

/// The values under the key, in their order; there should be one.
fn members<'a>(json: &'a [u8], key: &str) -> Result<Vec<&'a [u8]>, Failure> {
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
        if *name.bytes() == *key.as_bytes() {
            found.push(value);
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
    use crate::sample::{FULL, Widget};

    #[test]
    fn a_member_is_read_as_with_the_whole() {
        let twice = r#"{"metadata":{"name":"a","uid":"u"},"spec":{"size":1},"metadata":{"name":"b"}}"#;
        let escaped = r#"{"meta\u0064ata":{"name":"a"}}"#;
        for text in [FULL, twice, escaped, r#"{"metadata":null,"spec":{}}"#, "{}", " { } "] {
            let (mut whole, mut alone) = (Widget::default(), ObjectMeta::default());
            read(text.as_bytes(), &mut whole).unwrap();
            read_member(text.as_bytes(), "metadata", &mut alone).unwrap();
            assert!(crate::reflect::equality::equal(&alone, &whole.metadata), "{text}");
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
            let read = read_member(text.as_bytes(), "metadata", &mut ObjectMeta::default());
            assert!(read.is_err(), "{text}");
        }
    }
}
