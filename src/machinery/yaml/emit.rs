//! JSON text to YAML, in the form that go-yaml 2 prints: two columns of indentation, lists at the column of their key,
//! keys sorted with numbers in them compared as numbers, lines folded behind column 80.

use std::cmp::Ordering;

use super::style::{Style, is_break, is_multiline, is_printable, style};
use crate::decode::DecodeError;
use crate::field::text::float;
use crate::json::{Shape, Text, parse_shape};

/// Lines are folded at the first space behind this column.
const WIDTH: usize = 80;
/// Longer keys get a question mark in front and a line of their own.
const MAX_SIMPLE_KEY: usize = 128;
/// How deep values may nest.
const MAX_DEPTH: u32 = 500;

/// A JSON document as YAML.
pub fn from_json(json: &[u8]) -> Result<Vec<u8>, DecodeError> {
    crate::json::validate(json)?;
    let mut emitter = Emitter {
        out: Vec::with_capacity(json.len() * 2),
        column: 0,
    };
    emitter.node(
        json,
        Place {
            indent: 0,
            kind: Where::Top,
        },
        MAX_DEPTH,
    )?;
    emitter.out.push(b'\n');
    Ok(emitter.out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Top,
    /// Behind `key:`.
    Value,
    /// Behind `- `, `? ` or `: `, where a collection may begin on the same line.
    Item,
}

/// Where a value stands; `indent` is the column of the collection that holds it.
#[derive(Clone, Copy)]
struct Place {
    indent: usize,
    kind: Where,
}

impl Place {
    /// The column of lines that continue a scalar.
    fn continuation(self) -> usize {
        self.indent + 2
    }
}

struct Emitter {
    out: Vec<u8>,
    /// In characters, from 0.
    column: usize,
}

impl Emitter {
    fn put(&mut self, c: char) {
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.column = if c == '\n' { 0 } else { self.column + 1 };
    }

    fn text(&mut self, text: &str) {
        text.chars().for_each(|c| self.put(c));
    }

    /// A new line that begins at this column.
    fn line(&mut self, indent: usize) {
        self.put('\n');
        (0..indent).for_each(|_| self.put(' '));
    }

    fn node(&mut self, json: &[u8], place: Place, depth: u32) -> Result<(), DecodeError> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| DecodeError::Yaml("yaml: exceeded max depth".to_owned()))?;
        let space = if place.kind == Where::Value { " " } else { "" };
        match parse_shape(json)? {
            Shape::Object(members) if members.is_empty() => self.text(&format!("{space}{{}}")),
            Shape::Array(items) if items.is_empty() => self.text(&format!("{space}[]")),
            Shape::Object(members) => self.object(members, place, depth)?,
            Shape::Array(items) => self.array(&items, place, depth)?,
            Shape::String(text) => {
                self.text(space);
                let text = text.decode();
                self.string(&text, style(&text, false), Some(place.continuation()));
            }
            Shape::Number(text) => self.text(&format!("{space}{}", number(text))),
            Shape::Literal(word) => self.text(&format!("{space}{word}")),
        }
        Ok(())
    }

    fn object(&mut self, members: Vec<(Text<'_>, &[u8])>, place: Place, depth: u32) -> Result<(), DecodeError> {
        let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key.decode(), value)).collect();
        members.sort_by(|a, b| compare_keys(&a.0, &b.0));
        let indent = if place.kind == Where::Top { 0 } else { place.indent + 2 };
        let mut inline = place.kind != Where::Value;
        for (key, value) in members {
            if !std::mem::take(&mut inline) {
                self.line(indent);
            }
            if key.len() <= MAX_SIMPLE_KEY && !is_multiline(&key) {
                self.string(&key, style(&key, true), None);
                self.put(':');
                self.node(
                    value,
                    Place {
                        indent,
                        kind: Where::Value,
                    },
                    depth,
                )?;
            } else {
                self.text("? ");
                self.string(&key, style(&key, false), Some(indent + 2));
                self.line(indent);
                self.text(": ");
                self.node(
                    value,
                    Place {
                        indent,
                        kind: Where::Item,
                    },
                    depth,
                )?;
            }
        }
        Ok(())
    }

    fn array(&mut self, items: &[&[u8]], place: Place, depth: u32) -> Result<(), DecodeError> {
        // A list below a key stands at the key's own column.
        let indent = if place.kind == Where::Item {
            place.indent + 2
        } else {
            place.indent
        };
        let mut inline = place.kind != Where::Value;
        for item in items {
            if !std::mem::take(&mut inline) {
                self.line(indent);
            }
            self.text("- ");
            self.node(
                item,
                Place {
                    indent,
                    kind: Where::Item,
                },
                depth,
            )?;
        }
        Ok(())
    }

    /// A string; without `fold`, the column of further lines, it stays on its line.
    fn string(&mut self, text: &str, style: Style, fold: Option<usize>) {
        match style {
            Style::Plain => self.flow(text, fold, false),
            Style::Single => {
                self.put('\'');
                self.flow(text, fold, true);
                self.put('\'');
            }
            Style::Double => self.double(text, fold),
            Style::Literal => self.literal(text, fold.unwrap_or(2)),
        }
    }

    /// Plain text, or what stands between single quotes.
    fn flow(&mut self, text: &str, fold: Option<usize>, quoted: bool) {
        let mut after_space = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next_is_space = chars.peek().is_some_and(|(_, n)| *n == ' ');
            let inside = !quoted || (at > 0 && at + 1 < text.len());
            match fold {
                Some(indent) if c == ' ' && !after_space && self.column > WIDTH && inside && !next_is_space => {
                    self.line(indent);
                }
                _ => {
                    if quoted && c == '\'' {
                        self.put('\'');
                    }
                    self.put(c);
                }
            }
            after_space = c == ' ';
        }
    }

    fn double(&mut self, text: &str, fold: Option<usize>) {
        self.put('"');
        let mut after_space = false;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let fold =
                fold.filter(|_| c == ' ' && !after_space && self.column > WIDTH && at > 0 && at + 1 < text.len());
            if let Some(indent) = fold {
                self.line(indent);
                if chars.peek().is_some_and(|(_, n)| *n == ' ') {
                    self.put('\\');
                }
            } else if !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
            } else {
                self.put(c);
            }
            after_space = c == ' ';
        }
        self.put('"');
    }

    fn escape(&mut self, c: char) {
        let code = u32::from(c);
        let text = match c {
            '\0' => "\\0".to_owned(),
            '\u{7}' => "\\a".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{b}' => "\\v".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{1b}' => "\\e".to_owned(),
            '"' | '\\' => format!("\\{c}"),
            '\u{85}' => "\\N".to_owned(),
            '\u{a0}' => "\\_".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            _ if code <= 0xFF => format!("\\x{code:02X}"),
            _ if code <= 0xFFFF => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        self.text(&text);
    }

    /// A block behind a bar; its last line break is the one that follows every node.
    fn literal(&mut self, text: &str, indent: usize) {
        self.put('|');
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        let body = match text.strip_suffix(is_break) {
            None => {
                self.put('-');
                text
            }
            Some(body) => {
                if body.is_empty() || body.ends_with(is_break) {
                    self.put('+');
                }
                body
            }
        };
        for line in body.split('\n') {
            self.put('\n');
            if !line.is_empty() {
                (0..indent).for_each(|_| self.put(' '));
                self.text(line);
            }
        }
    }
}

