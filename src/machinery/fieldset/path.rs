//! Paths as messages show them.

use std::fmt;

use super::PathElement;

/// A path that displays as `.spec.containers[name="c"].image`.
pub struct FieldPath<'a>(pub &'a [&'a PathElement]);

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}
