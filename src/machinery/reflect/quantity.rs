//! Exact decimal quantities with suffixes: `100m`, `1.5Gi`, `2e3`. No floating point anywhere.
//!
//! A quantity is its canonical text; the number behind it is worked out when something is computed. Reading keeps to
//! the rules of Kubernetes: values finer than one billionth are rounded away from zero, binary ones end at 2⁶³-1, and a
//! text that is canonical already is kept as it is.

mod decimal;

use std::cmp::Ordering;
use std::fmt;

use decimal::Decimal;

use crate::json_text as text;
use crate::reflect::leaf::{leaf_basics, leaf_field};
use crate::reflect::{Leaf, LeafResult};
use crate::wire::{self, Reader, Wire};

/// Why a text is no quantity. The texts are those of Kubernetes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// A number of something. Equality and order are those of the number, whatever the suffixes.
#[derive(Clone, Default)]
pub struct Quantity {
    /// Empty: zero.
    text: String,
}

/// How a quantity is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// Powers of ten with letters: n u m k M G T P E.
    DecimalSi,
    /// Powers of 1024: Ki Mi Gi Ti Pi Ei.
    BinarySi,
    /// Powers of ten as `e3`.
    DecimalExponent,
}

/// Exponents of ten and their letters.
const DECIMAL: [(&str, i32); 10] = [
    ("", 0),
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Exponents of two, by place: the first is 10, the second 20 …
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The finest scale there is: billionths.
const NANO: i64 = -9;

/// A text taken apart.
struct Parts<'a> {
    negative: bool,
    /// Without leading zeros, "0" if there is nothing else.
    integer: &'a str,
    fraction: &'a str,
    format: Format,
    /// Of ten, or of two for [`Format::BinarySi`].
    exponent: i32,
}

