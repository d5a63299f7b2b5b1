//! Values that hold no others: strings, numbers, leaves, bytes.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Outcome, Reader, Style};
use crate::decode::DecodeError;
use crate::json::base64;
use crate::json::canonical::{canonical, write_number};
use crate::reflect::leaf::{GO_FIELD, GO_VALUE};
use crate::reflect::{Leaf, LeafKind};

/// A whole number of a field.
pub(super) trait Whole: std::str::FromStr {
    /// The low bits.
    fn wrapped(n: i64) -> Self;
}

impl Whole for i32 {
    fn wrapped(n: i64) -> i32 {
        n as i32
    }
}

impl Whole for i64 {
    fn wrapped(n: i64) -> i64 {
        n
    }
}

impl Whole for u8 {
    fn wrapped(n: i64) -> u8 {
        n as u8
    }
}

impl Reader<'_> {
    pub(super) fn string(&mut self, place: &mut String) -> Outcome {
        if self.scan.peek() != Some(b'"') {
            return self.no_scalar("string");
        }
        let text = self.scan.string()?;
        *place = text.decode().into_owned();
        Ok(())
    }

    pub(super) fn boolean(&mut self, place: &mut bool) -> Outcome {
        match self.scan.peek() {
            Some(b't') => {
                self.scan.literal("true")?;
                *place = true;
            }
            Some(b'f') => {
                self.scan.literal("false")?;
                *place = false;
            }
            _ => return self.no_scalar("bool"),
        }
        Ok(())
    }

    /// A whole number; `1.0` and `1e1` are none for a decoder.
    pub(super) fn number<N: Whole>(&mut self, go_type: &'static str, place: &mut N) -> Outcome {
        let Some(b'-' | b'0'..=b'9') = self.scan.peek() else {
            return self.no_scalar(go_type);
        };
        let number = self.scan.number()?;
        let digits = String::from_utf8_lossy(number);
        match digits.parse() {
            Ok(n) => *place = n,
            Err(_) if self.style == Style::Restore => match restored(&digits) {
                Some(n) => *place = N::wrapped(n),
                None => self.wrong_text(|| format!("cannot convert float64 to {go_type}")),
            },
            Err(_) => self.wrong(&format!("number {digits}"), go_type),
        }
        Ok(())
    }

    pub(super) fn double(&mut self, place: &mut f64) -> Outcome {
        let Some(b'-' | b'0'..=b'9') = self.scan.peek() else {
            return self.no_scalar("float64");
        };
        let number = self.scan.number()?;
        let digits = String::from_utf8_lossy(number);
        match digits.parse::<f64>() {
            Ok(n) if n.is_finite() => *place = n,
            _ => self.wrong(&format!("number {digits}"), "float64"),
        }
        Ok(())
    }

    pub(super) fn leaf(&mut self, leaf: &mut dyn Leaf) -> Outcome {
        if self.style == Style::Decode && leaf.kind() == LeafKind::Union && self.scan.peek() == Some(b'{') {
            match leaf.read_json_prefix(self.scan.rest(), self.budget) {
                Ok(None) => {}
                Ok(Some(length)) => {
                    self.scan.pos += length;
                    return Ok(());
                }
                Err(reason) => return Err(Box::new(DecodeError::Value(reason))),
            }
        }
        let json = self.scan.skip_value()?;
        let json = match self.style {
            Style::Decode => Cow::Borrowed(json),
            Style::Restore => printed(json, leaf.kind()),
        };
        let Err(reason) = leaf.read_json_within(&json, self.budget) else {
            return Ok(());
        };
        if self.budget.is_exhausted() {
            return Err(Box::new(DecodeError::TooLarge));
        }
        if self.style != Style::Decode {
            return Err(Box::new(DecodeError::Value(reason)));
        }
        Err(Box::new(DecodeError::Value(match reason.split_once(GO_VALUE) {
            Some((what, go_type)) => self.in_context(what, go_type),
            None => self.continued(&reason).unwrap_or(reason),
        })))
    }

    /// The error of a decoder that read a part of the document by itself: its path continues that of the part.
    fn continued(&self, reason: &str) -> Option<String> {
        let (what, rest) = reason.split_once(GO_FIELD)?;
        let (field, go_type) = rest.split_once(" of type ")?;
        let (_, inner) = field.split_once('.')?;
        let outer = self.in_context(what, go_type);
        let at = outer.rfind(" of type ")?;
        Some(format!("{}.{inner}{}", outer.get(..at)?, outer.get(at..)?))
    }

    /// Base64 text, or a list of numbers.
    pub(super) fn bytes(&mut self, place: &mut Bytes) -> Outcome {
        match self.scan.peek() {
            Some(b'"') => {
                let text = self.scan.string()?.decode();
                match base64::decode(text.as_bytes()) {
                    Ok(bytes) => *place = bytes.into(),
                    Err(at) => {
                        let prefix = match self.style {
                            Style::Decode => "",
                            Style::Restore => "error decoding from json: ",
                        };
                        self.wrong_text(|| format!("{prefix}illegal base64 data at input byte {at}"));
                    }
                }
                Ok(())
            }
            Some(b'[') => {
                let mut bytes = Vec::new();
                self.elements_of(|reader, _| {
                    let mut byte = 0u8;
                    reader.number("uint8", &mut byte)?;
                    bytes.push(byte);
                    Ok(())
                })?;
                *place = bytes.into();
                Ok(())
            }
            Some(b'n') => {
                self.scan.literal("null")?;
                *place = Bytes::new();
                Ok(())
            }
            _ => self.no_list(|| "[]uint8".to_owned()),
        }
    }
}

/// A number that is not a whole one of the field's width: trees hold 64 bits, or a float, of which only those without a
/// fraction become whole. What does not fit into 64 bits either becomes the smallest number, as on amd64.
fn restored(digits: &str) -> Option<i64> {
    if let Ok(n) = digits.parse() {
        return Some(n);
    }
    let n: f64 = digits.parse().ok()?;
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n);
    (n.fract() == 0.0).then_some(if fits { n as i64 } else { i64::MIN })
}

/// The text that a tree's value has when it is printed for a type that reads JSON itself.
fn printed(json: &[u8], kind: LeafKind) -> Cow<'_, [u8]> {
    match json.first() {
        Some(b'-' | b'0'..=b'9') => {
            let text = std::str::from_utf8(json).unwrap_or_default();
            let mut out = Vec::with_capacity(json.len());
            write_number(text, &mut out);
            Cow::Owned(out)
        }
        Some(b'{' | b'[') if kind == LeafKind::Raw => Cow::Owned(canonical(json)),
        _ => Cow::Borrowed(json),
    }
}
