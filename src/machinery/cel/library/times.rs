//! Points in time and spans.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::error::Fault;
use super::super::moment::Moment;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::Result;
use crate::reflect::time::{Duration, Time};

pub(super) fn define(to: &mut Functions) {
    add(
        to,
        "duration",
        Cost::One,
        duration,
        &["(string) duration", "(duration) duration", "(int) duration"],
    );
    add(
        to,
        "timestamp",
        Cost::One,
        timestamp,
        &["(string) timestamp", "(timestamp) timestamp", "(int) timestamp"],
    );
    let both = ["timestamp.() int", "timestamp.(string) int", "duration.() int"];
    add(to, "getHours", Cost::One, |v| clock(v, 3_600_000_000_000, 24), &both);
    add(to, "getMinutes", Cost::One, |v| clock(v, 60_000_000_000, 60), &both);
    add(to, "getSeconds", Cost::One, |v| clock(v, 1_000_000_000, 60), &both);
    add(to, "getMilliseconds", Cost::One, |v| clock(v, 1_000_000, 1000), &both);
    let date = ["timestamp.() int", "timestamp.(string) int"];
    add(to, "getFullYear", Cost::One, |v| calendar(v, |date| date.year), &date);
    add(to, "getMonth", Cost::One, |v| calendar(v, |date| date.month - 1), &date);
    add(to, "getDate", Cost::One, |v| calendar(v, |date| date.day), &date);
    add(
        to,
        "getDayOfMonth",
        Cost::One,
        |v| calendar(v, |date| date.day - 1),
        &date,
    );
    add(
        to,
        "getDayOfWeek",
        Cost::One,
        |v| calendar(v, |date| date.weekday),
        &date,
    );
    add(
        to,
        "getDayOfYear",
        Cost::One,
        |v| calendar(v, |date| date.of_year),
        &date,
    );
}

/// Seconds of times: of the years 1 to 9999.
pub(super) const SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

pub(super) fn parse_duration(text: &str) -> std::result::Result<Duration, Fault> {
    Duration::parse(text).map_err(|error| Fault::function(error.to_string()))
}

pub(super) fn parse_timestamp(text: &str) -> std::result::Result<Moment, Fault> {
    let moment = Moment::parse(text).map_err(|error| Fault::function(error.to_string()))?;
    match SECONDS.contains(&moment.time.unix_seconds()) {
        true => Ok(moment),
        false => Err(Fault::function("timestamp overflow")),
    }
}

fn duration<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Duration(span)] => Ok(Value::Duration(*span)),
        // Declared, but never done.
        [Value::Int(_)] => Err(unconvertible("int", "google.protobuf.Duration")),
        [Value::String(text)] => match parse_duration(text.as_str()) {
            Ok(span) => Ok(Value::Duration(span)),
            Err(_) => Err(unconvertible("string", "google.protobuf.Duration")),
        },
        _ => Err(Fault::NoSuchOverload),
    }
}

fn timestamp<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Timestamp(time)] => Ok(Value::Timestamp(*time)),
        [Value::Int(seconds)] if SECONDS.contains(seconds) => Ok(Value::Timestamp(Time::from_unix(*seconds, 0).into())),
        [Value::Int(_)] => Err(Fault::function("timestamp overflow")),
        [Value::String(text)] => match parse_timestamp(text.as_str()) {
            Ok(time) => Ok(Value::Timestamp(time)),
            Err(_) => Err(unconvertible("string", "google.protobuf.Timestamp")),
        },
        _ => Err(Fault::NoSuchOverload),
    }
}

fn unconvertible(from: &str, to: &str) -> Fault {
    Fault::function(format!("type conversion error from '{from}' to '{to}'"))
}

/// In seconds: `90s`, `0.5s`.
pub(super) fn show_duration(span: Duration) -> String {
    let nanos = span.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) = (
        nanos.unsigned_abs() / 1_000_000_000,
        nanos.unsigned_abs() % 1_000_000_000,
    );
    match rest {
        0 => format!("{sign}{seconds}s"),
        rest => format!("{sign}{seconds}.{}s", format!("{rest:09}").trim_end_matches('0')),
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.unix_seconds()) * 1_000_000_000 + i128::from(time.subsec_nanos())
}

fn shifted<'a>(from: Moment, by: i128) -> Result<'a> {
    let total = nanos(from.time) + by;
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok();
    let rest = u32::try_from(total.rem_euclid(1_000_000_000)).unwrap_or_default();
    match seconds.filter(|seconds| SECONDS.contains(seconds)) {
        Some(seconds) => Ok(Value::Timestamp(Moment {
            time: Time::from_unix(seconds, rest),
            ..from
        })),
        None => Err(Fault::function("timestamp overflow")),
    }
}

fn span<'a>(nanos: Option<i64>) -> Result<'a> {
    nanos
        .map(|nanos| Value::Duration(Duration::from_nanos(nanos)))
        .ok_or_else(|| Fault::function("duration overflow"))
}