impl Quantity {
    /// Reads and canonicalises a text.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = Parts::read(text)?;
        if parts.is_canonical() {
            return Ok(Quantity { text: text.to_owned() });
        }
        if let Some(n) = parts.whole_binary() {
            return Ok(Quantity {
                text: binary_text(parts.negative, n),
            });
        }
        let (number, format) = parts.number();
        Ok(Quantity::from_decimal(&number, format))
    }

    /// A whole number.
    pub fn from_int(n: i64) -> Quantity {
        let number = Decimal::new(n < 0, n.unsigned_abs().to_string().bytes(), 0);
        Quantity::from_decimal(&number, Format::DecimalSi)
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        if self.text.is_empty() { "0" } else { &self.text }
    }

    /// Whether the number is 0.
    pub fn is_zero(&self) -> bool {
        match self.few_thousandths() {
            Some(number) => number == 0,
            None => self.decimal().0.is_zero(),
        }
    }

    /// The thousandths of a whole number of few digits with one of the usual suffixes, as nearly all amounts are; `None`
    /// for what takes a closer look.
    fn few_thousandths(&self) -> Option<i64> {
        const MOST_DIGITS: usize = 9;
        let text = self.as_str();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=MOST_DIGITS).contains(&digits) {
            return None;
        }
        let (number, suffix) = text.split_at_checked(digits)?;
        let number = number.bytes().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        let unit = match suffix {
            "m" => 1,
            "" => 1_000,
            "k" => 1_000_000,
            "M" => 1_000_000_000,
            "G" => 1_000_000_000_000,
            "Ki" => 1_000 << 10,
            "Mi" => 1_000 << 20,
            "Gi" => 1_000 << 30,
            _ => return None,
        };
        number.checked_mul(unit)
    }

    /// Whether the number is below 0.
    pub fn is_negative(&self) -> bool {
        self.text.starts_with('-') && !self.is_zero()
    }

    /// Rounds away from zero to a multiple of 10^`scale`. Returns whether nothing was lost.
    pub fn round_up(&mut self, scale: i32) -> bool {
        if scale <= -3 && self.is_plain() {
            return true;
        }
        let (mut number, format) = self.decimal();
        let exact = number.round_up(i64::from(scale));
        if !exact {
            *self = Quantity::from_decimal(&number, format);
        }
        exact
    }

    /// Whether the text is a whole number of thousandths or of something greater: digits without a point, and at most
    /// one of the suffixes from `m` up. Says no of what takes a closer look.
    fn is_plain(&self) -> bool {
        let text = self.as_str();
        let suffix = text
            .trim_start_matches('-')
            .trim_start_matches(|c: char| c.is_ascii_digit());
        matches!(
            suffix,
            "" | "m" | "k" | "M" | "G" | "T" | "P" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
        )
    }

    /// The number in units of 10^`scale`, rounded away from zero, at most what fits.
    pub fn scaled_value(&self, scale: i32) -> i64 {
        let (mut number, _) = self.decimal();
        number.round_up(i64::from(scale));
        number.units(i64::from(scale))
    }

    /// The number, rounded away from zero to a whole one.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Thousandths, rounded away from zero.
    pub fn milli_value(&self) -> i64 {
        self.few_thousandths().unwrap_or_else(|| self.scaled_value(-3))
    }

    /// The sum, written as this one is; if this one is zero, as the other.
    #[must_use]
    pub fn plus(&self, other: &Quantity) -> Quantity {
        self.sum(other, other.decimal().0)
    }

    /// The difference, written as [`Quantity::plus`] says.
    #[must_use]
    pub fn minus(&self, other: &Quantity) -> Quantity {
        self.sum(other, other.decimal().0.negated())
    }

    fn sum(&self, written_as: &Quantity, other: Decimal) -> Quantity {
        let (number, format) = self.decimal();
        let format = match number.is_zero() {
            true => written_as.decimal().1,
            false => format,
        };
        let sum = number.plus(&other);
        // Zeros are not spelled out where the other was not written with them.
        let format = if sum.is_vast() { Format::DecimalExponent } else { format };
        Quantity::from_decimal(&sum, format)
    }

    fn decimal(&self) -> (Decimal, Format) {
        match Parts::read(self.as_str()) {
            Ok(parts) => parts.number(),
            // Only canonical texts get into a quantity, and they can be read.
            Err(_) => (Decimal::default(), Format::DecimalSi),
        }
    }

    fn from_decimal(number: &Decimal, format: Format) -> Quantity {
        if number.is_zero() {
            return Quantity { text: "0".to_owned() };
        }
        let binary = if format == Format::BinarySi {
            number.to_u64().filter(|n| *n >= 1024)
        } else {
            None
        };
        let text = match (binary, format) {
            (Some(n), _) => binary_text(number.is_negative(), n),
            (None, Format::DecimalExponent) => number.text(|exponent| match exponent {
                0 => (String::new(), 0),
                _ => (format!("e{exponent}"), 0),
            }),
            (None, _) => number.text(|exponent| {
                // Above 10^18 there is no letter: more digits instead.
                let known = exponent.min(18);
                let letter = DECIMAL
                    .iter()
                    .find(|(_, e)| i64::from(*e) == known)
                    .map_or("", |(s, _)| s);
                (letter.to_owned(), exponent - known)
            }),
        };
        Quantity { text }
    }
}

