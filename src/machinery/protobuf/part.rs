//! Parts of encoded messages, without a look at the rest.

use super::write::{tagged_len, write_tag_bytes};
use crate::reflect::MessageDesc;
use crate::wire::{Reader, Wire};

/// The body of the message that is field `number`; `None`: there is none, or it comes in pieces, or the whole is no
/// message. What stands in the other fields is not looked at.
pub fn field(body: &[u8], number: u32) -> Option<&[u8]> {
    let mut fields = Reader::new(body);
    let mut part = None;
    while let Some((found, wire)) = fields.next().ok()? {
        match (found == number, wire) {
            (false, _) => {}
            (true, Wire::Bytes(value)) if part.is_none() => part = Some(value),
            (true, _) => return None,
        }
    }
    part
}

/// The body of a message with its string field `number` set to `text`, and everything else as it is. `None` where
/// reading and writing the message could change more than that: where a field is not known to `desc`, or stands before
/// one with a smaller number.
pub fn with_string(body: &[u8], desc: &MessageDesc, number: u32, text: &str) -> Option<Vec<u8>> {
    let mut fields = Reader::new(body);
    let (mut last, mut before, mut after) = (0, 0, 0);
    while let Some((found, _)) = fields.next().ok()? {
        if found < last || !desc.fields.iter().any(|field| field.number == found) {
            return None;
        }
        last = found;
        let end = body.len() - fields.left();
        if found < number {
            before = end;
        }
        if found <= number {
            after = end;
        }
    }
    let mut out = Vec::with_capacity(body.len() + tagged_len(number, text.len()));
    out.extend_from_slice(body.get(..before)?);
    write_tag_bytes(number, text.as_bytes(), &mut out);
    out.extend_from_slice(body.get(after..)?);
    Some(out)
}
