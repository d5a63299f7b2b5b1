//! Schedules of cron jobs, as the cron library of Kubernetes reads them, and the names of time zones.

/// The names of the IANA database, sorted.
const ZONES: &str = include_str!("time_zones.txt");
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Names of schedules.
const NAMED: [&str; 7] = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];

/// What is read of a text. The error is the text of a validation error, which nobody tells apart.
type Read<T> = Result<T, String>;

/// A field: its least and greatest number, and the names of its numbers from the least on.
struct Field {
    least: u64,
    greatest: u64,
    names: &'static [&'static str],
}

/// Minutes, hours, days of the month, months, days of the week.
const FIELDS: [Field; 5] = [
    Field::numbers(0, 59),
    Field::numbers(0, 23),
    Field::numbers(1, 31),
    Field {
        names: &MONTHS,
        ..Field::numbers(1, 12)
    },
    Field {
        names: &DAYS,
        ..Field::numbers(0, 6)
    },
];

impl Field {
    const fn numbers(least: u64, greatest: u64) -> Field {
        Field {
            least,
            greatest,
            names: &[],
        }
    }

    /// What is wrong with the ranges of a field.
    fn fault(&self, text: &str) -> Option<String> {
        let mut ranges = text.split(',').filter(|range| !range.is_empty());
        ranges.find_map(|range| self.range(range).err())
    }

    /// `*`, `1`, `1-5`, `*/2`, `1-5/2`.
    fn range(&self, text: &str) -> Read<()> {
        let mut parts = text.split('/');
        let bounds: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
        let (start, mut end) = match bounds[..] {
            ["*" | "?", ..] => (self.least, self.greatest),
            [one] => (self.number(one)?, self.number(one)?),
            [first, last] => (self.number(first)?, self.number(last)?),
            [first, ..] => {
                self.number(first)?;
                return Err(format!("too many hyphens: {text}"));
            }
            [] => (self.least, self.greatest),
        };
        let step = match (parts.next(), parts.next()) {
            (None, _) => 1,
            (Some(step), None) => {
                if bounds.len() == 1 {
                    end = self.greatest;
                }
                number(step)?
            }
            (Some(_), Some(_)) => return Err(format!("too many slashes: {text}")),
        };
        let (least, greatest) = (self.least, self.greatest);
        match () {
            () if start < least => Err(format!("beginning of range ({start}) below minimum ({least}): {text}")),
            () if end > greatest => Err(format!("end of range ({end}) above maximum ({greatest}): {text}")),
            () if start > end => Err(format!(
                "beginning of range ({start}) beyond end of range ({end}): {text}"
            )),
            () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
            () => Ok(()),
        }
    }

    fn number(&self, text: &str) -> Read<u64> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        match named {
            Some(place) => Ok(self.least + place as u64),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Read<u64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let failed = |why: &str| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}");
    let read: i64 = match text.parse() {
        Ok(read) => read,
        Err(_) if is_number => return Err(failed("value out of range")),
        Err(_) => return Err(failed("invalid syntax")),
    };
    u64::try_from(read).map_err(|_| format!("negative number ({read}) not allowed: {text}"))
}

/// What is wrong with a schedule.
pub fn fault(schedule: &str) -> Option<String> {
    if schedule.is_empty() {
        return Some("empty spec string".to_owned());
    }
    let zoned = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|start| schedule.strip_prefix(start));
    let rest = match zoned.map(|zoned| zoned.split_once(' ')) {
        None => schedule,
        Some(Some((zone, rest))) if is_zone(zone) => rest.trim(),
        Some(Some((zone, _))) => return Some(format!("provided bad location {zone}: unknown time zone {zone}")),
        // A zone and nothing else.
        Some(None) => {
            let text = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
            return Some(text.to_owned());
        }
    };
    if let Some(name) = rest.strip_prefix('@') {
        return named_fault(name);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.join(" ");
        return Some(format!("expected exactly 5 fields, found {}: [{found}]", fields.len()));
    }
    FIELDS.iter().zip(fields).find_map(|(field, text)| field.fault(text))
}

fn named_fault(name: &str) -> Option<String> {
    if let Some(duration) = name.strip_prefix("every ") {
        return (!is_duration(duration))
            .then(|| format!("failed to parse duration @{name}: time: invalid duration {duration:?}"));
    }
    (!NAMED.contains(&name)).then(|| format!("unrecognized descriptor: @{name}"))
}

/// Whether the text is a span of time such as `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let is_number = |number: &str| {
        let digits = number.replacen('.', "", 1);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let mut is_good = !rest.is_empty();
    while is_good && !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let unit = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        is_good = is_number(number) && matches!(unit, "ns" | "us" | "\u{b5}s" | "\u{3bc}s" | "ms" | "s" | "m" | "h");
        rest = after;
    }
    is_good
}

/// Whether a zone has this name.
pub fn is_zone(name: &str) -> bool {
    matches!(name, "" | "UTC" | "Local") || ZONES.lines().any(|zone| zone == name)
}

/// What is wrong with the name of a time zone.
pub fn zone_fault(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("timeZone must be nil or non-empty string".to_owned());
    }
    let fits = |part: &str| {
        let is_plain = part
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'));
        is_plain && (1..=14).contains(&part.len()) && !matches!(part, "." | "..") && !part.starts_with('-')
    };
    if name.eq_ignore_ascii_case("Local") {
        let text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        return Some(text.to_owned());
    }
    (!name.split('/').all(fits) || !is_zone(name)).then(|| format!("unknown time zone {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_five_fields_or_a_name() {
        for good in [
            "* * * * *",
            "*/5 0-23/2 1,15 jan-DEC Sun",
            "? ? ? ? ?",
            "5/10 * * * *",
            ", * * * *",
            "@hourly",
            "@every 1h30m",
            "TZ=Europe/Rome 0 0 * * *",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for (bad, expected) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every x",
                "failed to parse duration @every x: time: invalid duration \"x\"",
            ),
            (
                "TZ=Nowhere * * * * *",
                "provided bad location Nowhere: unknown time zone Nowhere",
            ),
        ] {
            assert_eq!(fault(bad).as_deref(), Some(expected), "{bad}");
        }
    }

    #[test]
    fn zones_are_those_of_the_database() {
        for (name, is_fine) in [
            ("Europe/Rome", true),
            ("UTC", true),
            ("Etc/GMT+5", true),
            ("", false),
            ("local", false),
            ("europe/rome", false),
            ("Europe/../Rome", false),
            ("Nowhere", false),
        ] {
            assert_eq!(zone_fault(name).is_none(), is_fine, "{name}");
        }
    }
}
