//! Declarative validation: required, immutable, enums, bounds, lengths, patterns, formats, unique lists, unions, CEL
//! rules, and the code that checks messages of a type wherever they stand.
//!
//! Presence follows Go: a plain field that is zero counts as absent, so no rule but `required` looks at it, and of
//! numbers and booleans that are not optional `required` cannot be told and is taken for granted.
//!
//! Ratcheting: where a definition is of one's own, what is stored and stays as it is passes, so that a definition may
//! become stricter than its objects and a write of the status, of metadata or of finalizers never fails for the spec.
//! kube-apiserver does so for custom resources; its own kinds have rules of their own for what was stored.

mod expressions;
mod identity;
mod place;
mod type_checks;
mod unions;
mod values;

use std::collections::BTreeSet;

pub use expressions::{RuleError, compile};
pub use place::Place;
pub use type_checks::TypeChecks;
pub use values::shown;

use crate::field::{BadValue, ErrorList, ErrorType, FieldError, Path};
use crate::meta::v1::ObjectMeta;
use crate::reflect::equality;
use crate::reflect::{self, BY_SCHEMA, FieldDesc, Flags, List, ListType, Map, NO_RULES, Reflect, Rules, Value};
use identity::{Before, identity_text, same_identity};
use values::{counts_when_zero, is_absent, mismatch, same};

/// Which rules are looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Extent {
    /// `required` of optional fields, but neither unique lists nor unions.
    Kubernetes,
    All,
}

/// Lists of so many items are searched item by item, which needs no memory.
const FEW_ITEMS: usize = 16;
/// Names of messages that start so are Kubernetes' own types. Their definitions publish `required`, list types and
/// unions that the API does not enforce (`imageID` of a container status may be empty, names of environment variables
/// may stand twice); code decides it. Pointers that are required are enforced there too.
const KUBERNETES: &str = "io.k8s.";

/// Checks an object by every rule of its definition; `old` is the stored object of an update. Names of fields in the
/// errors start with `path` ([`Path::root`] for an object).
pub fn validate(new: &dyn Reflect, old: Option<&dyn Reflect>, path: &Path) -> ErrorList {
    validate_with(new, old, path, &TypeChecks::default())
}

/// As [`validate`], with the checks that code has for types of messages.
///
/// Objects of a schema have none: whoever has the schema asks it. CEL rules are evaluated when nothing was found that
/// an expression could stumble over, as kube-apiserver does it.
pub fn validate_with(new: &dyn Reflect, old: Option<&dyn Reflect>, path: &Path, checks: &TypeChecks) -> ErrorList {
    if new.desc().rules.is(&BY_SCHEMA) {
        return ErrorList::new();
    }
    let mut check = Check {
        errors: ErrorList::new(),
        extent: Extent::All,
        dynamic: false,
        checks,
    };
    check.message(new, old, &Place::Path(path));
    expressions::evaluate(new, old, path, &mut check.errors);
    check.errors
}

struct Check<'c> {
    errors: ErrorList,
    extent: Extent,
    /// The message at hand is one that holds values whatever their type.
    dynamic: bool,
    checks: &'c TypeChecks,
}

impl Check<'_> {
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
        if self.extent == Extent::All && new.desc().has_rules() {
            self.unions(new, old, place);
        }
        for (index, field, value) in reflect::fields_and_missed(new) {
            if !self.is_walked(field) {
                continue;
            }
            let before = old.map(|o| o.get(index));
            if field.flags.has(Flags::INLINE) {
                if let Value::Message(message) = value {
                    let before = before.and_then(message_of);
                    self.message(message, before, place);
                }
                continue;
            }
            let place = Place::Field(place, &field.json);
            if is_absent(value) && unions::is_required_beside(field, new) {
                let from = self.errors.len();
                self.errors.push(FieldError::required(&place.path(), ""));
                self.ratchet(from, value, before);
                continue;
            }
            self.field(field, value, before, &place);
        }
        self.checks.run(new, old, place, &mut self.errors);
        (self.extent, self.dynamic) = outer;
    }

    /// Whether there may be something to check at or below a field.
    fn is_walked(&self, field: &FieldDesc) -> bool {
        self.extent == Extent::All
            || self.dynamic
            || field.flags.has(Flags::HAS_RULES)
            || field.message().is_some_and(|message| self.checks.reach(message))
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
                let from = self.errors.len();
                self.errors.push(FieldError::required(&place.path(), ""));
                self.ratchet(from, value, old);
            }
            return;
        }
        self.value(field, rules, (value, old), place);
    }

    /// Takes the faults of a value out that stands as it stood. Compared only where there are any.
    fn ratchet(&mut self, from: usize, value: Value<'_>, old: Option<Value<'_>>) {
        let unchanged = |old| equality::equal_values(old, value);
        if self.extent == Extent::All && self.errors.len() > from && old.is_some_and(unchanged) {
            self.errors.truncate(from);
        }
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
        let from = self.errors.len();
        self.rules(rules, value, place);
        // What is below is compared where it stands, but for lists whose items nothing tells apart.
        let whole = matches!(value, Value::List(_)) && field.list != ListType::Map;
        if !whole {
            self.ratchet(from, value, old);
        }
        match value {
            Value::Message(message) => self.message(message, old.and_then(message_of), place),
            Value::List(list) => self.list(field, rules, (list, old), place),
            Value::Map(map) => self.map(rules, (map, old), place),
            _ => {}
        }
        if whole {
            self.ratchet(from, value, old);
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
            self.item_rules(rules, value, &place);
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
            let before = match old {
                Some(Value::Map(old)) => old.get(key),
                _ => None,
            };
            let from = self.errors.len();
            if !rules.key_format.is_empty() {
                self.format(&rules.key_format, Value::Str(key), &place);
            }
            self.item_rules(rules, value, &place);
            self.ratchet(from, value, before);
            self.element(map.element(), value, before, &place);
        });
    }

    fn item_rules(&mut self, rules: &Rules, value: Value<'_>, place: &Place<'_>) {
        if let Value::Str(text) = value
            && !rules.item_enum.is_empty()
            && !rules.item_enum.contains(text)
        {
            let known = rules.item_enum.to_vec();
            self.errors.push(FieldError::not_supported(&place.path(), text, &known));
        }
        if !rules.item_format.is_empty() {
            self.format(&rules.item_format, value, place);
        }
    }
}

fn message_of(value: Value<'_>) -> Option<&dyn Reflect> {
    match value {
        Value::Message(message) => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
