//! Sets of fields: which parts of an object someone owns, as `managedFields` records them.
//!
//! A set is a tree of path elements. A path that leads to an entry marked as a member is in the set; an entry may be a
//! member and have members below it. Entries are kept sorted, so that all operations on two sets are one walk over
//! both.

mod codec;
mod element;
mod growing;
mod lazy;
mod path;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use codec::FieldsError;
pub(crate) use codec::{write_element, write_name};
pub use element::{KeyField, Name, PathElement, Scalar};
pub(crate) use growing::Growing;
pub(crate) use lazy::{Overlap, is_usual};
pub use path::FieldPath;

/// A set of paths. The empty set takes no memory.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FieldSet {
    /// Ascending by element, each element once; none is without both membership and children.
    entries: Vec<Entry>,
}

/// One element of a level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub element: PathElement,
    /// The path that ends here is in the set.
    pub member: bool,
    /// The paths that go on from here.
    pub children: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

/// Which entries of two sets a walk meets at one element.
enum Pair<'a> {
    /// Only one set has it.
    One,
    Both(&'a Entry, &'a Entry),
}

/// Walks two sorted levels as one.
struct Pairs<'a> {
    left: &'a [Entry],
    right: &'a [Entry],
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        let order = match (self.left.first(), self.right.first()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.element.cmp(&b.element),
        };
        let take = |side: &mut &'a [Entry], wanted: bool| match (wanted, side.split_first()) {
            (true, Some((first, rest))) => {
                *side = rest;
                Some(first)
            }
            _ => None,
        };
        let left = take(&mut self.left, order != Ordering::Greater);
        let right = take(&mut self.right, order != Ordering::Less);
        match (left, right) {
            (Some(a), Some(b)) => Some(Pair::Both(a, b)),
            (None, None) => None,
            _ => Some(Pair::One),
        }
    }
}

/// The entry of an element in a sorted level that is walked from element to element; `rest` is left behind it.
fn advance<'a>(rest: &mut &'a [Entry], element: &PathElement) -> Option<&'a Entry> {
    while let Some((first, behind)) = rest.split_first() {
        match first.element.cmp(element) {
            Ordering::Less => *rest = behind,
            Ordering::Equal => {
                *rest = behind;
                return Some(first);
            }
            Ordering::Greater => break,
        }
    }
    None
}

impl FieldSet {
    /// The set of nothing.
    pub const EMPTY: FieldSet = FieldSet { entries: Vec::new() };

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries of the first level, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The set of one path. The empty path is in no set.
    pub fn of(path: &[PathElement]) -> FieldSet {
        let mut set = FieldSet::EMPTY;
        set.insert(path);
        set
    }