/// Numbers as Go prints them with %g: an exponent of two digits below 10⁻⁴ and from 10⁶ on. Whole numbers stay.
fn number(json: &str) -> String {
    if !json.contains(['.', 'e', 'E']) && json.parse::<i128>().is_ok_and(|n| n <= i128::from(u64::MAX)) {
        return json.to_owned();
    }
    let Ok(n) = json.parse::<f64>() else {
        return json.to_owned();
    };
    float(n)
}

/// The order of keys: letters behind everything else, digits as the numbers they spell.
fn compare_keys(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(x, y)| x != y) else {
        return a.len().cmp(&b.len());
    };
    let (x, y) = (a[at], b[at]);
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // Zeros behind other digits count: 10 comes after 2.
    let behind_digits = a[..at].iter().rev().take_while(|c| c.is_numeric()).any(|c| *c != '0');
    let start = i64::from((x == '0' || y == '0') && behind_digits);
    let ((n, n_end), (m, m_end)) = (digits_from(&a, at, start), digits_from(&b, at, start));
    n.cmp(&m).then(n_end.cmp(&m_end)).then(x.cmp(&y))
}

fn digits_from(text: &[char], at: usize, start: i64) -> (i64, usize) {
    let digits = text[at..].iter().take_while(|c| c.is_numeric());
    digits.fold((start, at), |(n, end), c| {
        let digit = i64::from(u32::from(*c)) - i64::from(u32::from('0'));
        (n.wrapping_mul(10).wrapping_add(digit), end + 1)
    })
}
