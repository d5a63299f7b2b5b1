//! Fields: each option only where it means something, and with a value that can hold.

use super::{format, value};
use crate::model::{Field, FieldType, Message, Model};
use crate::options::{ListType, MapType};
use crate::problem::Problem;

/// Values of `patch_strategy`.
const STRATEGIES: [&str; 3] = ["merge", "replace", "retainKeys"];

pub fn check(model: &Model, message: &Message, field: &Field, problems: &mut Vec<Problem>) {
    let mut texts = Vec::new();
    let checker = Checker { model, message, field };
    checker.name(&mut texts);
    checker.presence(&mut texts);
    checker.defaults(&mut texts);
    checker.values(&mut texts);
    checker.bounds(&mut texts);
    checker.zero(&mut texts);
    checker.lists(&mut texts);
    checker.patches(&mut texts);
    let subject = format!("{}.{}", message.name, field.name);
    problems.extend(texts.into_iter().map(|text| Problem::new(&field.place, &subject, text)));
}

struct Checker<'a> {
    model: &'a Model,
    message: &'a Message,
    field: &'a Field,
}

impl Checker<'_> {
    /// The message that stands in the field or its elements, unless it is a leaf.
    fn inner(&self) -> Option<&Message> {
        self.field
            .ty
            .message()
            .and_then(|id| self.model.message(id))
            .filter(|m| !m.is_leaf())
    }

    fn is_number(&self) -> bool {
        matches!(self.field.ty, FieldType::Int32 | FieldType::Int64 | FieldType::Double)
    }

    fn name(&self, texts: &mut Vec<String>) {
        let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !self.field.name.chars().all(snake) {
            texts.push(format!(
                "a field is named in snake_case, its JSON name with `json_name`: write `{}`",
                crate::names::snake(&self.field.name)
            ));
        }
    }

    fn presence(&self, texts: &mut Vec<String>) {
        let o = &self.field.options;
        let plain_message = matches!(self.field.ty, FieldType::Message(_)) && !self.field.optional;
        if o.inline && (!plain_message || self.inner().is_none()) {
            texts.push("only a message can stand inline, and not an `optional` one: take `inline` out".to_owned());
        }
        if o.inline && (o.always || o.omit_zero || o.required || !self.field.default().is_empty()) {
            let text = "an inlined field has no JSON name that could be written or required: say it of its own fields";
            texts.push(text.to_owned());
        }
        let optional_message = self.field.optional && matches!(self.field.ty, FieldType::Message(_));
        if self.field.lazy && (!optional_message || self.inner().is_none()) {
            texts.push("`lazy` belongs to `optional` messages: take it out".to_owned());
        }
        if o.omit_zero && !plain_message {
            texts.push("`omit_zero` belongs to messages that are not `optional`: take it out".to_owned());
        }
        if o.typed && self.inner().is_none_or(|m| m.kind.is_none()) {
            texts.push("`typed` belongs to messages that are kinds, and to lists of them: take it out".to_owned());
        }
        if o.unchecked && !self.field.says_rules() {
            texts.push(
                "`unchecked` belongs to fields with rules, which are then published alone: take it out".to_owned(),
            );
        }
        if o.empty_list && (!o.always || !matches!(self.field.ty, FieldType::List(_))) {
            texts.push("`empty_list` belongs to lists that are `always` written: take it out".to_owned());
        }
        if o.optional_list && (o.always || !matches!(self.field.ty, FieldType::List(_))) {
            texts.push("`optional_list` belongs to lists that are not `always` written: take it out".to_owned());
        }
        if o.omit_zero && o.always {
            texts.push("`always` and `omit_zero` contradict each other: take one out".to_owned());
        }
    }

    fn defaults(&self, texts: &mut Vec<String>) {
        let o = &self.field.options;
        if !o.default.is_empty() && !o.server_default.is_empty() {
            texts.push(
                "`default` and `server_default` are both set: keep the one that says whether to publish".to_owned(),
            );
        }
        if !self.field.default().is_empty() {
            texts.extend(value::check(self.model, self.field, self.field.default()).err());
        }
    }

    fn values(&self, texts: &mut Vec<String>) {
        let (o, ty) = (&self.field.options, &self.field.ty);
        if !o.enum_values.is_empty() && *ty != FieldType::String {
            texts.push("`enum` belongs to a string field; of a list or map write `item_enum`".to_owned());
        }
        let of_strings = matches!(ty, FieldType::List(e) | FieldType::Map(e) if **e == FieldType::String);
        if !o.item_enum.is_empty() && !of_strings {
            texts.push("`item_enum` belongs to a list or map of strings; of a string write `enum`".to_owned());
        }
        for values in [&o.enum_values, &o.item_enum] {
            let mut sorted = values.clone();
            sorted.sort();
            if let Some(pair) = sorted.windows(2).find(|pair| pair.first() == pair.last()) {
                texts.push(format!(
                    "{:?} stands twice in the enum: take one out",
                    pair.first().cloned().unwrap_or_default()
                ));
            }
        }
        if !o.pattern.is_empty() {
            if *ty != FieldType::String {
                texts.push("`pattern` belongs to a string field: take it out".to_owned());
            }
            if let Err(error) = regex::Regex::new(&o.pattern) {
                let reason = error.to_string();
                let reason = reason
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim()
                    .trim_start_matches("error: ");
                texts.push(format!(
                    "the pattern {:?} does not compile ({reason}): write a regular expression",
                    o.pattern
                ));
            }
        }
        for (option, format) in [
            ("format", &o.format),
            ("key_format", &o.key_format),
            ("item_format", &o.item_format),
        ] {
            if let Some(near) = format::unknown(format) {
                texts.push(format!("`{option}` {format:?} is none that is known: write {near}"));
            }
        }
        if !o.format.is_empty() && !ty.is_scalar() {
            texts.push("`format` belongs to a text or number: take it out".to_owned());
        }
        if !o.key_format.is_empty() && !matches!(ty, FieldType::Map(_)) {
            texts.push("`key_format` belongs to a map: take it out".to_owned());
        }
        let of_scalars = matches!(ty, FieldType::List(e) | FieldType::Map(e) if e.is_scalar());
        if !o.item_format.is_empty() && !of_scalars {
            texts.push("`item_format` belongs to a list or map of texts or numbers: take it out".to_owned());
        }
        if !o.required_when.is_empty() {
            let member = o.required_when.split_once('=').map(|(member, _)| member);
            if member.is_none_or(|m| self.model.find_field(self.message, m).is_none()) {
                texts.push(
                    "`required_when` names a field of the same message and its value: write \"type=Static\"".to_owned(),
                );
            }
        }
        if o.rules.iter().any(|r| r.rule.is_empty()) {
            texts.push("a rule without `rule`: write the CEL expression that must be true".to_owned());
        }
    }

    fn bounds(&self, texts: &mut Vec<String>) {
        let (o, ty) = (&self.field.options, &self.field.ty);
        let numeric = o.minimum.or(o.maximum).or(o.multiple_of).is_some();
        if numeric && !self.is_number() {
            texts.push("`minimum`, `maximum` and `multiple_of` belong to numbers: take them out".to_owned());
        }
        if o.multiple_of.is_some_and(|m| m <= 0.0) {
            texts.push("`multiple_of` is larger than 0".to_owned());
        }
        for (name, exclusive, bound) in [
            ("minimum", o.exclusive_minimum, o.minimum),
            ("maximum", o.exclusive_maximum, o.maximum),
        ] {
            if exclusive && bound.is_none() {
                texts.push(format!(
                    "`exclusive_{name}` says how to read `{name}`, which is missing: add it"
                ));
            }
        }
        if let (Some(minimum), Some(maximum)) = (o.minimum, o.maximum)
            && (minimum > maximum || (minimum == maximum && (o.exclusive_minimum || o.exclusive_maximum)))
        {
            texts.push(format!(
                "no number is between minimum {minimum} and maximum {maximum}: swap or widen them"
            ));
        }
        let is_text = matches!(ty, FieldType::String | FieldType::Bytes);
        let is_map = matches!(ty, FieldType::Map(_) | FieldType::Message(_));
        for (what, belongs, fits, minimum, maximum) in [
            ("length", "texts and bytes", is_text, o.min_length, o.max_length),
            (
                "items",
                "lists",
                matches!(ty, FieldType::List(_)),
                o.min_items,
                o.max_items,
            ),
            (
                "properties",
                "maps and messages",
                is_map,
                o.min_properties,
                o.max_properties,
            ),
        ] {
            if minimum.or(maximum).is_some() && !fits {
                texts.push(format!(
                    "`min_{what}` and `max_{what}` belong to {belongs}: take them out"
                ));
            }
            if let (Some(minimum), Some(maximum)) = (minimum, maximum)
                && minimum > maximum
            {
                texts.push(format!(
                    "min_{what} {minimum} is larger than max_{what} {maximum}: swap or widen them"
                ));
            }
        }
    }

    /// A bound that what stands for absent does not meet: it passes. Kubernetes' own say in code what they mean.
    fn zero(&self, texts: &mut Vec<String>) {
        let o = &self.field.options;
        let zero_is_there = o.always && self.is_number();
        let stated = self.field.optional || o.required || zero_is_there || !self.field.default().is_empty();
        let of_kubernetes = self.message.openapi.starts_with("io.k8s.");
        if stated || of_kubernetes || o.unchecked {
            return;
        }
        let least = |name: &str, count: Option<u32>| Some(format!("{name}: {}", count.filter(|count| *count > 0)?));
        let optional = "`optional` in front of the type, or ";
        let (zero, bound, remedy) = match &self.field.ty {
            FieldType::String | FieldType::Bytes => ("\"\"", least("min_length", o.min_length), optional),
            FieldType::List(_) => ("[]", least("min_items", o.min_items), "`optional_list: true` or "),
            FieldType::Map(_) => ("{}", least("min_properties", o.min_properties), ""),
            _ if self.is_number() => ("0", self.bound_missed_by_zero(), optional),
            _ => return,
        };
        if let Some(bound) = bound {
            texts.push(format!(
                "{zero} stands for absent here, so that it passes beside `{bound}`: write {remedy}`required: true`"
            ));
        }
    }

    /// The bound of a number that 0 does not meet.
    fn bound_missed_by_zero(&self) -> Option<String> {
        let o = &self.field.options;
        let least = o
            .minimum
            .filter(|least| *least > 0.0 || (*least == 0.0 && o.exclusive_minimum));
        let most = o
            .maximum
            .filter(|most| *most < 0.0 || (*most == 0.0 && o.exclusive_maximum));
        match (least, most) {
            (Some(least), _) => Some(format!("minimum: {least}")),
            (None, Some(most)) => Some(format!("maximum: {most}")),
            (None, None) => None,
        }
    }

    fn lists(&self, texts: &mut Vec<String>) {
        let (o, ty) = (&self.field.options, &self.field.ty);
        let element = match ty {
            FieldType::List(element) => Some(element.as_ref()),
            _ => None,
        };
        match (o.list_type, element) {
            (ListType::Unset, _) => {}
            // Bytes are a list in Go; it is published so.
            (ListType::Atomic, None) if *ty == FieldType::Bytes => {}
            (_, None) => texts.push("`list_type` belongs to a list: write `repeated`, or take it out".to_owned()),
            (ListType::Map, Some(_)) if self.inner().is_none() => {
                texts.push(
                    "elements of a list of type MAP are messages with keys: write `list_type: SET` or ATOMIC"
                        .to_owned(),
                );
            }
            (ListType::Map, Some(_)) if o.map_keys.is_empty() => {
                texts.push("a list of type MAP needs keys: write `map_keys: [\"name\"]`".to_owned());
            }
            (ListType::Set, Some(_)) if self.inner().is_some_and(|m| m.ty.map_type != MapType::Atomic) => {
                texts.push(
                    "elements of a list of type SET are texts or numbers: write `list_type: MAP` and `map_keys`"
                        .to_owned(),
                );
            }
            _ => {}
        }
        if !o.map_keys.is_empty() && o.list_type != ListType::Map {
            texts.push("`map_keys` needs `list_type: MAP`: add it".to_owned());
        }
        for key in &o.map_keys {
            texts.extend(self.key("map_keys", key));
        }
        if o.map_type != MapType::Unset && !matches!(ty, FieldType::Map(_) | FieldType::Message(_)) {
            texts.push("`map_type` belongs to a map or message: take it out".to_owned());
        }
    }

    fn patches(&self, texts: &mut Vec<String>) {
        let o = &self.field.options;
        for strategy in &o.patch_strategy {
            if !STRATEGIES.contains(&strategy.as_str()) {
                texts.push(format!(
                    "unknown patch strategy {strategy:?}: write {}",
                    STRATEGIES.join(", ")
                ));
            }
        }
        if o.merge_key.is_empty() {
            return;
        }
        if !o.patch_strategy.iter().any(|s| s == "merge") {
            texts.push("`merge_key` needs `patch_strategy: [\"merge\"]`: add it".to_owned());
        }
        texts.extend(self.key("merge_key", &o.merge_key));
    }

    /// A key of elements must be one of their fields, with a value that can be compared.
    fn key(&self, option: &str, key: &str) -> Option<String> {
        let Some(inner) = self.inner().filter(|_| matches!(self.field.ty, FieldType::List(_))) else {
            return Some(format!("`{option}` belongs to a list of messages: take it out"));
        };
        let names = || {
            inner
                .fields
                .iter()
                .map(|f| f.json.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self.model.find_field(inner, key) {
            None => Some(format!(
                "`{option}` names {key:?}, which is no field of {}: write one of {}",
                inner.name,
                names()
            )),
            Some(field)
                if !field.ty.is_scalar()
                    && field
                        .ty
                        .message()
                        .is_none_or(|m| self.model.message(m).is_none_or(|m| !m.is_leaf())) =>
            {
                Some(format!(
                    "`{option}` names {key:?}, which is no text or number: write another field of {}",
                    inner.name
                ))
            }
            Some(_) => None,
        }
    }
}
