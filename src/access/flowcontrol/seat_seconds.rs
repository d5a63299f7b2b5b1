//! Seat-seconds: work, and the virtual time in which it is shared out.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// How many units a seat-second has: eight digits show it in full.
const SCALE: f64 = 1e8;

/// Seats times seconds, in steps of 10⁻⁸. Arithmetic stays within its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatSeconds(u64);

impl SeatSeconds {
    pub const ZERO: SeatSeconds = SeatSeconds(0);
    pub const MAX: SeatSeconds = SeatSeconds(u64::MAX);

    /// So many seats for so long.
    pub fn of(seats: f64, time: Duration) -> SeatSeconds {
        // Casts of floats saturate; there are no negative seats.
        SeatSeconds((seats * time.as_secs_f64() * SCALE).round() as u64)
    }

    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE
    }

    /// How long this work takes with so many seats.
    pub fn per_seat(self, seats: u32) -> Duration {
        Duration::from_secs_f64(self.as_f64() / f64::from(seats.max(1)))
    }
}

impl Add for SeatSeconds {
    type Output = SeatSeconds;

    fn add(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.saturating_add(other.0))
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: SeatSeconds) {
        *self = *self + other;
    }
}

impl Sub for SeatSeconds {
    type Output = SeatSeconds;

    fn sub(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: u64 = 100_000_000;
        write!(f, "{}.{:08}ss", self.0 / UNITS, self.0 % UNITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_shown_with_eight_digits() {
        for (seats, millis, text) in [
            (0.0, 5, "0.00000000ss"),
            (3.0, 3, "0.00900000ss"),
            (10.0, 1500, "15.00000000ss"),
        ] {
            assert_eq!(SeatSeconds::of(seats, Duration::from_millis(millis)).to_string(), text);
        }
        let work = SeatSeconds::of(30.0, Duration::from_millis(5));
        assert_eq!(work.per_seat(10), Duration::from_millis(15));
        assert_eq!(SeatSeconds::ZERO - work, SeatSeconds::ZERO);
    }
}
