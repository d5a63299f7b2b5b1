//! Bounds of a rolling update: numbers or percentages.

use keelson_machinery::field::BadValue;
use keelson_machinery::intstr::IntOrString;

use crate::faults::Faults;
use crate::names;

/// A number from 0, or a percentage.
pub fn positive_or_percent(f: &mut Faults<'_>, bound: &IntOrString) {
    match bound {
        IntOrString::Int(number) => f.non_negative(*number),
        IntOrString::String(text) => f.texts(text, names::percent(text)),
    }
}

/// A percentage is not above 100.
pub fn at_most_all(f: &mut Faults<'_>, bound: &IntOrString) {
    if let IntOrString::String(text) = bound
        && percent(text).is_some_and(|percent| percent > 100)
    {
        f.invalid(text, "must not be greater than 100%");
    }
}

/// Whether the bound is 0, of whatever.
pub fn is_zero(bound: Option<&IntOrString>) -> bool {
    match bound {
        None => true,
        Some(IntOrString::String(text)) if percent(text).is_some() => percent(text) == Some(0),
        Some(other) => other.int_value() == 0,
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
    use crate::faults::of_object;

    #[test]
    fn bounds_are_numbers_or_percentages() {
        for (bound, zero, fine) in [
            (IntOrString::Int(0), true, true),
            (IntOrString::Int(3), false, true),
            (IntOrString::Int(-1), false, false),
            ("0%".into(), true, true),
            ("25%".into(), false, true),
            ("101%".into(), false, true),
            ("%".into(), true, false),
            ("5".into(), false, false),
        ] {
            assert_eq!(
                of_object(|f| positive_or_percent(f, &bound)).is_empty(),
                fine,
                "{bound}"
            );
            assert_eq!(is_zero(Some(&bound)), zero, "{bound}");
            let is_above = !of_object(|f| at_most_all(f, &bound)).is_empty();
            assert_eq!(is_above, bound == "101%".into(), "{bound}");
        }
    }
}
