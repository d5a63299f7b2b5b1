//! Validation of objects by a schema: what kube-apiserver's validator of OpenAPI schemas says, in its words and order.
//!
//! A value that did not change is not objected to, as long as the schema can tell which old value is its own. Of the
//! alternatives of `anyOf` and `oneOf` that do not fit, the faults of the one are told that most of the checks held of.
//! Properties are looked at in the order of their names.

mod embedded;
mod findings;
mod junctors;
mod numbers;
mod unique;

pub(super) use embedded::check as check_embedded;
pub(super) use unique::check as check_unique;

use findings::{Fault, Found};
use numbers::Number;

use super::correlate::{self, OldItems, unchanged};
use super::schema::{AdditionalProperties, Items, JsonSchema, Keywords, Literal, SchemaType};
use super::spot::Spot;
use super::view::{Object, View, item};
use crate::content::strfmt;
use crate::field::text::quote;
use crate::field::{BadValue, ErrorList, Path};
use crate::pattern;
use crate::reflect::List;

/// Faults that are kept of one object: more than a list of errors takes.
const MAX_FOUND: usize = 512;
/// Checks of values against schemas that one object may take. Alternatives multiply them.
const MAX_STEPS: u32 = 10_000_000;
const TOO_MANY_STEPS: &str = "the object takes too many checks against its schema";

/// Checks a value by a schema, against the value that it takes the place of. Names of fields begin with `root`.
pub(super) fn check_values(
    schema: &JsonSchema,
    new: &View<'_>,
    old: Option<&View<'_>>,
    root: &Path,
    errors: &mut ErrorList,
) {
    let walk = Walk {
        found: Vec::new(),
        steps: 0,
        as_default: false,
    };
    walk.run((schema, new, old), root, errors);
}

/// As [`check_values`], of a default: formats count there that the type of a value does not know, and what may be a
/// number or text may be anything.
pub(super) fn check_default(schema: &JsonSchema, value: &View<'_>, root: &Path, errors: &mut ErrorList) {
    let walk = Walk {
        found: Vec::new(),
        steps: 0,
        as_default: true,
    };
    walk.run((schema, value, None), root, errors);
}

struct Walk {
    found: Vec<Found>,
    steps: u32,
    /// Formats count whatever the type is, and what is a number or text has no type.
    as_default: bool,
}

/// What came of a value and all below it.
#[derive(Clone, Copy)]
struct Outcome {
    valid: bool,
    /// How many checks held, as the validator counts them.
    matched: u64,
}

impl Outcome {
    const NOTHING: Outcome = Outcome {
        valid: true,
        matched: 0,
    };

    fn add(&mut self, other: Outcome) {
        self.valid &= other.valid;
        self.matched += other.matched;
    }
}

impl Walk {
    fn run(
        mut self,
        (schema, new, old): (&JsonSchema, &View<'_>, Option<&View<'_>>),
        root: &Path,
        errors: &mut ErrorList,
    ) {
        let outcome = self.value(schema, new, old, &Spot::Here);
        if !outcome.valid {
            findings::report(self.found, root, errors);
        }
    }

    /// Whether there is nothing more to find.
    fn ended(&self) -> bool {
        self.found.len() >= MAX_FOUND
    }

    fn push(&mut self, found: Found) {
        if !self.ended() {
            self.found.push(found);
        }
    }

    fn fault(&mut self, fault: Fault, spot: &Spot<'_>, value: BadValue) {
        let name = spot.name();
        self.push(Found { fault, name, value });
    }

    /// A fault whose text goes `NAME in body TEXT`.
    fn in_body(&mut self, text: &str, spot: &Spot<'_>, value: BadValue) {
        let text = format!("{} in body {text}", spot.name());
        self.fault(Fault::Invalid(text), spot, value);
    }

