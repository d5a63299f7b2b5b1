//! The budget of a decoder: what a document may become in memory. `{},` is three bytes of a list and a container of a
//! thousand, so the length of a body bounds neither the memory that it takes nor the work that is done on it.

use std::cell::Cell;

use crate::reflect::{FieldDesc, Type};

/// Bytes that the body of a request may become, by the estimate of a [`Budget`]. What a store takes (1.5 MiB) comes
/// nowhere near it: a list of names that are read, defaulted and validated reaches it with 98 304 of them. While
/// a list grows, it and its larger copy are there at once: a request makes twice as much at most.
pub const OF_REQUEST: usize = 24 << 20;

/// The least that an item of a list costs: its place and what is done with it, from defaults to validation.
pub(crate) const ITEM: usize = 256;
/// The same of an entry of a map: each is looked up, sorted and has an owner of its own. 65 536 of them are, with their
/// owners, more than the 1.5 MiB that an etcd takes.
pub(crate) const ENTRY: usize = 384;
/// The same of an item of an applied list whose items are known by keys: beside its owner each key has one. 32 768 of
/// them are, with their owners, more than the 1.5 MiB that an etcd takes.
pub(crate) const OWNED_ITEM: usize = 768;
/// The same of a default that is filled in.
pub(crate) const DEFAULT: usize = 64;

/// Bytes that are left. Empty once more was asked for than there was.
pub struct Budget(Cell<usize>);

impl Budget {
    /// That of a request's body.
    pub fn of_request() -> Budget {
        Budget(Cell::new(OF_REQUEST))
    }

    /// For what is known to be bounded: what a store holds, defaults.
    pub fn unlimited() -> Budget {
        Budget(Cell::new(usize::MAX))
    }

    /// Whether more was taken than there was.
    pub fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }

    /// How many bytes there are.
    pub(crate) fn left(&self) -> usize {
        self.0.get()
    }

    /// Makes it so many bytes again: what they were taken for is given up.
    pub(crate) fn put_back(&self, left: usize) {
        self.0.set(left);
    }

    /// Takes so many bytes; `false`: there are not so many.
    #[inline]
    #[must_use]
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().saturating_sub(bytes);
        self.0.set(left);
        left > 0
    }
}

/// What an item of a list costs beside its texts.
pub(crate) fn item(element: &FieldDesc) -> usize {
    size(element).max(ITEM)
}

/// What an entry of a map costs beside its texts.
pub(crate) fn entry(element: &FieldDesc) -> usize {
    size(element) + ENTRY
}

/// Bytes of an empty value, where that may be much.
fn size(element: &FieldDesc) -> usize {
    match &element.ty {
        Type::Message(desc) => desc.size,
        _ => 0,
    }
}
