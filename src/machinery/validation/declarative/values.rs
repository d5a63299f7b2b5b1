//! Rules of single values: enums, lengths, patterns, formats, bounds, counts; absence, and values in texts.

use super::{Check, Place};
use crate::field::{BadValue, FieldError};
use crate::reflect::{FieldDesc, Flags, LeafKind, Rules, Type, Value};
use crate::validation::{format, leaf_value, message_value};

impl Check<'_> {
    pub(super) fn rules(&mut self, rules: &Rules, value: Value<'_>, place: &Place<'_>) {
        if !rules.format.is_empty() {
            self.format(&rules.format, value, place);
        }
        match value {
            Value::Str(text) => self.text(rules, text, place),
            Value::Int32(v) => self.number(rules, f64::from(v), v.into(), place),
            // Bounds beyond 2^53 are of no use in a definition, whose bounds are doubles.
            Value::Int64(v) => self.number(rules, v as f64, v.into(), place),
            Value::Double(v) => self.number(rules, v, v.into(), place),
            Value::List(list) => self.count(rules.min_items, rules.max_items, list.len(), place),
            Value::Map(map) => self.properties(rules, map.len(), place),
            _ => {}
        }
    }

    fn text(&mut self, rules: &Rules, text: &str, place: &Place<'_>) {
        if !rules.enum_values.is_empty() && !rules.enum_values.contains(text) {
            let mut known = rules.enum_values.to_vec();
            known.sort_unstable();
            self.errors.push(FieldError::not_supported(&place.path(), text, &known));
        }
        if rules.max_length.or(rules.min_length).is_some() {
            self.length(rules, text, place);
        }
        if !rules.pattern.is_empty() && format::matches_pattern(&rules.pattern, text) != Some(true) {
            let path = place.path();
            let detail = format!("{path} in body should match '{}'", rules.pattern);
            self.errors.push(FieldError::invalid(&path, text, detail));
        }
    }

    /// Formats of texts, and of numbers: `port`.
    pub(super) fn format(&mut self, format: &str, value: Value<'_>, place: &Place<'_>) {
        let number = match value {
            Value::Str(text) => return self.errors.extend(format::check(format, text, || place.path())),
            Value::Int32(number) => i64::from(number),
            Value::Int64(number) => number,
            _ => return,
        };
        if let Some(text) = format::check_number(format, number) {
            self.errors.push(FieldError::invalid(&place.path(), number, text));
        }
    }

    fn length(&mut self, rules: &Rules, text: &str, place: &Place<'_>) {
        let length = text.chars().count();
        if let Some(max) = rules.max_length.filter(|max| length > *max as usize) {
            self.errors.push(FieldError::too_long(&place.path(), max as usize));
        }
        if let Some(min) = rules.min_length.filter(|min| length < *min as usize) {
            self.errors
                .push(FieldError::too_short(&place.path(), text, min as usize));
        }
    }

    fn number(&mut self, rules: &Rules, v: f64, shown: BadValue, place: &Place<'_>) {
        let number = crate::field::text::float;
        let mut details = Vec::new();
        match (rules.minimum, rules.exclusive_minimum) {
            (Some(min), false) if v < min => {
                details.push(format!("must be greater than or equal to {}", number(min)));
            }
            (Some(min), true) if v <= min => details.push(format!("must be greater than {}", number(min))),
            _ => {}
        }
        match (rules.maximum, rules.exclusive_maximum) {
            (Some(max), false) if v > max => details.push(format!("must be less than or equal to {}", number(max))),
            (Some(max), true) if v >= max => details.push(format!("must be less than {}", number(max))),
            _ => {}
        }
        if let Some(factor) = rules.multiple_of.filter(|factor| *factor > 0.0) {
            let quotient = v / factor;
            if quotient != quotient.round() {
                details.push(format!("must be a multiple of {}", number(factor)));
            }
        }
        for detail in details {
            self.errors
                .push(FieldError::invalid(&place.path(), shown.clone(), detail));
        }
    }

    fn count(&mut self, min: Option<u32>, max: Option<u32>, length: usize, place: &Place<'_>) {
        if let Some(max) = max.filter(|max| length > *max as usize) {
            self.errors
                .push(FieldError::too_many(&place.path(), length, max as usize));
        }
        if let Some(min) = min.filter(|min| length < *min as usize) {
            self.errors
                .push(FieldError::too_few(&place.path(), length, min as usize));
        }
    }

    fn properties(&mut self, rules: &Rules, length: usize, place: &Place<'_>) {
        self.count(rules.min_properties, rules.max_properties, length, place);
    }
}

