//! Texts with places for values: `"%s-%d".format([a, b])`.

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::Value;
use super::{Result, conversions};

/// Digits after the point where a clause says nothing.
const PRECISION: usize = 6;
/// Digits after the point that a clause may ask for.
const MAX_PRECISION: usize = 100;
/// Bytes of a text that is made.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

pub(super) fn define(to: &mut Functions) {
    add(to, "format", Cost::Make, format, &["string.(list(dyn)) string"]);
}

/// A number with as few digits as tell it from its neighbours, and an exponent where it has more than six before the
/// point or begins with more than four zeros: Go's `%g`.
pub(super) fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    match number == 0.0 || (-4..6).contains(&exponent) {
        true => number.to_string(),
        false => with_exponent(digits, exponent),
    }
}

/// At least two digits and a sign.
fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn format<'a>(v: &[Value<'a>]) -> Result<'a> {
    let [Value::String(pattern), Value::List(list)] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let mut values = list.iter().enumerate();
    let mut out = String::new();
    let mut rest = pattern.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (clause, after) = Clause::read(after)?;
        let (n, value) = values.next().ok_or_else(|| Fault::function("index out of range"))?;
        let shown = clause.show(&value);
        out.push_str(&shown.map_err(|why| Fault::function(format!("error during formatting: {why} (argument {n})")))?);
        rest = after;
        if out.len() > MAX_TEXT_BYTES {
            return Err(Fault::function("the text becomes too long"));
        }
    }
    out.push_str(rest);
    Ok(Value::text(out))
}

/// What stands between `%` and the end of a place.
struct Clause {
    precision: Option<usize>,
    verb: char,
}

impl Clause {
    fn read(text: &str) -> std::result::Result<(Clause, &str), Fault> {
        let wrong = |why: String| Fault::function(format!("could not parse formatting clause: {why}"));
        let (precision, text) = match text.strip_prefix('.') {
            None => (None, text),
            Some(text) => {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                let (digits, text) = text.split_at(end);
                let number = digits.parse().ok().filter(|n| *n <= MAX_PRECISION);
                let number = number.ok_or_else(|| wrong(format!("error while converting precision {digits:?}")))?;
                (Some(number), text)
            }
        };
        let verb = text
            .chars()
            .next()
            .ok_or_else(|| wrong("unexpected end of string".to_owned()))?;
        match verb {
            's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o' => Ok((
                Clause { precision, verb },
                text.get(verb.len_utf8()..).unwrap_or_default(),
            )),
            other => Err(wrong(format!("unrecognized formatting clause {:?}", other.to_string()))),
        }
    }

    fn show(&self, value: &Value<'_>) -> std::result::Result<String, String> {
        let precision = self.precision.unwrap_or(PRECISION);
        let unfit = |what: &str, kinds: &str| {
            format!(
                "{what} clause can only be used on {kinds}, was given {}",
                value.type_name()
            )
        };
        match (self.verb, value) {
            ('s', value) => Ok(text(value)),
            ('d', Value::Int(n)) => Ok(n.to_string()),
            ('d', Value::Uint(n)) => Ok(n.to_string()),
            ('d', _) => Err(unfit("decimal", "integers")),
            ('f' | 'e', value) => {
                let number = number(value).ok_or_else(|| match self.verb {
                    'f' => unfit("fixed-point", "doubles"),
                    _ => unfit("scientific", "doubles"),
                })?;
                Ok(if self.verb == 'f' {
                    format!("{number:.precision$}")
                } else {
                    scientific(number, precision)
                })
            }
            ('b', Value::Bool(b)) => Ok(u8::from(*b).to_string()),
            ('b', Value::Int(n)) => Ok(based(*n, |n| format!("{n:b}"))),
            ('b', Value::Uint(n)) => Ok(format!("{n:b}")),
            ('b', _) => Err(format!(
                "only integers and bools can be formatted as binary, was given {}",
                value.type_name()
            )),
            ('o', Value::Int(n)) => Ok(based(*n, |n| format!("{n:o}"))),
            ('o', Value::Uint(n)) => Ok(format!("{n:o}")),
            ('o', _) => Err(unfit("octal", "integers")),
            ('X', value) => hexadecimal(value)
                .map(|text| text.to_uppercase())
                .ok_or_else(|| unfit("hex", "integers, byte buffers, and strings")),
            (_, value) => hexadecimal(value).ok_or_else(|| unfit("hex", "integers, byte buffers, and strings")),
        }
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(n) => Some(*n),
        Value::Int(n) => Some(*n as f64),
        Value::Uint(n) => Some(*n as f64),
        _ => None,
    }
}

fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => with_exponent(digits, exponent.parse().unwrap_or_default()),
        None => text,
    }
}

fn based(number: i64, show: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", show(number.unsigned_abs()))
}

fn hexadecimal(value: &Value<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect();
    Some(match value {
        Value::Int(n) => based(*n, |n| format!("{n:x}")),
        Value::Uint(n) => format!("{n:x}"),
        Value::String(text) => bytes(text.as_str().as_bytes()),
        Value::Bytes(given) => bytes(given),
        _ => return None,
    })
}

/// Any value as a text: lists and maps with what is in them, keys in order.
fn text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::List(list) => {
            let parts: Vec<String> = list.iter().map(|one| text(&one)).collect();
            format!("[{}]", parts.join(", "))
        }
        Value::Map(map) => {
            let keys = map.keys().into_iter();
            let mut parts: Vec<String> = keys
                .map(|key| {
                    format!(
                        "{}: {}",
                        text(&key),
                        map.get(&key).map_or_else(String::new, |value| text(&value))
                    )
                })
                .collect();
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Type(name) => name.to_string(),
        other => match conversions::string(std::slice::from_ref(other)) {
            Ok(Value::String(text)) => text.as_str().to_owned(),
            _ => format!("{other:?}"),
        },
    }
}
