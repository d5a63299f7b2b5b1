//! Values as text: those of lists and maps as they would be written in an expression, numbers as readers of English
//! write them.

use crate::cel::Value;
use crate::cel::library::conversions;
use crate::field::text::quote;

/// Any value as a text; `None`: it has none.
pub(super) fn text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Null => Some("null".to_owned()),
        Value::List(list) => {
            let parts: Option<Vec<String>> = list.iter().map(|one| literal(&one)).collect();
            Some(format!("[{}]", parts?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for key in map.keys() {
                let value = map.get(&key)?;
                entries.push((literal(&key)?, literal(&value)?));
            }
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            Some(format!("{{{}}}", entries.join(", ")))
        }
        Value::Type(name) => Some(name.to_string()),
        Value::Opaque(_) | Value::Optional(_) | Value::Invalid(_) => None,
        other => match conversions::string(std::slice::from_ref(other)) {
            Ok(Value::String(text)) => Some(text.as_str().to_owned()),
            _ => None,
        },
    }
}

/// A value within a list or map.
fn literal(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::String(text) => quote(text.as_str()),
        Value::Bytes(bytes) => format!("b{}", quote(&String::from_utf8_lossy(bytes))),
        Value::Timestamp(_) => format!("timestamp({})", quote(&text(value)?)),
        Value::Duration(_) => format!("duration({})", quote(&text(value)?)),
        Value::Double(n) if n.is_nan() => quote("NaN"),
        Value::Double(n) if n.is_infinite() => quote(if *n > 0.0 { "+Inf" } else { "-Inf" }),
        Value::Double(n) => format!("{n:.6}"),
        value => text(value)?,
    })
}

/// With so many digits after the point, and a comma before every three before it.
pub(super) fn fixed(number: f64, precision: usize) -> String {
    if let Some(text) = unusual(number) {
        return text;
    }
    let text = format!("{:.precision$}", number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::with_capacity(text.len() * 4 / 3 + 1);
    if number.is_sign_negative() {
        out.push('-');
    }
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// As a number with six digits after the point, times a power of ten with at least two digits; at least so wide.
pub(super) fn scientific(number: f64, width: usize) -> String {
    let text = unusual(number).unwrap_or_else(|| {
        let text = format!("{number:.6e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ("⁻", exponent),
            None => ("", exponent),
        };
        let exponent: String = format!("{exponent:0>2}").chars().map(raised).collect();
        format!("{digits}×10{sign}{exponent}")
    });
    format!("{text:>width$}")
}

fn raised(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

fn unusual(number: f64) -> Option<String> {
    let text = match number {
        n if n.is_nan() => "NaN",
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "-∞",
        _ => return None,
    };
    Some(text.to_owned())
}
