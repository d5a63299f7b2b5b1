//! The rules that definitions declare: required, immutable, enums, bounds, lengths, patterns, formats, unique lists.
//!
//! Presence follows Go: a plain field that is zero counts as absent, so no rule but `required` looks at it, and of
//! numbers and booleans that are not optional `required` cannot be told and is taken for granted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{format, leaf_value, message_value};
use crate::field::{BadValue, ErrorList, ErrorType, FieldError, Path};
use crate::meta::v1::ObjectMeta;
use crate::reflect::{FieldDesc, Flags, LeafKind, List, ListType, Map, NO_RULES, Names, Reflect, Rules, Type, Value};

/// Which rules are looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Extent {
    /// Neither `required` nor unique lists.
    Values,
    /// `required` of optional fields, but no unique lists.
    Kubernetes,
    All,
}

/// Lists of so many items are searched item by item, which needs no memory.
const FEW_ITEMS: usize = 16;
/// Names of messages that start so are Kubernetes' own types. Their definitions publish `required` and list types that
/// the API does not enforce (`imageID` of a container status may be empty, names of environment variables may stand
/// twice); code decides it. Pointers that are required are enforced there too.
const KUBERNETES: &str = "io.k8s.";

/// Checks an object by every rule of its definition; `old` is the stored object of an update. Names of fields in the
/// errors start with `path` ([`Path::root`] for an object).
pub fn validate(new: &dyn Reflect, old: Option<&dyn Reflect>, path: &Path) -> ErrorList {
    run(new, old, path, Extent::All)
}

/// As [`validate`], but without `required` and without the uniqueness of lists: for kinds whose own code decides these
/// (many built-in ones publish them and take objects that break them).
pub fn validate_values(new: &dyn Reflect, old: Option<&dyn Reflect>, path: &Path) -> ErrorList {
    run(new, old, path, Extent::Values)
}

fn run(new: &dyn Reflect, old: Option<&dyn Reflect>, path: &Path, extent: Extent) -> ErrorList {
    let mut check = Check {
        errors: ErrorList::new(),
        extent,
        dynamic: false,
    };
    check.message(new, old, &Place::Path(path));
    check.errors
}