    fn value(&mut self, schema: &JsonSchema, new: &View<'_>, old: Option<&View<'_>>, spot: &Spot<'_>) -> Outcome {
        let before = self.found.len();
        let mut outcome = self.changed(schema, new, old, spot);
        if !outcome.valid && old.is_some_and(|old| unchanged(schema, new, old)) {
            self.found.truncate(before);
            outcome.valid = true;
        }
        outcome
    }

    fn changed(&mut self, schema: &JsonSchema, new: &View<'_>, old: Option<&View<'_>>, spot: &Spot<'_>) -> Outcome {
        let was_spent = self.steps > MAX_STEPS;
        self.steps = self.steps.saturating_add(steps_of(schema));
        if self.steps > MAX_STEPS {
            if !was_spent {
                self.push(Found::whole(TOO_MANY_STEPS.to_owned()));
            }
            return Outcome {
                valid: false,
                matched: 0,
            };
        }
        let begin = self.found.len();
        let typed = !self.types(schema).is_empty();
        let format = match self.as_default {
            true => schema.format.as_str(),
            false => known_format(schema),
        };
        let mut outcome = Outcome::NOTHING;
        if typed || !format.is_empty() || new.is_null() {
            let fits = self.ty(schema, format, new, spot);
            outcome.valid &= fits;
            outcome.matched += u64::from(fits);
        }
        if new.is_null() {
            outcome.valid &= self.enumeration(schema, new, spot);
            return outcome;
        }
        outcome.matched += 1 + u64::from(typed || !format.is_empty());
        outcome.add(self.junctors(schema, new, spot));
        outcome.matched += 1;
        match new {
            View::Text(text) => {
                self.text(schema, text, spot);
                outcome.matched += 1;
                if strfmt::is_known(format) {
                    self.format(format, text, spot);
                    outcome.matched += 1;
                }
            }
            View::Int(n) => outcome.matched += self.number(schema, Number::Int(*n), spot),
            View::Double(n) => outcome.matched += self.number(schema, Number::Double(*n), spot),
            View::List(list) => {
                outcome.add(self.list(schema, *list, old, spot));
                outcome.matched += 2;
            }
            _ => {}
        }
        outcome.valid &= self.enumeration(schema, new, spot);
        outcome.matched += 1;
        if let View::Object(object) = new {
            outcome.add(self.object(schema, object, old, spot));
            outcome.matched += 1;
        }
        // Faults of parts may have been passed over; what was found here and stayed counts.
        outcome.valid &= self.found.len() == begin || self.ended();
        outcome
    }

    /// The type of a value. False: it is another one.
    fn ty(&mut self, schema: &JsonSchema, format: &str, new: &View<'_>, spot: &Spot<'_>) -> bool {
        let types = self.types(schema);
        let found = new.type_name();
        if new.is_null() {
            let fits = types.is_empty() || schema.has(Keywords::NULLABLE);
            return fits || self.wrong_type(&types.join(","), found, spot);
        }
        let numeric = types.iter().any(|ty| matches!(*ty, "number" | "integer"));
        let textual = matches!(new, View::Text(_) | View::List(_));
        let declared = types.contains(&found);
        let number = match new {
            View::Double(n) => types.contains(&"integer") && numbers::is_whole(*n),
            View::Int(_) => types.contains(&"number"),
            _ => false,
        };
        let own_format = match new {
            View::Int(_) => "int64",
            View::Double(_) => "float64",
            _ => "",
        };
        let fits = declared || number;
        if !textual && !format.is_empty() && !fits && own_format != format {
            return self.wrong_type(format, own_format, spot);
        }
        if !numeric && !format.is_empty() && textual {
            return true;
        }
        fits || self.wrong_type(&types.join(","), found, spot)
    }

