//! A scanner over JSON text with the error texts of Go's.

use std::borrow::Cow;

use super::{strings as text, swar};
use crate::decode::DecodeError;

/// How deep values may nest.
pub(crate) const MAX_DEPTH: usize = 10_000;

const VALUE: &str = "looking for beginning of value";
const FIRST_KEY: &str = "looking for beginning of object key string";
const AFTER_KEY: &str = "after object key";
pub(crate) const AFTER_PAIR: &str = "after object key:value pair";
pub(crate) const AFTER_ELEMENT: &str = "after array element";

/// How the contexts start in which no space may stand.
const SPACE_FAILS: [&str; 6] = [
    "in numeric",
    "after decimal",
    "in exponent",
    "in literal",
    "in \\u hexadecimal",
    "in string escape",
];

/// Whether the bytes are exactly one JSON value.
pub fn validate(json: &[u8]) -> Result<(), DecodeError> {
    let mut scan = Scanner::new(json);
    scan.skip_value().and_then(|_| scan.end()).map_err(|e| *e)
}

/// Whether the text is a JSON object of nothing but objects, without white space and with no escapes but those of quotes
/// and backslashes: then [`validate`] finds nothing wrong. Says no of what would take a closer look. FieldsV1 is such,
/// and every object in the store has it.
pub(crate) fn is_of_objects(json: &[u8]) -> bool {
    let [b'{', rest @ ..] = json else { return false };
    let (mut rest, mut depth) = (rest, 1_usize);
    // A value may end here, and a member may follow.
    let (mut may_end, mut may_follow) = (true, true);
    loop {
        rest = match rest {
            [b'}', rest @ ..] if may_end => {
                depth -= 1;
                if depth == 0 {
                    return rest.is_empty();
                }
                may_follow = false;
                rest
            }
            [b',', rest @ ..] if may_end && !may_follow => {
                (may_end, may_follow) = (false, true);
                rest
            }
            [b'"', text @ ..] if may_follow => {
                let Some(rest) = behind_key(text) else { return false };
                depth += 1;
                if depth > MAX_DEPTH {
                    return false;
                }
                may_end = true;
                rest
            }
            _ => return false,
        };
    }
}

/// What stands behind a key, whose first quote has been passed, and the brace behind it.
fn behind_key(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        rest = rest.get(plain_len(rest)..)?;
        rest = match rest {
            [b'"', rest @ ..] => return rest.strip_prefix(b":{"),
            [b'\\', b'"' | b'\\', rest @ ..] => rest,
            _ => return None,
        };
    }
}

/// Whether the text, of one valid value, is an array or object without content.
pub(crate) fn is_empty(json: &[u8]) -> bool {
    match json {
        [b'[' | b'{', inner @ .., b']' | b'}'] => inner.trim_ascii().is_empty(),
        _ => false,
    }
}

/// An error within the reader: boxed, so that results stay small.
pub(crate) type Failure = Box<DecodeError>;

pub(crate) struct Scanner<'a> {
    src: &'a [u8],
    /// Where the next token is looked for, in bytes from the start.
    pub(crate) pos: usize,
}

/// What stands between the quotes of a string.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) inner: &'a [u8],
    /// There is no escape in it.
    pub(crate) plain: bool,
}

impl<'a> Text<'a> {
    /// The text without escapes, as it is written.
    pub(crate) fn bytes(self) -> Cow<'a, [u8]> {
        match self.plain {
            true => Cow::Borrowed(self.inner),
            false => Cow::Owned(self.decode().into_owned().into()),
        }
    }

    pub(crate) fn decode(self) -> Cow<'a, str> {
        if self.plain {
            return match std::str::from_utf8(self.inner) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => text::lossy(self.inner),
            };
        }
        // The scanner has checked the escapes.
        text::unescape(self.inner).unwrap_or_default()
    }
}

/// How many bytes stand before the quote that ends a string; all, if none does.
#[inline]
pub(crate) fn string_len(text: &[u8]) -> usize {
    let mut len = 0;
    loop {
        len += plain_len(text.get(len..).unwrap_or_default());
        match text.get(len) {
            Some(b'\\') => len += 2,
            Some(b'"') => return len,
            Some(_) => len += 1,
            None => return text.len(),
        }
    }
}

/// How many bytes stand before the first quote, backslash or control character.
#[inline]
pub(crate) fn plain_len(text: &[u8]) -> usize {
    let blocks = text.as_chunks().0.iter().take_while(|block| swar::is_plain(block));
    let begin = blocks.count() * size_of::<swar::Block>();
    begin + short_plain_len(text.get(begin..).unwrap_or_default())
}

