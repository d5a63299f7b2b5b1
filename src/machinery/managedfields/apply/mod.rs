//! Server-side apply: several writers share an object, each owning the fields that it says something about.
//!
//! Everything here works on messages through their field tables; what a writer owns is a
//! [`FieldSet`](crate::fieldset::FieldSet). An apply merges the document into the object, takes out what its writer
//! applied before but no longer does and nobody else owns, and then compares: what differs must not belong to others.

mod compare;
mod created;
mod document;
mod empty_lists;
mod fit;
mod go_value;
#[cfg(test)]
mod lists;
mod merge;
mod noop;
mod normal_form;
mod prune;
mod raw;
mod remove;
mod scalars;
mod set;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use compare::compare_without;
pub use compare::{Changed, Comparison, compare};
pub(crate) use created::created;
pub use document::{Document, DocumentError, read_document};
pub use fit::misfit;
pub use merge::merge;
pub use raw::sort_raw_values;
pub use remove::remove;
pub use set::{fields_of, hollow_in};

use crate::fieldset::FieldSet;
use crate::managedfields::{
    Change, Conflict, Managed, Operation, VersionError, Versions, Writer, track, transfer, untracked,
};
use crate::reflect::Reflect;
use view::same_message;

/// The owner of what an object had before anyone applied to it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// One apply.
#[derive(Clone, Copy)]
pub struct Apply<'a> {
    pub writer: &'a Writer,
    /// The object as it is; one without content if it is to be made.
    pub live: &'a dyn Reflect,
    /// The document as an object.
    pub applied: &'a dyn Reflect,
    pub document: &'a Document,
    /// Takes what others own.
    pub force: bool,
    /// Paths that this endpoint puts back whatever the writer says.
    pub ignored: &'a FieldSet,
    pub versions: &'a dyn Versions,
}

/// Why an apply was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApplyError {
    /// By owner, in the order in which the object lists them.
    Conflicts(Vec<Conflict>),
    /// A version could not be converted.
    Convert(VersionError),
}

impl Apply<'_> {
    /// Applies to `target`, a copy of the live object. Returns whether that differs from it now, or the document writes
    /// a value otherwise than the server does, which counts as a difference. `managed` are the owners of the live
    /// object, and are of no use after an error.
    pub fn run(&self, managed: &mut Managed, target: &mut dyn Reflect) -> Result<bool, ApplyError> {
        if managed.is_empty() {
            self.count_what_was(managed)?;
        }
        let own = self.writer.owner(Operation::Apply);
        let at = managed.owners().iter().position(|o| o.is_same(&own));
        let last = at.map(|at| managed.owners_mut().remove(at));
        let fields = self.document.fields.clone().recursive_difference(self.ignored);
        merge(target, self.applied, &self.document.fields);
        empty_lists::take_over(target, self.applied);
        let gone = match &last {
            Some(last) => prune::prune(self, managed, last, &fields, target).map_err(ApplyError::Convert)?,
            None => FieldSet::EMPTY,
        };
        let mut found = compare(self.live, target);
        if !gone.is_empty() {
            found.removed = remove::taken_out(target.desc(), &found.removed, &gone);
        }
        let restated = self.restated();
        let changed = !found.is_empty() || !restated.is_empty() || !same_message(self.live, target);
        self.settle(managed, found, restated, target)?;
        let fields = fields.difference(untracked());
        if fields.is_empty() {
            return Ok(changed);
        }
        let version = own.api_version.clone();
        let mut owner = last.unwrap_or(own);
        owner.set_fields(fields);
        owner.api_version = version;
        if changed {
            owner.time = self.writer.now;
        }
        managed.owners_mut().push(owner);
        Ok(changed)
    }

    /// Everything belongs to someone: what was there before the first apply to those who updated it.
    fn count_what_was(&self, managed: &mut Managed) -> Result<(), ApplyError> {
        let before = Writer {
            manager: BEFORE_FIRST_APPLY.to_owned(),
            ..self.writer.clone()
        };
        let empty = self.live.handle().new_message();
        let change = Change {
            old: &*empty,
            new: self.live,
            ignored: self.ignored,
            versions: self.versions,
        };
        track(managed, change, &before).map_err(ApplyError::Convert)
    }

    /// What the document says that the object does not show, whatever it is made of.
    fn restated(&self) -> FieldSet {
        let mut restated = self.document.restated.clone();
        if !self.document.hollow.is_empty() {
            restated = restated.union(hollow_in(self.live, &self.document.hollow));
        }
        restated
    }

    /// Others lose what changed, or object.
    fn settle(
        &self,
        managed: &mut Managed,
        mut found: Comparison,
        restated: FieldSet,
        target: &dyn Reflect,
    ) -> Result<(), ApplyError> {
        let restated = restated.difference(&found.added);
        found.modified = found.modified.union(restated);
        let change = Change {
            old: self.live,
            new: target,
            ignored: self.ignored,
            versions: self.versions,
        };
        let own = self.writer.owner(Operation::Apply);
        let found = found.without(self.ignored).into_changed();
        let conflicts = transfer(
            managed,
            change,
            &self.writer.api_version,
            &found,
            Some(&own),
            self.force,
        )
        .map_err(ApplyError::Convert)?;
        if conflicts.is_empty() {
            Ok(())
        } else {
            Err(ApplyError::Conflicts(conflicts))
        }
    }
}