/// Sums with a span in them.
pub(super) fn sum<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Duration(a), Value::Duration(b)] => span(a.as_nanos().checked_add(b.as_nanos())),
        [Value::Timestamp(time), Value::Duration(by)] | [Value::Duration(by), Value::Timestamp(time)] => {
            shifted(*time, i128::from(by.as_nanos()))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

/// All differences.
pub(super) fn difference<'a>(v: &[Value<'a>]) -> Result<'a> {
    match v {
        [Value::Int(a), Value::Int(b)] => a.checked_sub(*b).map(Value::Int).ok_or(Fault::Overflow),
        [Value::Uint(a), Value::Uint(b)] => a.checked_sub(*b).map(Value::Uint).ok_or_else(Fault::uint_overflow),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => span(a.as_nanos().checked_sub(b.as_nanos())),
        [Value::Timestamp(time), Value::Duration(by)] => shifted(*time, -i128::from(by.as_nanos())),
        [Value::Timestamp(a), Value::Timestamp(b)] => span(i64::try_from(nanos(a.time) - nanos(b.time)).ok()),
        _ => Err(Fault::NoSuchOverload),
    }
}

/// A part of the time of day, or a whole span in a unit.
fn clock<'a>(v: &[Value<'a>], unit: i64, of: i64) -> Result<'a> {
    match v {
        [Value::Duration(span)] => Ok(Value::Int(span.as_nanos() / unit)),
        [Value::Timestamp(_), ..] => {
            let local = nanos(local(v)?);
            let part = local.div_euclid(i128::from(unit)).rem_euclid(i128::from(of));
            Ok(Value::Int(i64::try_from(part).unwrap_or_default()))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

/// The time as a clock shows it in UTC, at an offset (`+02:00`) or in a time zone.
fn local(v: &[Value<'_>]) -> std::result::Result<Time, Fault> {
    let (time, zone) = match v {
        [Value::Timestamp(at)] => return Ok(at.time),
        [Value::Timestamp(at), Value::String(zone)] => (&at.time, zone.as_str()),
        _ => return Err(Fault::NoSuchOverload),
    };
    if matches!(zone, "UTC" | "" | "Local") {
        return Ok(*time);
    }
    if !zone.contains(':') {
        return in_zone(*time, zone);
    }
    let unknown = || Fault::function(format!("unknown time zone {zone}"));
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = rest.split_once(':').ok_or_else(unknown)?;
    let number = |text: &str| text.parse::<u32>().map(i64::from).map_err(|_| unknown());
    let offset = sign * (number(hours)? * 3600 + number(minutes)? * 60);
    Ok(Time::from_unix(
        time.unix_seconds().saturating_add(offset),
        time.subsec_nanos(),
    ))
}

/// The time as clocks of a time zone show it. Names are those of the IANA, to the letter.
fn in_zone(time: Time, name: &str) -> std::result::Result<Time, Fault> {
    let unknown = || Fault::function(format!("unknown time zone {name}"));
    let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name));
    let zone = zone.ok_or_else(unknown)?;
    let at = Timestamp::from_second(time.unix_seconds()).map_err(|_| unknown())?;
    let offset = i64::from(zone.to_offset(at).seconds());
    Ok(Time::from_unix(
        time.unix_seconds().saturating_add(offset),
        time.subsec_nanos(),
    ))
}

struct Date {
    year: i64,
    month: i64,
    day: i64,
    weekday: i64,
    of_year: i64,
}

fn calendar<'a>(v: &[Value<'a>], part: fn(&Date) -> i64) -> Result<'a> {
    let days = local(v)?.unix_seconds().div_euclid(86_400);
    Ok(Value::Int(part(&date(days))))
}

/// The date of a day since 1970, counted in years that begin in March, so that leap days come last.
fn date(days: i64) -> Date {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_march_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_march_year + 2) / 153;
    let day = of_march_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let of_year = match month {
        1 | 2 => of_march_year - 306,
        _ => of_march_year + 59 + i64::from(leap),
    };
    Date {
        year,
        month,
        day,
        weekday: (days + 4).rem_euclid(7),
        of_year,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_by_the_zone_and_its_summer_time() {
        let hours = |text: &str, zone: &str| {
            let time = Time::parse(text).unwrap();
            clock(
                &[Value::Timestamp(time.into()), Value::text(zone)],
                3_600_000_000_000,
                24,
            )
        };
        for (time, zone, want) in [
            ("2024-07-01T12:00:00Z", "America/New_York", 8),
            ("2024-01-01T12:00:00Z", "America/New_York", 7),
            ("2024-07-01T12:00:00Z", "Europe/Berlin", 14),
            ("1900-01-01T12:00:00Z", "Asia/Kolkata", 17),
            ("2024-07-01T12:00:00Z", "EST5EDT", 8),
            ("2024-07-01T12:00:00Z", "+02:30", 14),
            ("2024-07-01T12:00:00Z", "UTC", 12),
        ] {
            assert!(
                matches!(hours(time, zone), Ok(Value::Int(hour)) if hour == want),
                "{time} {zone}"
            );
        }
        for zone in ["america/new_york", "Nowhere/Land", "../UTC", "-x", "+2", "1:b"] {
            assert!(hours("2024-07-01T12:00:00Z", zone).is_err(), "{zone}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, want) in [
            (0, (1970, 1, 1, 4, 0)),
            (-1, (1969, 12, 31, 3, 364)),
            (11_016, (2000, 2, 29, 2, 59)),
            (11_017, (2000, 3, 1, 3, 60)),
            (19_782, (2024, 2, 29, 4, 59)),
            (20_088, (2024, 12, 31, 2, 365)),
        ] {
            let date = date(days);
            assert_eq!((date.year, date.month, date.day, date.weekday, date.of_year), want);
        }
    }
}