/// The same of a short text, eight bytes at a time.
#[inline]
fn short_plain_len(text: &[u8]) -> usize {
    let (chunks, rest) = text.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        let stops = swar::not_plain(u64::from_le_bytes(*chunk));
        if stops != 0 {
            return i * 8 + stops.trailing_zeros() as usize / 8;
        }
    }
    let tail = rest
        .iter()
        .take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\')
        .count();
    chunks.len() * 8 + tail
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(src: &'a [u8]) -> Self {
        Scanner { src, pos: 0 }
    }

    /// The next byte that is not white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let b = *self.src.get(self.pos)?;
            if b > b' ' || !matches!(b, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(b);
            }
            self.pos += 1;
        }
    }

    fn current(&self) -> Option<u8> {
        self.src.get(self.pos).copied()
    }

    /// The error for the byte at hand, or for the end.
    #[cold]
    pub(crate) fn fail(&self, context: &str) -> Failure {
        let Some(b) = self.current() else {
            // Go reads a space after the end, which is wrong only inside of a number, a word or an escape.
            let message = match SPACE_FAILS.iter().any(|start| context.starts_with(start)) {
                true => format!("invalid character ' ' {context}"),
                false => "unexpected end of JSON input".to_owned(),
            };
            return Box::new(DecodeError::Syntax {
                message,
                offset: self.src.len(),
            });
        };
        Box::new(DecodeError::Syntax {
            message: format!("invalid character {} {context}", quote_byte(b)),
            offset: self.pos + 1,
        })
    }

    /// The error where a value should begin.
    #[cold]
    pub(crate) fn no_value(&self) -> Failure {
        self.fail(VALUE)
    }

    #[cold]
    pub(crate) fn too_deep(&self) -> Failure {
        self.fail("exceeded max depth")
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.src.get(self.pos..).unwrap_or_default()
    }

    /// Checks that nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        if self.peek().is_some() {
            Err(self.fail("after top-level value"))
        } else {
            Ok(())
        }
    }

    /// A key and the colon behind it.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Text<'a>, Failure> {
        if self.peek() != Some(b'"') {
            return Err(self.fail(FIRST_KEY));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.fail(AFTER_KEY));
        }
        self.pos += 1;
        Ok(key)
    }

    /// The string that begins at hand.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text<'a>, Failure> {
        self.pos += 1;
        let start = self.pos;
        let mut plain = true;
        loop {
            let rest = self.src.get(self.pos..).unwrap_or_default();
            self.pos += plain_len(rest);
            match self.current() {
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    self.escape()?;
                }
                _ => return Err(self.fail("in string literal")),
            }
        }
        let inner = self.src.get(start..self.pos).unwrap_or_default();
        self.pos += 1;
        Ok(Text { inner, plain })
    }

    fn escape(&mut self) -> Result<(), Failure> {
        self.pos += 1;
        match self.current() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.pos += 1,
            Some(b'u') => {
                self.pos += 1;
                for _ in 0..4 {
                    if !self.current().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return Err(self.fail("in \\u hexadecimal character escape"));
                    }
                    self.pos += 1;
                }
            }
            _ => return Err(self.fail("in string escape code")),
        }
        Ok(())
    }

    /// The number that begins at hand.
    pub(crate) fn number(&mut self) -> Result<&'a [u8], Failure> {
        let start = self.pos;
        if self.current() == Some(b'-') {
            self.pos += 1;
        }
        match self.current() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.fail("in numeric literal")),
        }
        if self.current() == Some(b'.') {
            self.pos += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.current() {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.current() {
                self.pos += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(self.src.get(start..self.pos).unwrap_or_default())
    }

    fn digits(&mut self) {
        while self.current().is_some_and(|b| b.is_ascii_digit()) {
            self.pos += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), Failure> {
        if !self.current().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.fail(context));
        }
        self.digits();
        Ok(())
    }

    /// `true`, `false` or `null`, of which the first letter is at hand.
    pub(crate) fn literal(&mut self, word: &str) -> Result<(), Failure> {
        for (i, &b) in word.as_bytes().iter().enumerate() {
            if self.current() != Some(b) {
                // Go expects the second l of null twice, but no one sees a difference.
                return Err(self.fail(&format!(
                    "in literal {word} (expecting {})",
                    quote_byte(word.as_bytes()[i])
                )));
            }
            self.pos += 1;
        }
        Ok(())
    }

    /// A value that is neither object nor array.
    fn skip_scalar(&mut self, first: u8) -> Result<(), Failure> {
        match first {
            b'"' => self.string().map(drop),
            b'-' | b'0'..=b'9' => self.number().map(drop),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => Err(self.no_value()),
        }
    }

    /// Passes over one value and returns its text. Not recursive, so that depth costs no stack.
    pub(crate) fn skip_value(&mut self) -> Result<&'a [u8], Failure> {
        let first = self.peek();
        let start = self.pos;
        match first {
            Some(b'{' | b'[') => self.skip_nested()?,
            Some(b) => self.skip_scalar(b)?,
            None => return Err(self.no_value()),
        }
        Ok(self.src.get(start..self.pos).unwrap_or_default())
    }

    fn skip_nested(&mut self) -> Result<(), Failure> {
        let mut open = Open::default();
        loop {
            // A value begins here.
            match self.peek() {
                Some(b @ (b'{' | b'[')) => {
                    if open.depth == MAX_DEPTH {
                        return Err(self.too_deep());
                    }
                    self.pos += 1;
                    let object = b == b'{';
                    if self.peek() != Some(if object { b'}' } else { b']' }) {
                        open.push(object);
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                    self.pos += 1;
                }
                Some(b) => self.skip_scalar(b)?,
                None => return Err(self.no_value()),
            }
            // A value has ended here.
            loop {
                let Some(object) = open.innermost() else { return Ok(()) };
                match (self.peek(), object) {
                    (Some(b','), _) => {
                        self.pos += 1;
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.pos += 1;
                        open.depth -= 1;
                    }
                    (_, true) => return Err(self.fail(AFTER_PAIR)),
                    (_, false) => return Err(self.fail(AFTER_ELEMENT)),
                }
            }
        }
    }
}

