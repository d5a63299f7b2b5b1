//! The wire format of protobuf: varints, tags and a reader over the fields of one message.

/// The types of fields on the wire.
pub(crate) const VARINT: u32 = 0;
pub(crate) const FIXED64: u32 = 1;
/// Length-delimited.
pub(crate) const BYTES: u32 = 2;

/// How deep groups of unknown fields may nest.
const MAX_GROUP_DEPTH: u32 = 32;

/// A varint, and how many bytes of the array it takes.
pub(crate) fn varint(mut n: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut last) = ([0; 10], 0);
    while n >= 0x80 {
        bytes[last] = n as u8 | 0x80;
        n >>= 7;
        last += 1;
    }
    bytes[last] = n as u8;
    (bytes, last + 1)
}

/// Appends a varint.
#[inline]
pub(crate) fn write_varint(n: u64, out: &mut Vec<u8>) {
    if n < 0x80 {
        out.push(n as u8);
    } else {
        let (bytes, len) = varint(n);
        out.extend_from_slice(&bytes[..len]);
    }
}

/// How many bytes a varint takes.
pub(crate) fn varint_len(n: u64) -> usize {
    (64 - (n | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends what begins a field.
#[inline]
pub(crate) fn write_tag(number: u32, kind: u32, out: &mut Vec<u8>) {
    write_varint(u64::from(number << 3 | kind), out);
}

/// Appends a varint field.
pub(crate) fn write_varint_field(number: u32, value: u64, out: &mut Vec<u8>) {
    write_tag(number, VARINT, out);
    write_varint(value, out);
}

/// Appends a length-delimited field.
#[inline]
pub(crate) fn write_bytes_field(number: u32, value: &[u8], out: &mut Vec<u8>) {
    if number < 16 && value.len() < 0x80 {
        // Most fields: a byte each for tag and length.
        out.extend_from_slice(&[(number << 3 | BYTES) as u8, value.len() as u8]);
    } else {
        write_tag(number, BYTES, out);
        write_varint(value.len() as u64, out);
    }
    out.extend_from_slice(value);
}

/// The value of a field as it stands on the wire.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
    /// A group, skipped.
    Group,
}

impl Wire<'_> {
    fn number(&self) -> u32 {
        match self {
            Wire::Varint(_) => 0,
            Wire::Fixed64(_) => 1,
            Wire::Bytes(_) => 2,
            Wire::Group => 3,
            Wire::Fixed32(_) => 5,
        }
    }

    /// The error for a field of another type than the message declares.
    pub(crate) fn mismatch(&self, field: &str) -> String {
        format!("proto: wrong wireType = {} for field {field}", self.number())
    }
}

/// What is wrong with bytes that are no protobuf.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("unexpected EOF")]
    Eof,
    #[error("proto: illegal tag {0} (wire type {1})")]
    Tag(u64, u32),
    #[error("proto: illegal wireType {0}")]
    WireType(u32),
    #[error("proto: wiretype end group for non-group")]
    EndGroup,
    #[error("proto: groups nest too deeply")]
    Depth,
    #[error("proto: integer overflow")]
    Overflow,
}

impl From<Fault> for String {
    fn from(fault: Fault) -> String {
        fault.to_string()
    }
}

/// Reads the fields of one message in the order in which they stand.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Reader { rest: body }
    }

    /// The next field's number and value; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        // Most fields have a tag and a length of one byte.
        if let [tag, len, rest @ ..] = self.rest
            && *tag & 0x87 == BYTES as u8
            && *tag > 7
            && *len < 0x80
            && let Some((value, rest)) = rest.split_at_checked(usize::from(*len))
        {
            self.rest = rest;
            return Ok(Some((u32::from(*tag >> 3), Wire::Bytes(value))));
        }
        self.next_any()
    }

    fn next_any(&mut self) -> Result<Option<(u32, Wire<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        if kind == 4 {
            return Err(Fault::EndGroup);
        }
        Ok(Some((number, self.value(kind)?)))
    }

    /// How many bytes have not been read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next number of a packed list; `None` at the end.
    pub(crate) fn next_packed(&mut self) -> Result<Option<u64>, Fault> {
        if self.rest.is_empty() {
            Ok(None)
        } else {
            self.varint().map(Some)
        }
    }

    fn tag(&mut self) -> Result<(u32, u32), Fault> {
        let tag = self.varint()?;
        let (number, kind) = ((tag >> 3) as u32, (tag & 7) as u32);
        if number == 0 || tag >> 32 != 0 {
            return Err(Fault::Tag(tag >> 3, kind));
        }
        Ok((number, kind))
    }

    fn value(&mut self, kind: u32) -> Result<Wire<'a>, Fault> {
        match kind {
            0 => self.varint().map(Wire::Varint),
            1 => Ok(Wire::Fixed64(u64::from_le_bytes(self.array()?))),
            2 => {
                let len = self.varint()?;
                let len = usize::try_from(len).map_err(|_| Fault::Eof)?;
                let (value, rest) = self.rest.split_at_checked(len).ok_or(Fault::Eof)?;
                self.rest = rest;
                Ok(Wire::Bytes(value))
            }
            3 => self.skip_group(),
            5 => Ok(Wire::Fixed32(u32::from_le_bytes(self.array()?))),
            _ => Err(Fault::WireType(kind)),
        }
    }

    fn skip_group(&mut self) -> Result<Wire<'a>, Fault> {
        let mut depth = 1;
        while depth > 0 {
            match self.tag()?.1 {
                3 if depth == MAX_GROUP_DEPTH => return Err(Fault::Depth),
                3 => depth += 1,
                4 => depth -= 1,
                kind => {
                    self.value(kind)?;
                }
            }
        }
        Ok(Wire::Group)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (value, rest) = self.rest.split_first_chunk::<N>().ok_or(Fault::Eof)?;
        self.rest = rest;
        Ok(*value)
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        if let [b, rest @ ..] = self.rest
            && *b < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*b));
        }
        let mut n = 0u64;
        for shift in 0..10 {
            let [b, rest @ ..] = self.rest else {
                return Err(Fault::Eof);
            };
            self.rest = rest;
            n |= u64::from(b & 0x7F) << (7 * shift);
            if *b < 0x80 {
                return Ok(n);
            }
        }
        Err(Fault::Overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for n in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            write_varint_field(5, n, &mut out);
            assert_eq!(Reader::new(&out).next(), Ok(Some((5, Wire::Varint(n)))));
        }
    }

    #[test]
    fn refuses_broken_input() {
        let cases: &[(&[u8], Fault)] = &[
            (&[0x0A, 5, 1], Fault::Eof),
            (&[0x80], Fault::Eof),
            (&[0x00, 1], Fault::Tag(0, 0)),
            (&[0x02, 1, 0], Fault::Tag(0, 2)),
            (&[0x0C], Fault::EndGroup),
            (&[0x0F], Fault::WireType(7)),
            (&[0xFF; 11], Fault::Overflow),
            (&[0x0B; 40], Fault::Depth),
            (
                &[0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
                Fault::Eof,
            ),
        ];
        for (input, want) in cases {
            assert_eq!(Reader::new(input).next(), Err(*want), "{input:?}");
        }
        assert_eq!(
            Reader::new(&[0x0B, 0x10, 1, 0x0C, 0x08, 7]).next(),
            Ok(Some((1, Wire::Group)))
        );
    }
}
