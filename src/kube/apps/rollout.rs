//! Bounds of a rolling update: numbers or percentages.

use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::intstr::IntOrString;

use crate::typed::non_negative;

/// Faults of a bound: a number from 0, or a percentage.
pub fn positive_or_percent(bound: &IntOrString, path: &Path) -> ErrorList {
    match bound {
        IntOrString::Int(number) => non_negative((*number).into(), path),
        IntOrString::String(text) if percent(text).is_some() => ErrorList::default(),
        IntOrString::String(text) => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                '93%', regex used for validation is '[0-9]+%')";
            FieldError::invalid(path, text, detail).into()
        }
    }
}

/// A percentage above 100.
pub fn above_all(bound: &IntOrString, path: &Path) -> Option<FieldError> {
    let IntOrString::String(text) = bound else { return None };
    percent(text)
        .filter(|p| *p > 100)
        .map(|_| FieldError::invalid(path, text, "must not be greater than 100%"))
}

/// Whether the bound is 0, of whatever.
pub fn is_zero(bound: Option<&IntOrString>) -> bool {
    match bound {
        None => true,
        Some(IntOrString::Int(number)) => *number == 0,
        Some(IntOrString::String(text)) => percent(text) == Some(0),
    }
}

/// A bound as the value of a field error.
pub fn shown(bound: Option<&IntOrString>) -> BadValue {
    match bound {
        None => BadValue::null(),
        Some(IntOrString::Int(number)) => (*number).into(),
        Some(IntOrString::String(text)) => text.into(),
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text
        .strip_suffix('%')
        .filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))?;
    Some(digits.parse().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_numbers_or_percentages() {
        let path = Path::new("x");
        for (bound, zero, fine) in [
            (IntOrString::Int(0), true, true),
            (IntOrString::Int(3), false, true),
            (IntOrString::Int(-1), false, false),
            ("0%".into(), true, true),
            ("25%".into(), false, true),
            ("101%".into(), false, true),
            ("%".into(), false, false),
            ("5".into(), false, false),
        ] {
            assert_eq!(positive_or_percent(&bound, &path).is_empty(), fine, "{bound}");
            assert_eq!(is_zero(Some(&bound)), zero, "{bound}");
            assert_eq!(above_all(&bound, &path).is_some(), bound == "101%".into(), "{bound}");
        }
    }
}
