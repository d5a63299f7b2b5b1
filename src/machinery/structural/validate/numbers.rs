//! Bounds of numbers. Those of whole numbers are cut to whole numbers, and bounds that do not fit the type are objected
//! to.

use super::findings::{Fault, Found};
use crate::field::BadValue;
use crate::field::text::float;
use crate::structural::schema::{JsonSchema, Keywords, SchemaType};

/// The largest whole number that a JSON number holds exactly, as a double.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;

/// A number as it was written: whole, or not.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Int(i64),
    Double(f64),
}

impl Number {
    fn wide(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Double(n) => n,
        }
    }

    fn shown(self) -> BadValue {
        match self {
            Number::Int(n) => n.into(),
            Number::Double(n) => n.into(),
        }
    }
}

/// Checks a number against the bounds of a schema; `name` is where it is.
pub(super) fn check(schema: &JsonSchema, number: Number, name: &dyn Fn() -> String, found: &mut Vec<Found>) {
    let check = Check {
        kind: Kind::of(schema),
        number,
        name,
    };
    check.range(number, "Checked", found);
    let limits = schema.limits();
    if let Some(factor) = limits.multiple_of {
        let fits = check.range(Number::Double(factor), "MultipleOf", found);
        check.multiple(factor, fits, found);
    }
    // What is said of the least comes before what is said of the most.
    if let Some(least) = limits.minimum {
        let fits = check.range(Number::Double(least), "Minimum boundary", found);
        check.bound(least, limits.exclusive_minimum, fits, false, found);
    }
    if let Some(most) = limits.maximum {
        let fits = check.range(Number::Double(most), "Maximum boundary", found);
        check.bound(most, limits.exclusive_maximum, fits, true, found);
    }
}

/// The type and format that numbers have to fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    Int32,
    Int64,
    /// A whole number without a format.
    Int,
    Float,
}

impl Kind {
    fn of(schema: &JsonSchema) -> Kind {
        match (schema.ty, schema.format.as_str()) {
            _ if schema.has(Keywords::INT_OR_STRING) => Kind::Any,
            (SchemaType::Integer, "int32") => Kind::Int32,
            (SchemaType::Integer, "int64") => Kind::Int64,
            (SchemaType::Integer, _) => Kind::Int,
            (SchemaType::Number, "float") => Kind::Float,
            _ => Kind::Any,
        }
    }

    fn takes(self, number: Number) -> bool {
        match (self, number) {
            (Kind::Any, _) | (Kind::Int | Kind::Int64, Number::Int(_)) => true,
            (Kind::Int32, Number::Int(n)) => i32::try_from(n).is_ok(),
            (Kind::Float, number) => number.wide().abs() < f32_overflow(),
            (Kind::Int | Kind::Int64, Number::Double(n)) => n.fract() == 0.0 && is_wide(n),
            (Kind::Int32, Number::Double(n)) => n.fract() == 0.0 && n >= i32::MIN.into() && n <= i32::MAX.into(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Kind::Int32 => "integer with format int32",
            Kind::Int64 => "integer with format int64",
            Kind::Float => "number with format float",
            Kind::Int | Kind::Any => "integer (default format)",
        }
    }
}

/// The least number that rounds to no finite 32-bit float.
fn f32_overflow() -> f64 {
    f64::from(f32::MAX) + 2f64.powi(103)
}

struct Check<'a> {
    kind: Kind,
    number: Number,
    name: &'a dyn Fn() -> String,
}

impl Check<'_> {
    fn invalid(&self, value: BadValue, text: String, found: &mut Vec<Found>) {
        found.push(Found {
            fault: Fault::Invalid(text),
            name: (self.name)(),
            value,
        });
    }

    /// Whether the number or bound is one of the type.
    fn range(&self, number: Number, what: &str, found: &mut Vec<Found>) -> bool {
        let fits = self.kind.takes(number);
        if !fits {
            let text = format!(
                "{what} value must be of type {} in {}",
                self.kind.words(),
                (self.name)()
            );
            found.push(Found::whole(text));
        }
        fits
    }

    fn multiple(&self, factor: f64, fits: bool, found: &mut Vec<Found>) {
        let (whole, factor_text) = match (fits, self.number) {
            (true, Number::Int(n)) => {
                let factor = whole(factor);
                let multiple = factor > 0 && n.wrapping_rem(factor) == 0;
                (multiple, factor.to_string())
            }
            _ => (is_multiple(self.number.wide(), factor), float(factor)),
        };
        let positive = match (fits, self.number) {
            (true, Number::Int(_)) => factor_text.parse::<i64>().is_ok_and(|n| n > 0),
            _ => factor > 0.0,
        };
        let name = (self.name)();
        if !positive {
            let text = format!("factor MultipleOf declared for {name} must be positive: {factor_text}");
            return self.invalid(BadValue::Text(factor_text), text, found);
        }
        if !whole {
            let value = match fits {
                true => self.number.shown(),
                false => Number::Double(self.number.wide()).shown(),
            };
            self.invalid(
                value,
                format!("{name} in body should be a multiple of {factor_text}"),
                found,
            );
        }
    }

    fn bound(&self, bound: f64, exclusive: bool, fits: bool, upper: bool, found: &mut Vec<Found>) {
        let outside = |order: std::cmp::Ordering| match upper {
            true => order.is_gt() || (exclusive && order.is_eq()),
            false => order.is_lt() || (exclusive && order.is_eq()),
        };
        let (broken, bound_text, value) = match (fits, self.number) {
            (true, Number::Int(n)) => {
                let bound = whole(bound);
                (outside(n.cmp(&bound)), bound.to_string(), self.number.shown())
            }
            _ => {
                let n = self.number.wide();
                let broken = n.partial_cmp(&bound).is_some_and(outside);
                (broken, float(bound), Number::Double(n).shown())
            }
        };
        if broken {
            let relation = match (upper, exclusive) {
                (true, false) => "less than or equal to",
                (true, true) => "less than",
                (false, false) => "greater than or equal to",
                (false, true) => "greater than",
            };
            let text = format!("{} in body should be {relation} {bound_text}", (self.name)());
            self.invalid(value, text, found);
        }
    }
}

/// The whole part; of what is too large the least number, as kube-apiserver's processors make it.
fn whole(bound: f64) -> i64 {
    if is_wide(bound) { bound as i64 } else { i64::MIN }
}

/// Whether the whole part of a double fits into 64 bits as it is written: with the fewest digits that tell it from
/// others, then zeros.
fn is_wide(n: f64) -> bool {
    n.trunc().to_string().parse::<i64>().is_ok()
}

fn is_multiple(number: f64, factor: f64) -> bool {
    match factor < 1.0 {
        true => is_whole(1.0 / factor * number),
        false => is_whole(number / factor),
    }
}

/// Whether a double counts as a whole number: what it lacks is less than a part in a thousand million.
pub(super) fn is_whole(n: f64) -> bool {
    const EPSILON: f64 = 1e-9;
    if !n.is_finite() || n.abs() > MAX_WHOLE {
        return false;
    }
    let cut = n.trunc();
    if n == cut {
        return true;
    }
    // Below zero the part is taken of a number that wraps around, which is never near.
    if n < 0.0 || cut == 0.0 {
        return false;
    }
    (n - cut) / (n + cut) < EPSILON
}
