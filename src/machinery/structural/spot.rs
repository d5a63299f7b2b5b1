//! Spots: where a validation is, turned into a text only for an error.

use crate::field::Path;

/// A place below the value that is validated.
#[derive(Clone, Copy)]
pub(super) enum Spot<'a> {
    /// The value itself.
    Here,
    Property(&'a Spot<'a>, &'a str),
    /// A key of a map.
    Key(&'a Spot<'a>, &'a str),
    Index(&'a Spot<'a>, usize),
}

impl Spot<'_> {
    /// As validators of schemas name it: `spec.list[0].key`; "" for the value itself.
    pub fn name(&self) -> String {
        match self {
            Spot::Here => String::new(),
            Spot::Property(Spot::Here, name) => (*name).to_owned(),
            Spot::Property(parent, name) | Spot::Key(parent, name) => format!("{}.{name}", parent.name()),
            Spot::Index(parent, index) => format!("{}[{index}]", parent.name()),
        }
    }

    /// As a path from the value's own on: `spec.list[0][key]`.
    pub fn path(&self, root: &Path) -> Path {
        match self {
            Spot::Here => root.clone(),
            Spot::Property(parent, name) => parent.path(root).child((*name).to_owned()),
            Spot::Key(parent, key) => parent.path(root).key(*key),
            Spot::Index(parent, index) => parent.path(root).index(*index),
        }
    }
}
