//! Places in a text for values: `%s`, `%.2f`.

use super::display;
use crate::cel::error::FunctionResult;
use crate::cel::{Type, Value};
use crate::field::text::quote;

/// Digits after the point where a clause says nothing.
const PRECISION: usize = 6;
/// Digits after the point that a clause may ask for.
const MAX_PRECISION: usize = 1000;
const END: &str = "unexpected end of string";

/// A part of a text with places.
pub(in crate::cel) enum Part<'a> {
    Text(&'a str),
    Place(Clause),
}

/// What is shown in a place.
#[derive(Clone, Copy)]
pub(in crate::cel) struct Clause {
    precision: Option<usize>,
    verb: char,
}

/// The parts of a text. What is wrong with a place is told when it comes to it, and only if there is a value for it:
/// `filled` says how many there are.
pub(in crate::cel) fn parts(text: &str, filled: usize) -> impl Iterator<Item = FunctionResult<Part<'_>>> {
    let (mut rest, mut places, mut ended) = (text, 0, false);
    std::iter::from_fn(move || {
        if rest.is_empty() || ended {
            return None;
        }
        let Some(behind) = rest.strip_prefix('%') else {
            let (before, behind) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
            rest = behind;
            return Some(Ok(Part::Text(before)));
        };
        if let Some(behind) = behind.strip_prefix('%') {
            rest = behind;
            return Some(Ok(Part::Text("%")));
        }
        let read = match places < filled {
            true => Clause::read(behind),
            false if behind.is_empty() => Err(END.to_owned()),
            false => Err(format!("index {places} out of range")),
        };
        places += 1;
        ended = read.is_err();
        Some(read.map(|(clause, behind)| {
            rest = behind;
            Part::Place(clause)
        }))
    })
}

impl Clause {
    fn read(text: &str) -> FunctionResult<(Clause, &str)> {
        if text.is_empty() {
            return Err(END.to_owned());
        }
        let wrong = |why: String| format!("could not parse formatting clause: {why}");
        let (precision, text) = match text.strip_prefix('.') {
            None => (None, text),
            Some(text) => {
                let end = text.find(|c: char| !c.is_ascii_digit());
                let end = end.ok_or("could not find end of precision specifier".to_owned());
                let number = end.and_then(|end| {
                    let (digits, text) = text.split_at(end);
                    Ok((precision(digits)?, text))
                });
                let (number, text) = number.map_err(|why| wrong(format!("error while parsing precision: {why}")))?;
                (Some(number), text)
            }
        };
        let verb = text.chars().next().unwrap_or_default();
        match verb {
            's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o' => Ok((
                Clause { precision, verb },
                text.get(verb.len_utf8()..).unwrap_or_default(),
            )),
            other => Err(wrong(format!("unrecognized formatting clause \"{other}\""))),
        }
    }

    /// Whether values of a type can be shown, if it is known; the error says what can.
    pub fn accepts(self, ty: &Type) -> FunctionResult<()> {
        let fits = match (self.verb, ty) {
            (_, Type::Dyn) => true,
            ('s', ty) => !matches!(ty, Type::Object(_) | Type::Opaque(_) | Type::Optional(_)),
            ('d' | 'o', ty) => matches!(ty, Type::Int | Type::Uint),
            ('f' | 'e', ty) => matches!(ty, Type::Double | Type::String),
            ('b', ty) => matches!(ty, Type::Int | Type::Uint | Type::Bool),
            (_, ty) => matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
        };
        match fits {
            true => Ok(()),
            false => Err(format!("error during formatting: {}", self.unfit(&ty.name()))),
        }
    }

    /// Whether the parts of what it shows are shown, too.
    pub fn looks_within(self) -> bool {
        self.verb == 's'
    }

    fn unfit(self, given: &str) -> String {
        let fits = match self.verb {
            's' => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                 and timestamps"
            }
            'd' => "decimal clause can only be used on integers",
            'f' => "fixed-point clause can only be used on doubles",
            'e' => "scientific clause can only be used on doubles",
            'b' => "only integers and bools can be formatted as binary",
            'o' => "octal clause can only be used on integers",
            _ => "only integers, byte buffers, and strings can be formatted as hex",
        };
        format!("{fits}, was given {given}")
    }

    /// A value as the clause shows it.
    pub fn show(self, value: &Value<'_>) -> FunctionResult<String> {
        let precision = self.precision.unwrap_or(PRECISION);
        let shown = match (self.verb, value) {
            ('s', value) => display::text(value),
            ('d', Value::Int(n)) => Some(n.to_string()),
            ('d' | 'o' | 'b' | 'x' | 'X', Value::Uint(n)) => Some(self.based(false, *n)),
            ('f' | 'e', value) => number(value).map(|n| match self.verb {
                'f' => display::fixed(n, precision),
                _ => display::scientific(n, precision),
            }),
            ('b', Value::Bool(b)) => Some(u8::from(*b).to_string()),
            ('o' | 'b' | 'x' | 'X', Value::Int(n)) => Some(self.based(*n < 0, n.unsigned_abs())),
            ('x' | 'X', Value::String(text)) => Some(self.bytes(text.as_str().as_bytes())),
            ('x' | 'X', Value::Bytes(bytes)) => Some(self.bytes(bytes)),
            _ => None,
        };
        shown.ok_or_else(|| {
            let why = match value {
                // Bytes have a text, unless it is none.
                Value::Bytes(_) if self.verb == 's' => {
                    "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
                        .to_owned()
                }
                value => self.unfit(value.type_name()),
            };
            format!("error during formatting: {why}")
        })
    }

    fn based(self, negative: bool, n: u64) -> String {
        let sign = if negative { "-" } else { "" };
        match self.verb {
            'b' => format!("{sign}{n:b}"),
            'o' => format!("{sign}{n:o}"),
            'x' => format!("{sign}{n:x}"),
            'X' => format!("{sign}{n:X}"),
            _ => format!("{sign}{n}"),
        }
    }

    fn bytes(self, bytes: &[u8]) -> String {
        let digits = bytes.iter().map(|b| match self.verb {
            'x' => format!("{b:02x}"),
            _ => format!("{b:02X}"),
        });
        digits.collect()
    }
}

fn precision(digits: &str) -> FunctionResult<usize> {
    let why = match digits.parse::<usize>() {
        Ok(n) if n <= MAX_PRECISION => return Ok(n),
        _ if digits.is_empty() => "invalid syntax",
        _ => "value out of range",
    };
    let digits = quote(digits);
    Err(format!(
        "error while converting precision to integer: strconv.Atoi: parsing {digits}: {why}"
    ))
}

/// A number, or a text that names one.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(n) => Some(*n),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}
