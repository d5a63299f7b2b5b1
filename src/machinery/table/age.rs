//! Ages as `kubectl` shows them.

use crate::reflect::time::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Shown for the age of what has no time.
pub(super) const UNKNOWN: &str = "<unknown>";

/// The time since `then`; `<unknown>` for the zero time.
pub fn age(then: Time, now: Time) -> String {
    match then.is_zero() {
        true => UNKNOWN.to_owned(),
        false => elapsed(then, now),
    }
}

/// The time since `then`, as [`human_duration`].
pub fn elapsed(then: Time, now: Time) -> String {
    let nanos = i128::from(now.unix_seconds() - then.unix_seconds()) * 1_000_000_000 + i128::from(now.subsec_nanos())
        - i128::from(then.subsec_nanos());
    human_duration(nanos)
}

/// A span of nanoseconds in at most two units: `2m3s`, `4h`, `5d6h`, `3y10d`. Clocks may differ by up to two seconds;
/// what lies further in the future is `<invalid>`.
pub fn human_duration(nanos: i128) -> String {
    let seconds = i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    // Rounded towards zero, so -1.9 s is -1.
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{unit}")
    } else {
        format!("{large}{unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_at_most_two_units() {
        for line in include_str!("testdata/ages.tsv").lines() {
            let (nanos, text) = line.split_once('\t').unwrap();
            assert_eq!(human_duration(nanos.parse().unwrap()), text, "{nanos}");
        }
        assert_eq!(age(Time::default(), Time::from_unix(0, 0)), "<unknown>");
        assert_eq!(age(Time::from_unix(0, 500_000_000), Time::from_unix(1, 0)), "0s");
    }
}