/// Which type is declared and which the value has, if it does not fit. Whole numbers are numbers too, and so are those
/// without a fraction whole.
pub(super) fn mismatch(field: &FieldDesc, value: Value<'_>) -> Option<(&'static str, &'static str)> {
    let expected = match &field.ty {
        Type::Bool => "boolean",
        Type::Int32 | Type::Int64 => "integer",
        Type::Double => "number",
        Type::String => "string",
        Type::List(_) => "array",
        Type::Message(_) | Type::Map(_) => "object",
        Type::Bytes | Type::Leaf(_) | Type::Any | Type::Untyped => return None,
    };
    let found = match value {
        Value::Null if field.flags.has(Flags::NULLABLE) => return None,
        Value::Absent | Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int32(_) | Value::Int64(_) if expected == "number" => return None,
        Value::Int32(_) | Value::Int64(_) => "integer",
        Value::Double(v) if expected == "integer" && v.fract() == 0.0 => return None,
        Value::Double(_) => "number",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Message(_) | Value::Map(_) => "object",
        Value::Bytes(_) | Value::Leaf(_) => return None,
    };
    (expected != found).then_some((expected, found))
}

/// Whether the value is what an absent field has.
pub(super) fn is_absent(value: Value<'_>) -> bool {
    match value {
        Value::Absent | Value::Bool(false) | Value::Int32(0) | Value::Int64(0) => true,
        Value::Double(v) => v == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        // A quantity of 0 is a value.
        Value::Leaf(leaf) => {
            leaf.is_zero() && matches!(leaf.kind(), LeafKind::Time | LeafKind::MicroTime | LeafKind::Raw)
        }
        _ => false,
    }
}

/// Whether a zero in this field is a value: it is in an `Option` that is set, and for numbers and booleans that must be
/// present or are always written.
pub(super) fn counts_when_zero(field: &FieldDesc, value: Value<'_>) -> bool {
    if matches!(value, Value::Absent) {
        return false;
    }
    let number = matches!(
        value,
        Value::Bool(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_)
    );
    let stated = field.flags.has(Flags::REQUIRED) || field.flags.has(Flags::ALWAYS);
    field.flags.has(Flags::OPTIONAL) || (number && stated)
}

/// A value as JSON, to compare it by.
pub(super) fn value_text(value: Value<'_>) -> String {
    match shown(value) {
        BadValue::Str(text) => {
            let mut out = String::new();
            crate::field::text::json_string(&text, &mut out);
            out
        }
        BadValue::Text(text) => text,
        BadValue::Omitted => String::new(),
    }
}

/// A value as error texts show it.
pub fn shown(value: Value<'_>) -> BadValue {
    match value {
        Value::Absent | Value::Null => BadValue::null(),
        Value::Bool(v) => v.into(),
        Value::Int32(v) => v.into(),
        Value::Int64(v) => v.into(),
        Value::Double(v) => v.into(),
        Value::Str(v) => v.into(),
        Value::Message(v) => message_value(v),
        Value::Leaf(v) => leaf_value(v),
        Value::Bytes(_) | Value::List(_) | Value::Map(_) => crate::validation::json_value(value),
    }
}

/// Whether two values of one field are the same.
pub(super) fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Leaf(a), Value::Leaf(b)) => a.eq_leaf(b),
        _ => value_text(a) == value_text(b),
    }
}
