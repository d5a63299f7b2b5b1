//! A walk over JSON text that has been checked.

use std::borrow::Cow;

use crate::json::Cursor;
use crate::json_text::unescape;

/// Without the white space around it.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// The members of an object, keys decoded, in the order of the text.
pub(super) fn members(object: &[u8]) -> Vec<(Cow<'_, str>, &[u8])> {
    let mut out = Vec::new();
    let mut cursor = Cursor::new(object);
    cursor.peek();
    cursor.open();
    let mut more = !matches!(cursor.peek(), Some(b'}') | None);
    while more {
        let key = cursor.key().decode();
        cursor.peek();
        out.push((key, cursor.skip()));
        more = cursor.more();
    }
    out
}

/// The elements of an array.
pub(super) fn elements<'t, T>(array: &'t [u8], each: impl Fn(&'t [u8]) -> T) -> Vec<T> {
    let mut out = Vec::new();
    let mut cursor = Cursor::new(array);
    cursor.peek();
    cursor.open();
    let mut more = !matches!(cursor.peek(), Some(b']') | None);
    while more {
        out.push(each(cursor.skip()));
        more = cursor.more();
    }
    out
}

/// Whether no object or array stands in the text behind the bracket that opens an array.
pub(super) fn is_flat(elements: &[u8]) -> bool {
    let mut quoted = false;
    let mut bytes = elements.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => drop(bytes.next()),
            b'[' | b'{' if !quoted => return false,
            _ => {}
        }
    }
    true
}

/// The content of a string in its quotes.
pub(super) fn string(quoted: &[u8]) -> Cow<'_, str> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    unescape(inner).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_the_text_of_their_values() {
        let object = br#" { "a" : [1, "x]"] , "b\u00e9\n" :{"c":"}"}, "d": 1.50 , "e":""} "#;
        let got: Vec<(String, &str)> = members(object)
            .into_iter()
            .map(|(k, v)| (k.into_owned(), std::str::from_utf8(v).unwrap()))
            .collect();
        let expected = [
            ("a", r#"[1, "x]"]"#),
            ("b\u{e9}\n", r#"{"c":"}"}"#),
            ("d", "1.50"),
            ("e", r#""""#),
        ];
        assert_eq!(got, expected.map(|(k, v)| (k.to_owned(), v)));
        assert_eq!(elements(b"[ 1 , [2,3],{} ]", |text| text), [&b"1"[..], b"[2,3]", b"{}"]);
        assert!(elements(b"[ ]", |text| text).is_empty());
        assert!(members(b"{ }").is_empty());
    }
}
