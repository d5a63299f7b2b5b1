//! RFC 3339 as Go's `time.Parse` takes it, with its leniency (one-digit hours, a comma before the fraction, offsets up
//! to 24:60) and its error texts.

use std::fmt::Write as _;

use super::{Time, civil};

/// Why a text is no time, in Go's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TimeError {
    /// Something else stands where an element of the layout should.
    #[error(
        "parsing time {} as {}: cannot parse {} as \"{element}\"",
        quote(.text.as_bytes()),
        quote(.layout.as_bytes()),
        quote(.rest)
    )]
    Element {
        /// The whole text.
        text: String,
        /// As Go writes it: `2006-01-02T15:04:05Z07:00`.
        layout: &'static str,
        /// From where it can't be read on.
        rest: Vec<u8>,
        /// `01`.
        element: &'static str,
    },
    /// A number that no calendar or clock shows.
    #[error("parsing time {}: {what} out of range", quote(.text.as_bytes()))]
    Range {
        /// The whole text.
        text: String,
        /// `month`.
        what: &'static str,
    },
    /// Something follows it.
    #[error("parsing time {}: extra text: {}", quote(.text.as_bytes()), quote(.rest))]
    Extra {
        /// The whole text.
        text: String,
        /// What follows.
        rest: Vec<u8>,
    },
}

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Appends `2006-01-02T15:04:05`.
pub(super) fn write_seconds(unix: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil::date(unix.div_euclid(86_400));
    let second = unix.rem_euclid(86_400);
    if year < 0 {
        out.push(b'-');
    }
    let year = year.unsigned_abs();
    if year > 9999 {
        out.extend_from_slice((year / 10_000).to_string().as_bytes());
    }
    write_two(year / 100 % 100, out);
    write_two(year % 100, out);
    for (mark, n) in [
        (b'-', month),
        (b'-', day),
        (b'T', second / 3600),
        (b':', second / 60 % 60),
        (b':', second % 60),
    ] {
        out.push(mark);
        write_two(n.unsigned_abs(), out);
    }
}

fn write_two(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
}

/// What stands in the text at one place, and how far it has been read.
struct Parser<'a> {
    text: &'a str,
    layout: &'static str,
    rest: &'a [u8],
}

/// A number that two digits spelled.
type Pair = (i64, usize);

pub(super) fn parse(text: &str, micros: bool) -> Result<Time, TimeError> {
    let layout = if micros { MICROS_LAYOUT } else { SECONDS_LAYOUT };
    let mut p = Parser {
        text,
        layout,
        rest: text.as_bytes(),
    };
    let year = p.year()?;
    p.mark("-")?;
    let month = p.number("01", true, 1..=12, "month")?;
    p.mark("-")?;
    let day = p.number("02", true, 0..=99, "day")?;
    p.mark("T")?;
    let hour = p.number("15", false, 0..=23, "hour")?;
    p.mark(":")?;
    let minute = p.number("04", true, 0..=59, "minute")?;
    p.mark(":")?;
    let second = p.number("05", true, 0..=59, "second")?;
    let nanos = if micros { p.six_decimals()? } else { p.fraction() };
    let offset = p.offset()?;
    if !p.rest.is_empty() {
        return Err(TimeError::Extra {
            text: text.to_owned(),
            rest: p.rest.to_vec(),
        });
    }
    if !(1..=civil::days_in_month(year, month)).contains(&day) {
        return Err(p.out_of_range("day"));
    }
    let seconds = civil::days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Ok(Time::from_unix(seconds, nanos))
}

impl<'a> Parser<'a> {
    fn out_of_range(&self, what: &'static str) -> TimeError {
        TimeError::Range {
            text: self.text.to_owned(),
            what,
        }
    }

    fn cannot(&self, element: &'static str) -> TimeError {
        TimeError::Element {
            text: self.text.to_owned(),
            layout: self.layout,
            rest: self.rest.to_vec(),
            element,
        }
    }

    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = rest;
        head
    }

    fn mark(&mut self, mark: &'static str) -> Result<(), TimeError> {
        self.rest = self
            .rest
            .strip_prefix(mark.as_bytes())
            .ok_or_else(|| self.cannot(mark))?;
        Ok(())
    }

    fn year(&mut self) -> Result<i64, TimeError> {
        let digits = self.rest.get(..4).filter(|d| d.iter().all(u8::is_ascii_digit));
        let digits = digits.ok_or_else(|| self.cannot("2006"))?;
        self.take(4);
        Ok(number(digits))
    }

    /// A number of two digits, or of one where `fixed` does not ask for two.
    fn number(
        &mut self,
        element: &'static str,
        fixed: bool,
        range: std::ops::RangeInclusive<i64>,
        name: &'static str,
    ) -> Result<i64, TimeError> {
        let (n, used) = pair(self.rest, fixed).ok_or_else(|| self.cannot(element))?;
        if !range.contains(&n) {
            return Err(self.out_of_range(name));
        }
        self.take(used);
        Ok(n)
    }

    fn six_decimals(&mut self) -> Result<u32, TimeError> {
        match self.rest.get(..7) {
            Some([b'.' | b',', digits @ ..]) if digits.iter().all(u8::is_ascii_digit) => {
                self.take(7);
                Ok(number(digits) as u32 * 1000)
            }
            _ => Err(self.cannot(".000000")),
        }
    }

    /// Nanoseconds; digits after the ninth are dropped.
    fn fraction(&mut self) -> u32 {
        let [b'.' | b',', digits @ ..] = self.rest else {
            return 0;
        };
        let len = digits.iter().take_while(|d| d.is_ascii_digit()).count();
        if len == 0 {
            return 0;
        }
        self.take(1 + len);
        let digits = &digits[..len.min(9)];
        number(digits) as u32 * 10u32.pow(9 - digits.len() as u32)
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, TimeError> {
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let Some([sign @ (b'+' | b'-'), hours @ .., b':', m1, m2]) = self.rest.get(..6) else {
            return Err(self.cannot("Z07:00"));
        };
        let (Some((hours, _)), Some((minutes, _))) = (pair(hours, true), pair(&[*m1, *m2], true)) else {
            return Err(self.cannot("Z07:00"));
        };
        // Go's order: the minute's message replaces that of the hour.
        if minutes > 60 {
            return Err(self.out_of_range("time zone offset minute"));
        }
        if hours > 24 {
            return Err(self.out_of_range("time zone offset hour"));
        }
        self.take(6);
        let seconds = hours * 3600 + minutes * 60;
        Ok(if *sign == b'-' { -seconds } else { seconds })
    }
}

fn pair(text: &[u8], fixed: bool) -> Option<Pair> {
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => Some((number(&[*a, *b]), 2)),
        [a @ b'0'..=b'9', ..] if !fixed => Some((number(&[*a]), 1)),
        _ => None,
    }
}

fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0'))
}

/// Bytes of a text that are quoted; an error shows no more of it.
const MAX_QUOTED: usize = 64 << 10;

/// Go's `time` package quotes this way: what is not printable ASCII shows as `\x..` bytes.
pub(super) fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &b in &text[..text.len().min(MAX_QUOTED)] {
        match b {
            b'"' | b'\\' => out.extend(['\\', char::from(b)]),
            b' '..=0x7F => out.push(char::from(b)),
            _ => {
                // A text takes whatever is written to it.
                let _ = write!(out, "\\x{b:02x}");
            }
        }
    }
    out.push('"');
    out
}
