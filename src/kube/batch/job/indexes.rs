//! Texts of indexes: `1,3-5,7`, in growing order, below the number of completions.

/// First and last index of an interval.
type Interval = (i64, i64);

/// What is read of a text. The error is the text of a validation error, which nobody tells apart.
type Read<T> = Result<T, String>;

/// How many indexes a text has.
pub fn count(text: &str, completions: i32) -> Read<i64> {
    let (mut total, mut last) = (0, None);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(text: &str, completions: i32) -> Read<Interval> {
    let index = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        match number >= completions.into() {
            true => Err(format!("too large index: {text:?}")),
            false => Ok(number),
        }
    };
    let mut limits = text.split('-');
    match (limits.next(), limits.next(), limits.next()) {
        (_, _, Some(_)) => Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated \
             by '-'"
        )),
        (Some(first), Some(last), None) => match (index(first)?, index(last)?) {
            (first, last) if first >= last => Err(format!("non-increasing order, previous: {first}, current: {last}")),
            interval => Ok(interval),
        },
        (first, _, _) => index(first.unwrap_or_default()).map(|index| (index, index)),
    }
}

/// The first index that stands in both texts. What can't be read is passed over.
pub fn overlap(a: &str, b: &str, completions: i32) -> Option<i64> {
    let read = |text: &str| -> Vec<Interval> {
        let parts = text.split(',').filter(|_| !text.is_empty());
        parts.filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (a, b) = (read(a), read(b));
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        if one.0 <= other.1 && other.0 <= one.1 {
            return Some(one.0.max(other.0));
        }
        match one.0 <= other.0 {
            true => a.next(),
            false => b.next(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_grow() {
        for (text, expected) in [
            ("", Ok(0)),
            ("1", Ok(1)),
            ("1,3-5,7", Ok(5)),
            ("1,1", Err("non-increasing order, previous: 1, current: 1")),
            ("5-3", Err("non-increasing order, previous: 5, current: 3")),
            ("10", Err("too large index: \"10\"")),
            ("x", Err("cannot convert string to integer for index: \"x\"")),
        ] {
            assert_eq!(count(text, 10), expected.map_err(str::to_owned), "{text}");
        }
        assert!(count("1-2-3", 10).is_err());
    }

    #[test]
    fn two_texts_have_no_index_in_common() {
        for (a, b, expected) in [
            ("", "1", None),
            ("1,3-5", "2,6", None),
            ("1,3-5", "2,4", Some(4)),
            ("x,3", "3", Some(3)),
        ] {
            assert_eq!(overlap(a, b, 10), expected, "{a} {b}");
        }
    }
}
