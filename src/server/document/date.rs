//! Dates of HTTP, `Sat, 21 Nov 2026 11:34:00 GMT`.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const SECONDS_PER_DAY: i64 = 86_400;

/// The date of `seconds` since 1970; `zone` is written behind it.
pub(crate) fn http_date(seconds: i64, zone: &str) -> String {
    let (weekday, month, day, year, clock) = parts(seconds);
    format!("{weekday}, {day:02} {month} {year:04} {clock} {zone}")
}

/// The same in the form of Unix: `Sat Nov 21 11:34:00 UTC 2026`.
pub(crate) fn unix_date(seconds: i64) -> String {
    let (weekday, month, day, year, clock) = parts(seconds);
    format!("{weekday} {month} {day:2} {clock} UTC {year:04}")
}

/// Weekday, month, day, year and time of day.
fn parts(seconds: i64) -> (&'static str, &'static str, i64, i64, String) {
    let (days, second) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = civil(days);
    let weekday = usize::try_from(days.rem_euclid(7))
        .ok()
        .and_then(|d| DAYS.get(d))
        .unwrap_or(&"");
    let month = MONTHS.get(month).unwrap_or(&"");
    let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    (weekday, month, day, year, clock)
}

/// Seconds since 1970 of a date in the form that servers send; `None` for the obsolete forms.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let rest = text.get(3..)?.strip_prefix(", ")?.strip_suffix(" GMT")?;
    let mut parts = rest.split(' ');
    let day: i64 = number(parts.next()?, 2)?;
    let name = parts.next()?;
    let month = MONTHS.iter().position(|m| *m == name)?;
    let year: i64 = number(parts.next()?, 4)?;
    let mut clock = parts.next()?.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let plausible = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let whole = plausible && parts.next().is_none() && clock.next().is_none();
    whole.then(|| days(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let well_formed = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    well_formed.then(|| text.parse().ok())?
}

/// Year, month (from 0) and day of a day since 1970, counted in eras of 400 years that begin on 1 March.
fn civil(days: i64) -> (i64, usize, i64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = (march + 2) % 12;
    let year = year + era * 400 + i64::from(month < 2);
    (
        year,
        usize::try_from(month).unwrap_or_default(),
        day - (153 * march + 2) / 5 + 1,
    )
}

/// The day since 1970 of a date; the inverse of [`civil`].
fn days(year: i64, month: usize, day: i64) -> i64 {
    let year = year - i64::from(month < 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let march = (i64::try_from(month).unwrap_or_default() + 10) % 12;
    let day = (153 * march + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_both_ways() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_795_260_840, "Sat, 21 Nov 2026 11:34:00 GMT"),
            (951_827_696, "Tue, 29 Feb 2000 12:34:56 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds, "GMT"), date);
            assert_eq!(parse_http_date(date), Some(seconds), "{date}");
        }
        assert_eq!(unix_date(1_795_260_840), "Sat Nov 21 11:34:00 UTC 2026");
        assert_eq!(unix_date(0), "Thu Jan  1 00:00:00 UTC 1970");
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "Sat",
            "Sat, 21 Nov 2026",
            "Sat, 21 Nov 2026 11:34:00 UTC",
            "Sat, 21 Foo 2026 11:34:00 GMT",
            "Sat, 32 Nov 2026 11:34:00 GMT",
            "Sat, 21 Nov 2026 24:00:00 GMT",
            "Sat, +1 Nov 2026 11:34:00 GMT",
            "Sat, 21 Nov 2026 11:34 GMT",
            "\u{e4}\u{e4}, 21 Nov 2026 11:34:00 GMT",
        ] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
    }
}
