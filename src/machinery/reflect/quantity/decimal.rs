//! Decimal numbers of any length. Exponents are never spelled out as zeros but where a bound says how many, so that
//! `1e999999999` costs nothing.

use std::cmp::Ordering;

/// ±`digits` × 10^`exponent`, most significant digit first. No leading and no trailing zeros; no digits at all: zero.
#[derive(Clone, Default)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// From ASCII digits.
    pub(super) fn new(negative: bool, digits: impl Iterator<Item = u8>, exponent: i64) -> Self {
        let digits = digits.map(|d| d - b'0').skip_while(|&d| d == 0).collect();
        let mut number = Decimal {
            negative,
            digits,
            exponent,
        };
        number.normalise();
        number
    }

    fn normalise(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.exponent += 1;
        }
        if self.digits.is_empty() {
            *self = Decimal::default();
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether it ends in more zeros than anybody writes out.
    pub(super) fn is_vast(&self) -> bool {
        const ZEROS: i64 = 256;
        self.exponent > ZEROS
    }

    pub(super) fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it lies between -1 and 1 and is not 0.
    pub(super) fn below_one(&self) -> bool {
        !self.is_zero() && self.magnitude() <= 0
    }

    /// The number of digits before the decimal point; not above 0 for a fraction.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + self.exponent
    }

    /// Rounds away from zero to a multiple of 10^`scale`. Returns whether nothing was lost.
    pub(super) fn round_up(&mut self, scale: i64) -> bool {
        if self.is_zero() || self.exponent >= scale {
            return true;
        }
        let keep = usize::try_from(self.magnitude() - scale).unwrap_or(0);
        self.digits.truncate(keep);
        self.exponent = scale;
        // There is no trailing zero, so what was cut off is not zero: one more.
        let nines = self.digits.iter().rev().take_while(|&&d| d == 9).count();
        self.digits.truncate(self.digits.len() - nines);
        self.exponent += nines as i64;
        match self.digits.last_mut() {
            Some(last) => *last += 1,
            None => self.digits.push(1),
        }
        false
    }

    /// Multiplies by a number below 2^63.
    pub(super) fn multiply(&mut self, by: u64) {
        let mut carry = 0u128;
        for digit in self.digits.iter_mut().rev() {
            carry += u128::from(*digit) * u128::from(by);
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        let mut head = Vec::new();
        while carry > 0 {
            head.push((carry % 10) as u8);
            carry /= 10;
        }
        head.reverse();
        self.digits.splice(0..0, head);
        self.normalise();
    }

    /// Cuts the absolute value at `max`.
    pub(super) fn limit(&mut self, max: u64) {
        let max = Decimal::new(self.negative, max.to_string().bytes(), 0);
        if self.cmp_absolute(&max) == Ordering::Greater {
            *self = max;
        }
    }

    /// The absolute value, if it is a whole number that fits.
    pub(super) fn to_u64(&self) -> Option<u64> {
        if self.exponent < 0 || self.magnitude() > 20 {
            return None;
        }
        let zeros = std::iter::repeat_n(&0, self.exponent as usize);
        self.digits
            .iter()
            .chain(zeros)
            .try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(*d)))
    }

    /// How many 10^`scale` it is, at most what fits; must be a multiple of that.
    pub(super) fn units(&self, scale: i64) -> i64 {
        let shifted = Decimal {
            exponent: self.exponent - scale,
            ..self.clone()
        };
        match (shifted.to_u64(), self.negative) {
            (Some(n), true) => 0i64.checked_sub_unsigned(n).unwrap_or(i64::MIN),
            (Some(n), false) => i64::try_from(n).unwrap_or(i64::MAX),
            (None, true) => i64::MIN,
            (None, false) => i64::MAX,
        }
    }

    /// The text with an exponent that is a multiple of three; `suffix` gives its suffix and the zeros to write more.
    pub(super) fn text(&self, suffix: impl Fn(i64) -> (String, i64)) -> String {
        let zeros = self.exponent.rem_euclid(3);
        let (suffix, more) = suffix(self.exponent - zeros);
        let mut out = String::with_capacity(self.digits.len() + 8);
        if self.negative {
            out.push('-');
        }
        out.extend(self.digits.iter().map(|d| char::from(b'0' + d)));
        out.extend(std::iter::repeat_n('0', (zeros + more) as usize));
        out.push_str(&suffix);
        out
    }

    fn cmp_absolute(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Without trailing zeros, digits of the same magnitude compare like words.
            (false, false) => self
                .magnitude()
                .cmp(&other.magnitude())
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    /// The same number below zero instead of above, or the other way round.
    pub(super) fn negated(mut self) -> Self {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    /// The sum. Where one is too small to be seen beside the other, it is the other.
    pub(super) fn plus(&self, other: &Self) -> Self {
        /// Digits that a sum has at most beyond those of its parts.
        const ROOM: i64 = 128;
        match (self.is_zero(), other.is_zero()) {
            (true, _) => return other.clone(),
            (_, true) => return self.clone(),
            (false, false) => {}
        }
        if (self.exponent - other.exponent).abs() > ROOM {
            let (greater, _) = self.by_magnitude(other);
            return greater.clone();
        }
        let exponent = self.exponent.min(other.exponent);
        let (greater, less) = self.by_magnitude(other);
        let (a, b) = (greater.digits_from(exponent), less.digits_from(exponent));
        let digits = match self.negative == other.negative {
            true => added(a, &b),
            false => subtracted(a, &b),
        };
        let ascii = digits.into_iter().map(|digit| b'0' + digit);
        Decimal::new(greater.negative, ascii, exponent)
    }

    /// The one with the greater absolute value first.
    fn by_magnitude<'a>(&'a self, other: &'a Self) -> (&'a Self, &'a Self) {
        match self.cmp_absolute(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        }
    }

    /// The digits in units of 10^`exponent`, which is not above its own.
    fn digits_from(&self, exponent: i64) -> Vec<u8> {
        let zeros = usize::try_from(self.exponent - exponent).unwrap_or(0);
        let mut digits = self.digits.clone();
        digits.extend(std::iter::repeat_n(0, zeros));
        digits
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_absolute(other),
            (true, true) => other.cmp_absolute(self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

/// The sum of two numbers by their digits, the most significant first.
fn added(mut a: Vec<u8>, b: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let longer = b.iter().rev().copied().chain(std::iter::repeat(0));
    for (digit, other) in a.iter_mut().rev().zip(longer) {
        let sum = *digit + other + carry;
        (*digit, carry) = (sum % 10, sum / 10);
    }
    if carry > 0 {
        a.insert(0, carry);
    }
    a
}

/// The difference of two numbers by their digits, the second not greater than the first.
fn subtracted(mut a: Vec<u8>, b: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let longer = b.iter().rev().copied().chain(std::iter::repeat(0));
    for (digit, other) in a.iter_mut().rev().zip(longer) {
        let less = other + borrow;
        borrow = u8::from(*digit < less);
        *digit = *digit + 10 * borrow - less;
    }
    a
}
