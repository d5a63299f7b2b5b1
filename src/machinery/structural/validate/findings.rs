//! Findings of validation by a schema, in the words of the validator that kube-apiserver uses.

use crate::field::{BadValue, ErrorList, FieldError, Path};

/// What is wrong with a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It is not there.
    Required,
    /// It is none of these.
    Enum(Vec<String>),
    /// More characters than that.
    TooLong(i64),
    /// So many items or properties, and how many there may be.
    TooMany(usize, i64),
    /// It is of a wrong type or format.
    Type(String),
    Invalid(String),
    /// Told of no field.
    Whole(String),
}

/// A fault and where it is.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    pub fault: Fault,
    /// From the value that was validated.
    pub name: String,
    pub value: BadValue,
}

impl Found {
    pub fn whole(text: String) -> Found {
        Found {
            fault: Fault::Whole(text),
            name: String::new(),
            value: "".into(),
        }
    }

    /// Whether the validator would say the same of both.
    fn says_the_same(&self, other: &Found) -> bool {
        self.fault == other.fault && self.name == other.name
    }

    fn into_error(self, root: &Path) -> FieldError {
        let name = self.name.strip_prefix('.').unwrap_or(&self.name);
        let path = match name {
            "" => root.clone(),
            name => root.child(name.to_owned()),
        };
        let size = |n: i64| usize::try_from(n).unwrap_or_default();
        match self.fault {
            Fault::Required => FieldError::required(&path, ""),
            Fault::Enum(values) => FieldError::not_supported(&path, self.value, &values),
            Fault::TooLong(max) => FieldError::too_long(&path, size(max)),
            Fault::TooMany(count, max) => FieldError::too_many(&path, count, size(max)),
            Fault::Type(text) => FieldError::type_invalid(&path, self.value, text),
            Fault::Invalid(text) => FieldError::invalid(&path, self.value, text),
            Fault::Whole(text) => FieldError::invalid(root, self.value, text),
        }
    }
}

/// Appends what was found, each text once.
pub(super) fn report(found: Vec<Found>, root: &Path, errors: &mut ErrorList) {
    let mut told: Vec<Found> = Vec::new();
    for one in found {
        if told.iter().any(|other| other.says_the_same(&one)) {
            continue;
        }
        told.push(one.clone());
        errors.push(one.into_error(root));
        if errors.is_full() {
            return;
        }
    }
}