    /// The set of the paths of named fields, `["metadata", "labels"]`.
    pub fn of_names(names: &[&'static str]) -> FieldSet {
        let path: Vec<PathElement> = names.iter().map(|n| PathElement::field(n)).collect();
        FieldSet::of(&path)
    }

    /// The set of the top-level fields of these names.
    pub fn of_fields(names: &[&'static str]) -> FieldSet {
        let mut set = FieldSet::EMPTY;
        for name in names {
            set.insert(&[PathElement::field(name)]);
        }
        set
    }

    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let entry = self.entry(first);
        if rest.is_empty() {
            entry.member = true;
        } else {
            entry.children.insert(rest);
        }
    }

    /// The entry of an element, made if it was absent. Callers see to it that it does not stay empty.
    fn entry(&mut self, element: &PathElement) -> &mut Entry {
        let at = match self.entries.last() {
            // Most sets are built in order.
            Some(last) if last.element < *element => self.entries.len(),
            None => 0,
            Some(_) => match self.entries.binary_search_by(|e| e.element.cmp(element)) {
                Ok(at) => return &mut self.entries[at],
                Err(at) => at,
            },
        };
        let new = Entry {
            element: element.clone(),
            member: false,
            children: FieldSet::EMPTY,
        };
        self.entries.insert(at, new);
        &mut self.entries[at]
    }

    /// Adds an element with what is below it; what was there before stays. An element that is neither a member nor has
    /// children adds nothing.
    pub fn add(&mut self, element: PathElement, member: bool, children: FieldSet) {
        if !member && children.is_empty() {
            return;
        }
        let new = Entry {
            element,
            member,
            children,
        };
        match self.entries.last() {
            Some(last) if last.element >= new.element => {}
            _ => return self.entries.push(new),
        }
        match self.entries.binary_search_by(|e| e.element.cmp(&new.element)) {
            Err(at) => self.entries.insert(at, new),
            Ok(at) => {
                let old = &mut self.entries[at];
                old.member |= new.member;
                old.children = std::mem::take(&mut old.children).union(new.children);
            }
        }
    }

    /// Adds an element that is a member, with what is below it. The error is an element that was there before.
    pub(crate) fn add_new(&mut self, element: PathElement, children: FieldSet) -> Result<(), PathElement> {
        let at = match self.entries.last() {
            Some(last) if last.element >= element => match self.entries.binary_search_by(|e| e.element.cmp(&element)) {
                Ok(_) => return Err(element),
                Err(at) => at,
            },
            _ => self.entries.len(),
        };
        let new = Entry {
            element,
            member: true,
            children,
        };
        self.entries.insert(at, new);
        Ok(())
    }

    /// A set from entries in any order, each element at most once.
    pub(crate) fn from_unsorted(mut entries: Vec<Entry>) -> FieldSet {
        entries.retain(|e| !e.is_empty());
        if !entries.is_sorted_by(|a, b| a.element < b.element) {
            entries.sort_by(|a, b| a.element.cmp(&b.element));
        }
        FieldSet { entries }
    }

    /// The entry of an element.
    pub fn get(&self, element: &PathElement) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|e| e.element.cmp(element)).ok()?;
        self.entries.get(at)
    }

    /// What is below a path; nothing where there is no such path.
    pub(crate) fn below(&self, path: &[&PathElement]) -> &FieldSet {
        static NOTHING: FieldSet = FieldSet::EMPTY;
        let mut steps = path.iter();
        let found = steps.try_fold(self, |set, element| Some(&set.get(element)?.children));
        found.unwrap_or(&NOTHING)
    }

    /// The entry of a named field.
    pub fn field(&self, name: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|e| e.element.cmp_field(name)).ok()?;
        self.entries.get(at)
    }

    /// Whether the path is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|e| e.member),
            [first, rest @ ..] => self.get(first).is_some_and(|e| e.children.has(rest)),
        }
    }

    /// Paths that are in either set.
    pub fn union(self, other: FieldSet) -> FieldSet {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        let mut out = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut left, mut right) = (
            self.entries.into_iter().peekable(),
            other.entries.into_iter().peekable(),
        );
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return FieldSet { entries: out },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            if order == Ordering::Equal
                && let (Some(a), Some(b)) = (left.next(), right.next())
            {
                out.push(Entry {
                    element: a.element,
                    member: a.member || b.member,
                    children: a.children.union(b.children),
                });
            } else if order == Ordering::Less {
                out.extend(left.next());
            } else {
                out.extend(right.next());
            }
        }
    }

    /// Paths of this set that are not in the other. Paths below those of the other stay.
    pub fn difference(self, other: &FieldSet) -> FieldSet {
        self.minus(other, &|a, b| {
            a.member &= !b.member;
            a.children = std::mem::take(&mut a.children).difference(&b.children);
        })
    }

    /// Paths of this set that are neither in the other nor below a path of the other.
    pub fn recursive_difference(self, other: &FieldSet) -> FieldSet {
        self.minus(other, &|a, b| {
            a.member &= !b.member;
            let children = std::mem::take(&mut a.children);
            if !b.member {
                a.children = children.recursive_difference(&b.children);
            }
        })
    }

    /// Lets `cut` take from each entry what an entry of the same element in the other asks for.
    fn minus(mut self, other: &FieldSet, cut: &dyn Fn(&mut Entry, &Entry)) -> FieldSet {
        let mut rest = other.entries.as_slice();
        self.entries.retain_mut(|entry| {
            if let Some(found) = advance(&mut rest, &entry.element) {
                cut(entry, found);
            }
            !entry.is_empty()
        });
        self
    }

    /// Paths that are in both sets.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let pairs = Pairs {
            left: &self.entries,
            right: &other.entries,
        };
        let common = pairs.filter_map(|pair| match pair {
            Pair::One => None,
            Pair::Both(a, b) => Some(Entry {
                element: a.element.clone(),
                member: a.member && b.member,
                children: a.children.intersection(&b.children),
            }),
        });
        FieldSet {
            entries: common.filter(|e| !e.is_empty()).collect(),
        }
    }

    /// Whether no path is in both sets.
    pub fn is_disjoint(&self, other: &FieldSet) -> bool {
        Pairs {
            left: &self.entries,
            right: &other.entries,
        }
        .all(|pair| match pair {
            Pair::Both(a, b) => !(a.member && b.member) && a.children.is_disjoint(&b.children),
            _ => true,
        })
    }

    /// Whether every path of this set is in the other.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        self.uncovered(other).is_empty()
    }

    /// The part of this set that is in it but not, with all that is below, in the other: entries that are members in
    /// both, or in neither, keep of what is below them such parts alone.
    pub(crate) fn uncovered(&self, other: &FieldSet) -> FieldSet {
        let mut rest = other.entries.as_slice();
        let mut out = Vec::new();
        for entry in &self.entries {
            match advance(&mut rest, &entry.element).filter(|there| there.member || !entry.member) {
                None => out.push(entry.clone()),
                Some(there) => {
                    let children = entry.children.uncovered(&there.children);
                    if !children.is_empty() {
                        out.push(Entry {
                            element: entry.element.clone(),
                            member: entry.member,
                            children,
                        });
                    }
                }
            }
        }
        FieldSet { entries: out }
    }

    /// Paths without other paths of the set below them.
    pub fn leaves(&self) -> FieldSet {
        let entries = self.entries.iter().map(|e| Entry {
            element: e.element.clone(),
            member: e.member && e.children.is_empty(),
            children: e.children.leaves(),
        });
        FieldSet {
            entries: entries.filter(|e| !e.is_empty()).collect(),
        }
    }

    /// Calls `f` with every path of the set: members before what is below them, elements in order within a level; those
    /// that have only children come after all members of the level, as conflicts are listed.
    pub fn for_each<'a>(&'a self, f: &mut dyn FnMut(&[&'a PathElement])) {
        let mut path = Vec::new();
        self.for_each_below(&mut path, f);
    }

    fn for_each_below<'a>(&'a self, path: &mut Vec<&'a PathElement>, f: &mut dyn FnMut(&[&'a PathElement])) {
        for entry in self.entries.iter().filter(|e| e.member) {
            path.push(&entry.element);
            f(path);
            path.pop();
        }
        for entry in self.entries.iter().filter(|e| !e.children.is_empty()) {
            path.push(&entry.element);
            entry.children.for_each_below(path, f);
            path.pop();
        }
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.entries
            .iter()
            .map(|e| usize::from(e.member) + e.children.len())
            .sum()
    }
}
