//! Immutable fields: what an object keeps from its making on, whoever may write it.

use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::Object;
use keelson_machinery::reflect::{MessageDesc, Type, Value};
use keelson_machinery::validation::declarative::shown;

const IMMUTABLE: &str = "field is immutable";

/// A field of the hub version that may not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// JSON names, joined by dots: `spec.pool.name`. Whatever stands below it is kept too.
    pub path: &'static str,
    /// The path that clients are told; mostly the same.
    pub told: &'static str,
    /// The words of a refusal where a kind has its own; they don't show the value.
    pub forbidden: Option<&'static str>,
}

impl Kept {
    /// A field that is told as it is called, in the usual words.
    pub const fn at(path: &'static str) -> Kept {
        Kept {
            path,
            told: path,
            forbidden: None,
        }
    }

    /// Whether there is such a field.
    pub(super) fn is_in(&self, message: &MessageDesc) -> bool {
        let mut within = Some(message);
        self.path.split('.').all(|name| {
            let Some((_, field)) = within.and_then(|message| message.field(name)) else {
                return false;
            };
            within = match &field.ty {
                Type::Message(inner) => Some(inner),
                _ => None,
            };
            true
        })
    }

    /// A fault if the field has changed.
    pub fn fault(&self, new: &dyn Object, old: &dyn Object) -> Option<FieldError> {
        let (now, was) = (value(new, self.path), value(old, self.path));
        if equality::equal_values(now, was) {
            return None;
        }
        let path = Path::new(self.told);
        // A map that is taken away is none.
        let now = match now {
            Value::Map(map) if map.is_empty() => Value::Absent,
            now => now,
        };
        Some(match self.forbidden {
            Some(words) => FieldError::forbidden(&path, words),
            None => FieldError::invalid(&path, shown(now), IMMUTABLE),
        })
    }
}

/// A fault for each field that changed and may not.
pub(super) fn faults(kept: &[Kept], new: &dyn Object, old: &dyn Object) -> ErrorList {
    kept.iter().filter_map(|field| field.fault(new, old)).collect()
}

fn value<'a>(object: &'a dyn Object, path: &str) -> Value<'a> {
    path.split('.')
        .fold(Value::Message(object.as_reflect()), |at, name| match at {
            Value::Message(message) => match message.desc().field(name) {
                Some((index, _)) => message.get(index),
                None => Value::Absent,
            },
            _ => Value::Absent,
        })
}
