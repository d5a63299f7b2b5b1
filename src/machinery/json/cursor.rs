//! A walk over JSON text that is known to be valid: no errors, no copies.

use crate::json_text::scan::{Text, plain_len};

/// A place in valid JSON text. Over text that is not valid it ends somewhere, without a panic.
#[derive(Default)]
pub(crate) struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Self {
        Cursor { json, at: 0 }
    }

    /// The first byte of what comes next.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.json.get(self.at) {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }

    /// Steps into the object or array at hand.
    pub(crate) fn open(&mut self) {
        self.at += 1;
    }

    /// Passes the comma before another member or element, or the end of the object or array. Returns whether there is
    /// another.
    pub(crate) fn more(&mut self) -> bool {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                true
            }
            Some(b'}' | b']') => {
                self.at += 1;
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    /// The key at hand; leaves the cursor behind the colon.
    pub(crate) fn key(&mut self) -> Text<'a> {
        self.peek();
        let key = self.string();
        if self.peek() == Some(b':') {
            self.at += 1;
        }
        key
    }

    /// The string at hand.
    pub(crate) fn string(&mut self) -> Text<'a> {
        self.at += 1;
        let start = self.at;
        let mut plain = true;
        loop {
            self.at += plain_len(self.json.get(self.at..).unwrap_or_default());
            match self.json.get(self.at) {
                Some(b'"') | None => break,
                Some(b'\\') => {
                    plain = false;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }
        let inner = self.json.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Text { inner, plain }
    }

    /// Passes the value at hand and returns its text.
    pub(crate) fn skip(&mut self) -> &'a [u8] {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => drop(self.string()),
            Some(b'{' | b'[') => self.skip_nested(),
            _ => {
                while let Some(b) = self.json.get(self.at)
                    && !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')
                {
                    self.at += 1;
                }
            }
        }
        // Over text that is not valid: something has to be passed, or a loop would not end.
        if self.at == start {
            self.at += 1;
        }
        self.json.get(start..self.at).unwrap_or_default()
    }

    fn skip_nested(&mut self) {
        let mut depth = 0usize;
        while let Some(b) = self.json.get(self.at) {
            match b {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Where the next token begins, in bytes from the start.
    pub(crate) fn position_of_next(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Passes all that is left: nothing comes next.
    pub(crate) fn end(&mut self) {
        self.at = self.json.len();
    }

    /// The text between an earlier position and here.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.json.get(start..self.at).unwrap_or_default()
    }
}
