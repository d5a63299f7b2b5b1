//! Places in a schema, turned into a path only for an error.

use crate::field::Path;

/// Where a schema stands below the one that is checked.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root(&'a Path),
    /// The schema of a keyword: `items`.
    Keyword(&'a Place<'a>, &'static str),
    /// One of a keyword's schemas by name: `properties[name]`.
    Named(&'a Place<'a>, &'static str, &'a str),
    /// One of a keyword's schemas by number: `allOf[0]`.
    Numbered(&'a Place<'a>, &'static str, usize),
}

impl<'a> Place<'a> {
    pub fn path(&self) -> Path {
        match self {
            Place::Root(path) => (*path).clone(),
            Place::Keyword(parent, keyword) => parent.path().child(*keyword),
            Place::Named(parent, keyword, name) => parent.path().child(*keyword).key(*name),
            Place::Numbered(parent, keyword, index) => parent.path().child(*keyword).index(*index),
        }
    }

    /// The path of a keyword here.
    pub fn at(&self, keyword: &'static str) -> Path {
        self.path().child(keyword)
    }

    /// The place of a property's schema.
    pub fn property(&'a self, name: &'a str) -> Place<'a> {
        Place::Named(self, "properties", name)
    }
}
