//! Spans of time in Go's text form, `1h2m3.5s`.

use std::fmt;

use super::layout::quote;
use crate::json_text as text;
use crate::reflect::leaf::{leaf_basics, leaf_field, string_or_null};
use crate::reflect::{Leaf, LeafResult};
use crate::wire::{self, Reader, Wire};

/// A span in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Duration {
    nanos: i64,
}

/// Why a text is no span of time, in Go's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DurationError {
    /// No number, or more than 64 bits hold.
    #[error("time: invalid duration {}", quote(.0.as_bytes()))]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {}", quote(.0.as_bytes()))]
    NoUnit(String),
    /// A unit that there is not.
    #[error("time: unknown unit {} in duration {}", quote(.unit), quote(.text.as_bytes()))]
    Unit {
        /// What stands for it.
        unit: Vec<u8>,
        /// The whole text.
        text: String,
    },
}

impl Duration {
    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration { nanos }
    }

    /// At most what fits: 292 years.
    pub const fn from_secs(seconds: i64) -> Duration {
        Duration {
            nanos: seconds.saturating_mul(1_000_000_000),
        }
    }

    pub const fn as_nanos(&self) -> i64 {
        self.nanos
    }

    /// Whole seconds, rounded towards zero.
    pub const fn as_secs(&self) -> i64 {
        self.nanos / 1_000_000_000
    }

    /// As the standard library has spans, which are never negative: one that is becomes zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.nanos).unwrap_or_default())
    }

    /// Go's text form; the error is Go's text.
    pub fn parse(text: &str) -> Result<Duration, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let (negative, mut rest) = match text.as_bytes() {
            [sign @ (b'+' | b'-'), rest @ ..] => (*sign == b'-', rest),
            all => (false, all),
        };
        if rest == b"0" {
            return Ok(Duration::default());
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0u64;
        while !rest.is_empty() {
            let (part, after) = component(rest, text)?;
            total = part
                .and_then(|n| total.checked_add(n))
                .filter(|n| *n <= 1 << 63)
                .ok_or_else(invalid)?;
            rest = after;
        }
        let nanos = if negative {
            0i64.checked_sub_unsigned(total)
        } else {
            i64::try_from(total).ok()
        };
        nanos.map(Duration::from_nanos).ok_or_else(invalid)
    }
}

/// The first number with its unit in nanoseconds (`None`: too large) and what follows it.
fn component<'a>(text: &'a [u8], whole: &str) -> Result<(Option<u64>, &'a [u8]), DurationError> {
    let invalid = || DurationError::Invalid(whole.to_owned());
    let (integer, mut rest) = split(text, |b| b.is_ascii_digit());
    let mut fraction: &[u8] = &[];
    if let [b'.', after @ ..] = rest {
        (fraction, rest) = split(after, |b| b.is_ascii_digit());
    }
    if integer.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let (name, rest) = split(rest, |b| b != b'.' && !b.is_ascii_digit());
    let unit: u64 = match name {
        b"ns" => 1,
        b"us" | b"\xC2\xB5s" | b"\xCE\xBCs" => 1000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        b"" => return Err(DurationError::NoUnit(whole.to_owned())),
        _ => {
            return Err(DurationError::Unit {
                unit: name.to_vec(),
                text: whole.to_owned(),
            });
        }
    };
    let digits = integer
        .iter()
        .try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')));
    let nanos = digits
        .and_then(|n| n.checked_mul(unit))
        .and_then(|n| n.checked_add(fraction_nanos(fraction, unit)));
    Ok((nanos, rest))
}

/// The fraction of a unit, rounded down. Digits beyond the eighteenth are too small to matter.
fn fraction_nanos(digits: &[u8], unit: u64) -> u64 {
    let digits = &digits[..digits.len().min(18)];
    let value = digits.iter().fold(0u128, |n, d| n * 10 + u128::from(d - b'0'));
    (value * u128::from(unit) / 10u128.pow(digits.len() as u32)) as u64
}

fn split(text: &[u8], take: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|&&b| take(b)).count())
}

/// `1h2m3.5s`, `1.5ms`, `0s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        let n = self.nanos.unsigned_abs();
        match n {
            0 => f.write_str("0s"),
            1..1000 => write!(f, "{n}ns"),
            1000..1_000_000 => write!(f, "{}µs", Decimal(n, 1000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", Decimal(n, 1_000_000)),
            _ => {
                let minutes = n / 60_000_000_000;
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", Decimal(n % 60_000_000_000, 1_000_000_000))
            }
        }
    }
}

/// A number of nanoseconds in a unit of so many, a power of ten, without trailing zeros.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / self.1)?;
        if !self.0.is_multiple_of(self.1) {
            let digits = (self.1 + self.0 % self.1).to_string();
            write!(f, ".{}", digits[1..].trim_end_matches('0'))?;
        }
        Ok(())
    }
}

leaf_field!(Duration, Duration);

impl Leaf for Duration {
    leaf_basics!(Duration);

    fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        text::write_string(&self.to_string(), out);
    }

    fn read_json(&mut self, json: &[u8]) -> LeafResult {
        *self = Duration::parse(&string_or_null(json)?).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        wire::write_varint_field(1, self.nanos as u64, out);
    }

    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
        let mut fields = Reader::new(body);
        self.nanos = 0;
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Varint(n)) => self.nanos = n as i64,
                (1, other) => return Err(other.mismatch("Duration")),
                _ => {}
            }
        }
        Ok(())
    }
}
