//! Points in time as expressions have them: with the offset at which they are shown.

use std::cmp::Ordering;
use std::fmt;

use crate::reflect::time::{Time, TimeError};

/// A point in time. Two are the same wherever they are shown.
#[derive(Clone, Copy)]
pub struct Moment {
    pub time: Time,
    /// Seconds by which clocks are ahead of UTC where it is shown: those of the text that it was read from.
    pub offset: i32,
}

impl Moment {
    /// Reads a text in the form of RFC 3339.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Moment, TimeError> {
        let time = Time::parse(text)?;
        Ok(Moment {
            time,
            offset: offset(text).unwrap_or_default(),
        })
    }
}

/// `+01:00` at the end of a text, in seconds.
fn offset(text: &str) -> Option<i32> {
    let (_, zone) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60))
}

impl From<Time> for Moment {
    /// In UTC.
    fn from(time: Time) -> Moment {
        Moment { time, offset: 0 }
    }
}

impl PartialEq for Moment {
    fn eq(&self, other: &Moment) -> bool {
        self.time == other.time
    }
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Moment) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Moment) -> Ordering {
        self.time.cmp(&other.time)
    }
}

/// `1970-01-01T00:00:00.5+01:00`, with a fraction where it has one.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.unix_seconds().saturating_add(i64::from(self.offset));
        let local = Time::from_unix(seconds, 0).to_string();
        f.write_str(local.trim_end_matches('Z'))?;
        if self.time.subsec_nanos() != 0 {
            let fraction = format!("{:09}", self.time.subsec_nanos());
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        let minutes = self.offset / 60;
        match minutes {
            0 => f.write_str("Z"),
            minutes => {
                let sign = if minutes < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_where_they_were_read() {
        for (text, shown) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("1970-01-01T00:00:00.5+01:00", "1970-01-01T00:00:00.5+01:00"),
            ("2000-02-29T23:59:59.120-05:30", "2000-02-29T23:59:59.12-05:30"),
            ("2000-02-29T23:59:59+00:00", "2000-02-29T23:59:59Z"),
        ] {
            assert_eq!(Moment::parse(text).unwrap().to_string(), shown);
        }
        let (here, there) = (
            Moment::parse("1970-01-01T01:00:00+01:00"),
            Moment::parse("1970-01-01T00:00:00Z"),
        );
        assert_eq!(here, there);
    }
}