    /// The types that values may have.
    fn types<'s>(&self, schema: &'s JsonSchema) -> Vec<&'s str> {
        match schema.type_name() {
            _ if schema.has(Keywords::INT_OR_STRING) && !self.as_default => vec!["integer", "string"],
            "" => Vec::new(),
            name => vec![name],
        }
    }

    /// Notes a value of another type. Always false.
    fn wrong_type(&mut self, expected: &str, found: &str, spot: &Spot<'_>) -> bool {
        let text = format!("{} in body must be of type {expected}: {}", spot.name(), quote(found));
        self.fault(Fault::Type(text), spot, found.into());
        false
    }

    fn text(&mut self, schema: &JsonSchema, text: &str, spot: &Spot<'_>) {
        let limits = schema.limits();
        if limits.max_length.is_some() || limits.min_length.is_some() {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if let Some(most) = limits.max_length.filter(|most| length > *most) {
                return self.fault(Fault::TooLong(most), spot, text.into());
            }
            if let Some(least) = limits.min_length.filter(|least| length < *least) {
                return self.in_body(&format!("should be at least {least} chars long"), spot, text.into());
            }
        }
        if limits.pattern.is_empty() {
            return;
        }
        let pattern = &limits.pattern;
        match pattern::compiled(pattern) {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => self.in_body(&format!("should match '{pattern}'"), spot, text.into()),
            Err(error) => {
                let text_of = format!("should match '{pattern}, but pattern is invalid: {error}'");
                self.in_body(&text_of, spot, text.into());
            }
        }
    }

    fn format(&mut self, format: &str, text: &str, spot: &Spot<'_>) {
        if strfmt::fits(format, text) == Some(false) {
            let words = format!("{} in body must be of type {format}: {}", spot.name(), quote(text));
            self.fault(Fault::Type(words), spot, text.into());
        }
    }

    /// How many checks held.
    fn number(&mut self, schema: &JsonSchema, number: Number, spot: &Spot<'_>) -> u64 {
        let mut found = Vec::new();
        numbers::check(schema, number, &|| spot.name(), &mut found);
        found.into_iter().for_each(|one| self.push(one));
        2
    }

    /// Whether the value is one of those that are listed, if any are.
    fn enumeration(&mut self, schema: &JsonSchema, new: &View<'_>, spot: &Spot<'_>) -> bool {
        let values = &schema.enumeration;
        if values.is_empty() || values.iter().any(|literal| is_literal(new, literal)) {
            return true;
        }
        let shown = values.iter().map(|literal| literal.shown().into_owned());
        self.fault(Fault::Enum(shown.collect()), spot, new.shown());
        false
    }

    fn list(&mut self, schema: &JsonSchema, list: &dyn List, old: Option<&View<'_>>, spot: &Spot<'_>) -> Outcome {
        let mut outcome = Outcome::NOTHING;
        let mut before = OldItems::of(schema, old);
        for index in 0..list.len() {
            let items = match schema.items.as_deref() {
                Some(Items::One(items)) => items,
                Some(Items::Each(each)) if index < each.len() => &each[index],
                _ => break,
            };
            let Some(value) = item(list, index) else { continue };
            if self.ended() {
                break;
            }
            let old = before.find(&value, index).filter(|old| !old.is_null());
            outcome.add(self.value(items, &value, old.as_ref(), &Spot::Index(spot, index)));
        }
        let (limits, size) = (schema.limits(), i64::try_from(list.len()).unwrap_or(i64::MAX));
        if let Some(least) = limits.min_items.filter(|least| size < *least) {
            self.in_body(&format!("should have at least {least} items"), spot, size.into());
        }
        if let Some(most) = limits.max_items.filter(|most| size > *most) {
            self.fault(Fault::TooMany(list.len(), most), spot, size.into());
        }
        if schema.has(Keywords::UNIQUE_ITEMS) && unique::has_duplicates(list) {
            self.in_body("shouldn't contain duplicates", spot, "".into());
        }
        outcome
    }

    fn object(&mut self, schema: &JsonSchema, object: &Object<'_>, old: Option<&View<'_>>, spot: &Spot<'_>) -> Outcome {
        let limits = schema.limits();
        if limits.min_properties.is_some() || limits.max_properties.is_some() {
            let count = object.len();
            let size = i64::try_from(count).unwrap_or(i64::MAX);
            if let Some(least) = limits.min_properties.filter(|least| size < *least) {
                self.in_body(&format!("should have at least {least} properties"), spot, size.into());
            }
            if let Some(most) = limits.max_properties.filter(|most| size > *most) {
                self.fault(Fault::TooMany(count, most), spot, size.into());
            }
        }
        let mut outcome = self.additional(schema, object, old, spot);
        object.properties(schema, &mut |property, value| {
            if self.ended() {
                return;
            }
            // The type of an object is that of its version, whatever it was before.
            let type_meta = matches!(spot, Spot::Here) && matches!(property.name.as_str(), "apiVersion" | "kind");
            let old = old.filter(|_| !type_meta);
            let old = correlate::member(schema, old, &property.name);
            let spot = Spot::Property(spot, &property.name);
            outcome.add(self.value(&property.schema, &value, old.as_ref(), &spot));
        });
        for name in &schema.required {
            if !object.has(name) {
                self.fault(Fault::Required, &Spot::Key(spot, name), "".into());
            }
        }
        outcome
    }

    /// Members that no property names.
    fn additional(
        &mut self,
        schema: &JsonSchema,
        object: &Object<'_>,
        old: Option<&View<'_>>,
        spot: &Spot<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::NOTHING;
        match schema.additional_properties.as_deref() {
            Some(AdditionalProperties::Schema(values)) => object.for_each(&mut |name, value| {
                if self.ended() || schema.property(name).is_some() {
                    return;
                }
                let old = correlate::member(schema, old, name);
                outcome.add(self.value(values, &value, old.as_ref(), &Spot::Key(spot, name)));
            }),
            Some(AdditionalProperties::Allowed(false)) => object.for_each(&mut |name, _| {
                if schema.property(name).is_none() {
                    let text = format!("{}.{name} in body is a forbidden property", spot.name());
                    self.fault(Fault::Invalid(text), spot, name.into());
                }
            }),
            _ => {}
        }
        outcome
    }
}

