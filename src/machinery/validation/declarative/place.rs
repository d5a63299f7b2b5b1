//! Places: paths of fields that cost nothing until an error needs them.

use crate::field::Path;

/// Where the check is. Turned into a path only for an error.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Path(&'a Path),
    Field(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
    Key(&'a Place<'a>, &'a str),
}

impl Place<'_> {
    /// The path of the place.
    pub fn path(&self) -> Path {
        match self {
            Place::Path(path) => (*path).clone(),
            Place::Field(parent, name) => parent.path().child((*name).to_owned()),
            Place::Index(parent, index) => parent.path().index(*index),
            Place::Key(parent, key) => parent.path().key(*key),
        }
    }
}
