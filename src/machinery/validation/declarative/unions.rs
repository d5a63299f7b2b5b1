//! Unions: fields of a message of which one stands alone, and fields that others make required.

use super::values::{counts_when_zero, is_absent};
use super::{Check, Place};
use crate::field::{BadValue, FieldError};
use crate::reflect::{self, FieldDesc, Reflect, Union, Value};

impl Check<'_> {
    /// The unions of a message. One whose discriminator and members are there or not as before is not looked at again.
    pub(super) fn unions(&mut self, new: &dyn Reflect, old: Option<&dyn Reflect>, place: &Place<'_>) {
        for union in &new.desc().rules.unions {
            if old.is_some_and(|old| is_same(union, new, old)) {
                continue;
            }
            match union.discriminator.as_str() {
                "" => self.one_of(union, new, place),
                discriminator => self.discriminated(union, discriminator, new, place),
            }
        }
    }

    fn one_of(&mut self, union: &Union, new: &dyn Reflect, place: &Place<'_>) {
        let all: Vec<String> = union.members.iter().map(|m| format!("`{}`", m.field)).collect();
        let given: Vec<&str> = union
            .members
            .iter()
            .map(|m| m.field.as_str())
            .filter(|m| is_set(new, m))
            .collect();
        let (value, text) = match given.len() {
            1 => return,
            0 => (String::new(), "must specify one of"),
            _ => (format!("{{{}}}", given.join(", ")), "must specify exactly one of"),
        };
        let text = format!("{text}: {}", all.join(", "));
        self.errors.push(FieldError::invalid(&place.path(), value, text));
    }

    fn discriminated(&mut self, union: &Union, discriminator: &str, new: &dyn Reflect, place: &Place<'_>) {
        let named = text_of(new, discriminator);
        for member in &union.members {
            let text = match (is_set(new, &member.field), named == member.value) {
                (true, false) => format!("may only be specified when `{discriminator}` is {:?}", member.value),
                (false, true) => format!("must be specified when `{discriminator}` is {:?}", member.value),
                _ => continue,
            };
            let place = Place::Field(place, &member.field);
            self.errors
                .push(FieldError::invalid(&place.path(), BadValue::from(""), text));
        }
    }
}

/// Whether a field must be there because another has a value.
pub(super) fn is_required_beside(field: &FieldDesc, message: &dyn Reflect) -> bool {
    let condition = field.rules.required_when.split_once('=');
    condition.is_some_and(|(member, value)| text_of(message, member) == value)
}

fn is_same(union: &Union, new: &dyn Reflect, old: &dyn Reflect) -> bool {
    let discriminator = &union.discriminator;
    (discriminator.is_empty() || text_of(new, discriminator) == text_of(old, discriminator))
        && union
            .members
            .iter()
            .all(|m| is_set(new, &m.field) == is_set(old, &m.field))
}

fn is_set(message: &dyn Reflect, name: &str) -> bool {
    reflect::member(message, name).is_some_and(|(field, value)| !is_absent(value) || counts_when_zero(field, value))
}

/// A text, number or boolean as definitions write it.
fn text_of(message: &dyn Reflect, name: &str) -> String {
    match reflect::member(message, name) {
        Some((_, Value::Str(text))) => text.to_owned(),
        Some((_, Value::Bool(value))) => value.to_string(),
        Some((_, Value::Int32(value))) => value.to_string(),
        Some((_, Value::Int64(value))) => value.to_string(),
        _ => String::new(),
    }
}