/// What a value costs by its schema alone: what is only looked for is quicker than a check.
fn steps_of(schema: &JsonSchema) -> u32 {
    let looked_for = schema.enumeration.len() + schema.required.len();
    u32::try_from(looked_for / 8).unwrap_or(u32::MAX).saturating_add(1)
}

impl JsonSchema {
    /// The format, if it is one that values of the type are not validated by.
    pub fn unknown_format(&self) -> Option<&str> {
        let is_known = self.format.is_empty() || !known_format(self).is_empty();
        (!is_known).then_some(self.format.as_str())
    }
}

/// The format, if it is one that values of the type are validated by; else "".
fn known_format(schema: &JsonSchema) -> &str {
    let format = schema.format.as_str();
    let known = match schema.ty {
        _ if format.is_empty() => false,
        _ if schema.has(Keywords::INT_OR_STRING) => strfmt::is_known(format),
        SchemaType::Unset | SchemaType::String => strfmt::is_known(format),
        SchemaType::Integer => matches!(format, "int32" | "int64"),
        SchemaType::Number => matches!(format, "float" | "double"),
        _ => false,
    };
    if known { format } else { "" }
}

/// Whether a value is the literal. Numbers are compared by the type of the literal.
fn is_literal(value: &View<'_>, literal: &Literal) -> bool {
    match (literal, value) {
        (Literal::Text(text), View::Text(own)) => own.as_ref() == text.as_str(),
        (Literal::Double(literal), View::Int(n)) => *literal == *n as f64,
        (Literal::Double(literal), View::Double(n)) => literal == n,
        (Literal::Json(json), View::Bool(b)) => json.as_str() == if *b { "true" } else { "false" },
        (Literal::Json(json), View::Int(n)) => json.parse() == Ok(*n),
        (Literal::Json(json), View::Double(n)) => json.parse() == Ok(n.trunc() as i64),
        (Literal::Json(json), View::List(_) | View::Object(_)) => json.as_str() == value.json(),
        _ => false,
    }
}
