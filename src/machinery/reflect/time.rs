//! Points in time and spans, with the zero values and texts of Go's `time` package.

mod civil;
mod duration;
mod layout;

use std::fmt;
use std::ops::{Add, RangeInclusive, Sub};

pub use duration::{Duration, DurationError};
pub use layout::TimeError;

use crate::reflect::leaf::{leaf_basics, leaf_field, string_or_null};
use crate::reflect::{Leaf, LeafResult};
use crate::wire::{self, Reader, Wire};

/// 0001-01-01T00:00:00Z, the zero value, in seconds since 1970.
const ZERO_SECONDS: i64 = -62_135_596_800;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// The years that JSON can show, 0000 to 9999, in seconds since 1970.
const CALENDAR: RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// A point in time. JSON and protobuf carry whole seconds; more is kept in memory only. The default is Go's zero time
/// (the first second of year 1), which JSON shows as `null`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    seconds: i64,
    /// Below 1 000 000 000.
    nanos: u32,
}

impl Time {
    /// Seconds since 1970 and nanoseconds; of the latter more than a second is carried over.
    pub const fn from_unix(seconds: i64, nanos: u32) -> Time {
        let carry = (nanos / NANOS_PER_SECOND as u32) as i64;
        Time {
            seconds: seconds.saturating_add(carry),
            nanos: nanos % NANOS_PER_SECOND as u32,
        }
    }

    /// Whole seconds since 1970.
    pub const fn unix_seconds(&self) -> i64 {
        self.seconds
    }

    /// Nanoseconds after the whole second, below 1 000 000 000.
    pub const fn subsec_nanos(&self) -> u32 {
        self.nanos
    }

    /// Whether this is the zero time.
    pub const fn is_zero(&self) -> bool {
        self.seconds == ZERO_SECONDS && self.nanos == 0
    }

    /// The same second without its fraction.
    pub const fn truncate_to_seconds(self) -> Time {
        Time {
            seconds: self.seconds,
            nanos: 0,
        }
    }

    /// RFC 3339 as Go reads it; the error is Go's text.
    pub fn parse(text: &str) -> Result<Time, TimeError> {
        layout::parse(text, false)
    }

    /// The nearest time that JSON can show. Protobuf, and a time zone, lead to others: no reader would take the text of
    /// such a one, and thus of the whole list that has it.
    fn in_calendar(self) -> Time {
        let seconds = self.seconds.clamp(*CALENDAR.start(), *CALENDAR.end());
        Time { seconds, ..self }
    }

    /// The time `nanos` nanoseconds later.
    fn plus_nanos(self, nanos: i64) -> Time {
        let sum = i64::from(self.nanos) + nanos.rem_euclid(NANOS_PER_SECOND);
        let seconds = self.seconds.saturating_add(nanos.div_euclid(NANOS_PER_SECOND));
        Time::from_unix(seconds, sum as u32)
    }
}

impl Default for Time {
    fn default() -> Self {
        Time {
            seconds: ZERO_SECONDS,
            nanos: 0,
        }
    }
}

/// `2006-01-02T15:04:05Z`, in UTC.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(20);
        layout::write_seconds(self.seconds, &mut out);
        write!(f, "{}Z", String::from_utf8_lossy(&out))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}+{}ns", self.nanos)
    }
}

/// The span between two times, at most what a [`Duration`] holds.
impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        let nanos = (i128::from(self.seconds) - i128::from(earlier.seconds)) * i128::from(NANOS_PER_SECOND)
            + i128::from(self.nanos)
            - i128::from(earlier.nanos);
        let limit = if nanos < 0 { i64::MIN } else { i64::MAX };
        Duration::from_nanos(i64::try_from(nanos).unwrap_or(limit))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        self.plus_nanos(span.as_nanos())
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        self.plus_nanos(span.as_nanos().saturating_neg())
    }
}

leaf_field!(Time, Time);

impl Leaf for Time {
    leaf_basics!(Time);