/// One value with what is directly in it.
pub(crate) enum Shape<'a> {
    Object(Vec<(Text<'a>, &'a [u8])>),
    Array(Vec<&'a [u8]>),
    String(Text<'a>),
    Number(&'a str),
    /// `true`, `false` or `null`.
    Literal(&'a str),
}

/// Takes the value that the text begins with apart.
pub(crate) fn parse_shape(json: &[u8]) -> Result<Shape<'_>, DecodeError> {
    Scanner::new(json).parse_value().map_err(|e| *e)
}

impl<'a> Scanner<'a> {
    fn parse_value(&mut self) -> Result<Shape<'a>, Failure> {
        match self.peek() {
            Some(open @ (b'{' | b'[')) => self.parse_nested(open == b'{'),
            Some(b'"') => self.string().map(Shape::String),
            first => {
                let text = std::str::from_utf8(self.skip_value()?).unwrap_or_default();
                Ok(if matches!(first, Some(b't' | b'f' | b'n')) {
                    Shape::Literal(text)
                } else {
                    Shape::Number(text)
                })
            }
        }
    }

    fn parse_nested(&mut self, object: bool) -> Result<Shape<'a>, Failure> {
        let (mut members, mut items) = (Vec::new(), Vec::new());
        let close = if object { b'}' } else { b']' };
        self.pos += 1;
        let mut more = self.peek() != Some(close);
        while more {
            if object {
                members.push((self.key()?, self.skip_value()?));
            } else {
                items.push(self.skip_value()?);
            }
            more = self.peek() == Some(b',');
            if more {
                self.pos += 1;
            } else if self.peek() != Some(close) {
                return Err(self.fail(if object { AFTER_PAIR } else { AFTER_ELEMENT }));
            }
        }
        Ok(if object {
            Shape::Object(members)
        } else {
            Shape::Array(items)
        })
    }
}

/// The objects and arrays that are open: one bit each.
#[derive(Default)]
struct Open {
    depth: usize,
    /// The outermost 128: set for an object.
    near: u128,
    far: Vec<bool>,
}

impl Open {
    fn push(&mut self, object: bool) {
        if self.depth < 128 {
            self.near = self.near & !(1 << self.depth) | u128::from(object) << self.depth;
        } else {
            self.far.truncate(self.depth - 128);
            self.far.push(object);
        }
        self.depth += 1;
    }

    fn innermost(&self) -> Option<bool> {
        let last = self.depth.checked_sub(1)?;
        if last < 128 {
            Some(self.near >> last & 1 == 1)
        } else {
            self.far.get(last - 128).copied()
        }
    }
}

/// A byte as Go quotes a character.
fn quote_byte(b: u8) -> String {
    match b {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        7 => "'\\a'".to_owned(),
        8 => "'\\b'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        11 => "'\\v'".to_owned(),
        12 => "'\\f'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        0..0x20 | 0x7F => format!("'\\x{b:02x}'"),
        0x80..=0xA0 | 0xAD => format!("'\\u{b:04x}'"),
        _ => format!("'{}'", char::from(b)),
    }
}