fn binary_text(negative: bool, mut n: u64) -> String {
    let mut suffix = "";
    for next in BINARY {
        if !n.is_multiple_of(1024) {
            break;
        }
        n /= 1024;
        suffix = next;
    }
    format!("{}{n}{suffix}", if negative { "-" } else { "" })
}

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let rest = rest.trim_start_matches('0');
        let (integer, rest) = split(rest, |b| b.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split(rest, |b| b.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, tail) = split(suffix, |b| b"eEinumkKMGTP".contains(&b));
        let digits = tail.strip_prefix(['+', '-']).unwrap_or(tail);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        let (format, exponent) = interpret(suffix).ok_or(QuantityError::Suffix)?;
        let integer = if integer.is_empty() { "0" } else { integer };
        Ok(Parts {
            negative,
            integer,
            fraction,
            format,
            exponent,
        })
    }

    /// Whether Kubernetes keeps the text of this number as it is: few enough digits, and no zeros to take away.
    fn is_canonical(&self) -> bool {
        let digits = self.integer.len() + self.fraction.len();
        let scale = i64::from(self.exponent) - self.fraction.len() as i64;
        match self.format {
            Format::BinarySi => {
                let room = 14 - i64::from(self.exponent) * 3 / 10 - digits as i64;
                self.fraction.is_empty() && room >= 0 && self.integer.parse::<u64>().is_ok_and(|n| !n.is_multiple_of(8))
            }
            _ => {
                let zeros = self
                    .integer
                    .bytes()
                    .chain(self.fraction.bytes())
                    .rev()
                    .take_while(|&b| b == b'0')
                    .count();
                digits <= 18 && scale >= NANO && scale % 3 == 0 && zeros < 3 && !self.integer.starts_with('0')
            }
        }
    }

    /// The absolute value of what is written in powers of 1024, if it is one that is shown so: the usual memory size.
    fn whole_binary(&self) -> Option<u64> {
        if self.format != Format::BinarySi || !self.fraction.is_empty() {
            return None;
        }
        let n = self.integer.parse::<u64>().ok()?.checked_mul(1 << self.exponent)?;
        (1024..=i64::MAX as u64).contains(&n).then_some(n)
    }

    /// The number within the bounds, and the format it will be shown in.
    fn number(&self) -> (Decimal, Format) {
        let digits = self.integer.bytes().chain(self.fraction.bytes());
        let shift = -(self.fraction.len() as i64);
        let mut format = self.format;
        let mut number = if format == Format::BinarySi {
            let mut number = Decimal::new(self.negative, digits, shift);
            number.multiply(1 << self.exponent);
            number
        } else {
            Decimal::new(self.negative, digits, shift + i64::from(self.exponent))
        };
        number.round_up(NANO);
        if format == Format::BinarySi {
            number.limit(i64::MAX as u64);
            if number.below_one() {
                format = Format::DecimalSi;
            }
        }
        (number, format)
    }
}

fn interpret(suffix: &str) -> Option<(Format, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Some((Format::DecimalSi, *exponent));
    }
    if let Some(place) = BINARY.iter().position(|s| *s == suffix) {
        return Some((Format::BinarySi, (place as i32 + 1) * 10));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // An exponent beyond 32 bits wraps around in Kubernetes; here it is refused.
    Some((Format::DecimalExponent, i32::try_from(exponent).ok()?))
}

fn split(text: &str, take: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().take_while(|&b| take(b)).count())
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.as_str() == other.as_str() {
            return Ordering::Equal;
        }
        match (self.few_thousandths(), other.few_thousandths()) {
            (Some(own), Some(other)) => own.cmp(&other),
            _ => self.decimal().0.cmp(&other.decimal().0),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self})")
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Quantity::parse(text)
    }
}

leaf_field!(Quantity, Quantity);

impl Leaf for Quantity {
    leaf_basics!(Quantity);

    fn is_zero(&self) -> bool {
        Quantity::is_zero(self)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        text::write_string(self.as_str(), out);
    }

    fn read_json(&mut self, json: &[u8]) -> LeafResult {
        if json == b"null" {
            *self = Quantity::default();
            return Ok(());
        }
        // Strings are taken as they stand, without undoing escapes; numbers too.
        let bare = match json {
            [b'"', inner @ .., b'"'] => inner,
            other => other,
        };
        let bare = std::str::from_utf8(bare).map_err(|_| QuantityError::Format.to_string())?;
        *self = Quantity::parse(bare.trim()).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        wire::write_bytes_field(1, self.as_str().as_bytes(), out);
    }

    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
        let mut fields = Reader::new(body);
        *self = Quantity::default();
        while let Some(field) = fields.next()? {
            match field {
                (1, Wire::Bytes(b)) => {
                    let text = std::str::from_utf8(b).map_err(|_| QuantityError::Format.to_string())?;
                    *self = Quantity::parse(text).map_err(|e| e.to_string())?;
                }
                (1, other) => return Err(other.mismatch("String_")),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