    fn is_zero(&self) -> bool {
        Time::is_zero(self)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        if self.is_zero() {
            return out.extend_from_slice(b"null");
        }
        out.push(b'"');
        layout::write_seconds(self.in_calendar().seconds, out);
        out.extend_from_slice(b"Z\"");
    }

    fn read_json(&mut self, json: &[u8]) -> LeafResult {
        *self = if json == b"null" {
            Time::default()
        } else {
            Time::parse(&string_or_null(json)?).map_err(|error| error.to_string())?
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        if !self.is_zero() {
            write_timestamp(self.seconds, 0, out);
        }
    }

    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
        *self = if body.is_empty() {
            Time::default()
        } else {
            read_timestamp(body)?.truncate_to_seconds()
        };
        Ok(())
    }
}

fn write_timestamp(seconds: i64, nanos: u32, out: &mut Vec<u8>) {
    wire::write_varint_field(1, seconds as u64, out);
    wire::write_varint_field(2, u64::from(nanos), out);
}

fn read_timestamp(body: &[u8]) -> LeafResult<Time> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Reader::new(body);
    while let Some(field) = fields.next()? {
        match field {
            (1, Wire::Varint(n)) => seconds = n as i64,
            (2, Wire::Varint(n)) => nanos = i64::from(n as i32),
            (1, other) => return Err(other.mismatch("Seconds")),
            (2, other) => return Err(other.mismatch("Nanos")),
            _ => {}
        }
    }
    Ok(Time::from_unix(seconds, 0).plus_nanos(nanos))
}

/// A point in time with microseconds, as leases and events use it. The default is the zero time; JSON shows it as
/// `null`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct MicroTime(pub Time);

impl MicroTime {
    /// Seconds since 1970 and nanoseconds.
    pub const fn from_unix(seconds: i64, nanos: u32) -> MicroTime {
        MicroTime(Time::from_unix(seconds, nanos))
    }

    /// Whole seconds since 1970.
    pub const fn unix_seconds(&self) -> i64 {
        self.0.seconds
    }

    /// Whether this is the zero time.
    pub const fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// RFC 3339 with exactly six decimals; the error is Go's text.
    pub fn parse(text: &str) -> Result<MicroTime, TimeError> {
        layout::parse(text, true).map(MicroTime)
    }

    /// Nanoseconds without what is below a microsecond.
    const fn whole_micros(&self) -> u32 {
        self.0.nanos / 1000 * 1000
    }
}

impl From<Time> for MicroTime {
    fn from(time: Time) -> Self {
        MicroTime(time)
    }
}

impl From<MicroTime> for Time {
    fn from(time: MicroTime) -> Self {
        time.0
    }
}

/// `2006-01-02T15:04:05.000000Z`, in UTC.
impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(27);
        layout::write_seconds(self.0.seconds, &mut out);
        write!(f, "{}.{:06}Z", String::from_utf8_lossy(&out), self.0.nanos / 1000)
    }
}

leaf_field!(MicroTime, MicroTime);

impl Leaf for MicroTime {
    leaf_basics!(MicroTime);

    fn is_zero(&self) -> bool {
        MicroTime::is_zero(self)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        if self.is_zero() {
            return out.extend_from_slice(b"null");
        }
        let shown = MicroTime(self.0.in_calendar());
        out.extend_from_slice(format!("\"{shown}\"").as_bytes());
    }

    fn read_json(&mut self, json: &[u8]) -> LeafResult {
        *self = if json == b"null" {
            MicroTime::default()
        } else {
            MicroTime::parse(&string_or_null(json)?).map_err(|error| error.to_string())?
        };
        Ok(())
    }

    fn write_protobuf(&self, out: &mut Vec<u8>) {
        if !self.is_zero() {
            write_timestamp(self.0.seconds, self.whole_micros(), out);
        }
    }

    fn read_protobuf(&mut self, body: &[u8]) -> LeafResult {
        if body.is_empty() {
            *self = MicroTime::default();
            return Ok(());
        }
        let time = MicroTime(read_timestamp(body)?);
        *self = MicroTime::from_unix(time.0.seconds, time.whole_micros());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