/// Where the check is. Turned into a path only for an error.
enum Place<'a> {
    Path(&'a Path),
    Field(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
    Key(&'a Place<'a>, &'a str),
}

impl Place<'_> {
    fn path(&self) -> Path {
        match self {
            Place::Path(path) => (*path).clone(),
            Place::Field(parent, name) => parent.path().child((*name).to_owned()),
            Place::Index(parent, index) => parent.path().index(*index),
            Place::Key(parent, key) => parent.path().key(*key),
        }
    }
}

struct Check {
    errors: ErrorList,
    extent: Extent,
    /// The message at hand is one that holds values whatever their type.
    dynamic: bool,
}

impl Check {
    /// Metadata has its own rules, in [`super::meta`].
    fn message(&mut self, new: &dyn Reflect, old: Option<&dyn Reflect>, place: &Place<'_>) {
        if new.as_any().is::<ObjectMeta>() {
            return;
        }
        let outer = (self.extent, self.dynamic);
        self.dynamic = new.desc().is_dynamic();
        if new.desc().name.starts_with(KUBERNETES) {
            self.extent = self.extent.min(Extent::Kubernetes);
        }
        for (index, field) in new.desc().fields.iter().enumerate() {
            if self.extent != Extent::All && !self.dynamic && !field.flags.has(Flags::HAS_RULES) {
                continue;
            }
            let value = new.get(index);
            let before = old.map(|o| o.get(index));
            if field.flags.has(Flags::INLINE) {
                if let Value::Message(message) = value {
                    let before = before.and_then(message_of);
                    self.message(message, before, place);
                }
                continue;
            }
            self.field(field, value, before, &Place::Field(place, &field.json));
        }
        (self.extent, self.dynamic) = outer;
    }

    fn field(&mut self, field: &FieldDesc, value: Value<'_>, old: Option<Value<'_>>, place: &Place<'_>) {
        let checked = !field.flags.has(Flags::UNCHECKED);
        let rules = if checked { &*field.rules } else { &NO_RULES };
        if checked
            && field.flags.has(Flags::IMMUTABLE)
            && let Some(old) = old
            && !is_absent(old)
            && !same(old, value)
        {
            self.errors
                .push(FieldError::invalid(&place.path(), shown(value), super::meta::IMMUTABLE));
        }
        if is_absent(value) && !counts_when_zero(field, value) {
            let told_apart =
                self.extent == Extent::All || (self.extent == Extent::Kubernetes && field.flags.has(Flags::OPTIONAL));
            if told_apart && checked && field.flags.has(Flags::REQUIRED) {
                self.errors.push(FieldError::required(&place.path(), ""));
            }
            return;
        }
        self.value(field, rules, (value, old), place);
    }

    /// A value that is there.
    fn value(
        &mut self,
        field: &FieldDesc,
        rules: &Rules,
        (value, old): (Value<'_>, Option<Value<'_>>),
        place: &Place<'_>,
    ) {
        if self.dynamic
            && let Some((expected, found)) = mismatch(field, value)
        {
            let path = place.path();
            let text = format!("{path} in body must be of type {expected}: \"{found}\"");
            return self
                .errors
                .push(FieldError::new(ErrorType::TypeInvalid, &path, found, text));
        }
        self.rules(rules, value, place);
        match value {
            Value::Message(message) => self.message(message, old.and_then(message_of), place),
            Value::List(list) => self.list(field, rules, (list, old), place),
            Value::Map(map) => self.map(rules, (map, old), place),
            _ => {}
        }
    }

    /// An item of a list or a value of a map.
    fn element(&mut self, element: &FieldDesc, value: Value<'_>, old: Option<Value<'_>>, place: &Place<'_>) {
        match value {
            Value::Message(message) if !self.dynamic => self.message(message, old.and_then(message_of), place),
            // What is declared of elements of structs stands at the field.
            _ if !self.dynamic => {}
            value => self.value(element, &element.rules, (value, old), place),
        }
    }

    fn list(
        &mut self,
        field: &FieldDesc,
        rules: &Rules,
        (list, old): (&dyn List, Option<Value<'_>>),
        place: &Place<'_>,
    ) {
        let keyed = field.list == ListType::Map;
        let unique = self.extent == Extent::All && matches!(field.list, ListType::Map | ListType::Set);
        let mut before = Before::of(old);
        let mut seen: Option<BTreeSet<String>> = (unique && list.len() > FEW_ITEMS).then(BTreeSet::new);
        for index in 0..list.len() {
            if self.errors.is_full() {
                break;
            }
            let value = list.get(index);
            let place = Place::Index(place, index);
            let repeats = match &mut seen {
                Some(seen) => !seen.insert(identity_text(field, value).into_owned()),
                None => unique && (0..index).any(|i| same_identity(field, list.get(i), value)),
            };
            if repeats {
                let shown = if keyed {
                    BadValue::json(identity_text(field, value).as_ref())
                } else {
                    shown(value)
                };
                self.errors.push(FieldError::duplicate(&place.path(), shown));
            }
            self.item_enum(rules, value, &place);
            let before = keyed.then(|| before.find(field, value, index)).flatten();
            self.element(list.element(), value, before, &place);
        }
    }

    fn map(&mut self, rules: &Rules, (map, old): (&dyn Map, Option<Value<'_>>), place: &Place<'_>) {
        map.for_each(&mut |key, value| {
            if self.errors.is_full() {
                return;
            }
            let place = Place::Key(place, key);
            self.item_enum(rules, value, &place);
            let before = match old {
                Some(Value::Map(old)) => old.get(key),
                _ => None,
            };
            self.element(map.element(), value, before, &place);
        });
    }

    fn item_enum(&mut self, rules: &Rules, value: Value<'_>, place: &Place<'_>) {
        if let Value::Str(text) = value
            && !rules.item_enum.is_empty()
            && !rules.item_enum.contains(text)
        {
            let known = rules.item_enum.to_vec();
            self.errors.push(FieldError::not_supported(&place.path(), text, &known));
        }
    }

    fn rules(&mut self, rules: &Rules, value: Value<'_>, place: &Place<'_>) {
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
        if !rules.format.is_empty() {
            self.errors.extend(format::check(&rules.format, text, &place.path()));
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

fn message_of(value: Value<'_>) -> Option<&dyn Reflect> {
    match value {
        Value::Message(message) => Some(message),
        _ => None,
    }
}

/// Which type is declared and which the value has, if it does not fit. Whole numbers are numbers too, and so are those
/// without a fraction whole.
fn mismatch(field: &FieldDesc, value: Value<'_>) -> Option<(&'static str, &'static str)> {
    let expected = match &field.ty {
        Type::Bool => "boolean",
        Type::Int32 | Type::Int64 => "integer",
        Type::Double => "number",
        Type::String => "string",
        Type::List(_) => "array",
        Type::Message(_) | Type::Map(_) => "object",
        Type::Bytes | Type::Leaf(_) | Type::Any => return None,
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
fn is_absent(value: Value<'_>) -> bool {
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
fn counts_when_zero(field: &FieldDesc, value: Value<'_>) -> bool {
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

/// What identifies an item of a list of type map or set, as text: its keys or all of it.
fn identity_text(field: &FieldDesc, value: Value<'_>) -> Cow<'static, str> {
    match field.list {
        ListType::Map => key_text(value, field.map_keys()),
        _ => Cow::Owned(value_text(value)),
    }
}

/// Whether two items have the same identity, without making texts of what is simple.
fn same_identity(field: &FieldDesc, a: Value<'_>, b: Value<'_>) -> bool {
    let (ListType::Map, Value::Message(a), Value::Message(b)) = (field.list, a, b) else {
        return same_text(a, b);
    };
    let key = crate::jsonpath::field;
    field.map_keys().iter().all(|name| match (key(a, name), key(b, name)) {
        (Some(a), Some(b)) => same_text(a, b),
        (a, b) => a.is_none() && b.is_none(),
    })
}

fn same_text(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Int32(a), Value::Int32(b)) => a == b,
        (Value::Int64(a), Value::Int64(b)) => a == b,
        _ => value_text(a) == value_text(b),
    }
}

/// The keys of an item of a list of type map, as a JSON object.
fn key_text(value: Value<'_>, keys: &Names) -> Cow<'static, str> {
    let mut names = keys.to_vec();
    names.sort_unstable();
    let mut out = String::from("{");
    let Value::Message(message) = value else {
        return Cow::Borrowed("{}");
    };
    for name in names {
        let Some(value) = crate::jsonpath::field(message, name) else {
            continue;
        };
        if out.len() > 1 {
            out.push(',');
        }
        crate::field::text::json_string(name, &mut out);
        out.push(':');
        out.push_str(&value_text(value));
    }
    out.push('}');
    Cow::Owned(out)
}

/// A value as JSON, to compare it by.
fn value_text(value: Value<'_>) -> String {
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

/// The old list, to find items by their keys in.
struct Before<'a> {
    list: Option<&'a dyn List>,
    /// Where the items of a long list are, by their keys; made when an item has changed its place.
    places: Option<BTreeMap<String, usize>>,
}

impl<'a> Before<'a> {
    fn of(old: Option<Value<'a>>) -> Before<'a> {
        let list = match old {
            Some(Value::List(list)) => Some(list),
            _ => None,
        };
        Before { list, places: None }
    }

    /// The first item with the same keys, most likely in the same place.
    fn find(&mut self, field: &FieldDesc, item: Value<'_>, index: usize) -> Option<Value<'a>> {
        let list = self.list?;
        let is_same = |i: &usize| same_identity(field, list.get(*i), item);
        let place = match Some(index).filter(is_same) {
            Some(index) => Some(index),
            None if list.len() <= FEW_ITEMS => (0..list.len()).find(is_same),
            None => {
                let places = self.places.get_or_insert_with(|| places(field, list));
                places.get(identity_text(field, item).as_ref()).copied()
            }
        };
        place.map(|i| list.get(i))
    }
}

/// The first place of each identity.
fn places(field: &FieldDesc, list: &dyn List) -> BTreeMap<String, usize> {
    let places = (0..list.len()).rev();
    places
        .map(|i| (identity_text(field, list.get(i)).into_owned(), i))
        .collect()
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
        Value::Bytes(_) | Value::List(_) | Value::Map(_) => super::json_value(value),
    }
}

/// Whether two values of one field are the same.
fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Leaf(a), Value::Leaf(b)) => a.eq_leaf(b),
        _ => value_text(a) == value_text(b),
    }
}

#[cfg(test)]
mod tests;
