//! The adapter between the registry, which knows objects by their tables, and code that is written for one type.
//!
//! That a resource has objects of the type is checked when its code is registered. Should another object come along all
//! the same, it is refused: rules that can't be asked are not rules that were kept.

use std::any::type_name;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::table::{Cell, CellFunction, ConditionFunction, RowCondition};

use super::outcome::Answer;
use super::reservation::Reservation;
use super::strategy::{Confirming, Context, LongValidation, Reserving, Strategy};
use super::write::Part;

/// Defaults in code of one version, for the registry.
pub(super) type CodeDefaults = Arc<dyn Fn(&mut dyn Object) + Send + Sync>;

/// Whether an object is of one type.
pub(super) type IsOfType = fn(&dyn Object) -> bool;

/// [`IsOfType`] of a type.
pub(super) fn is_of<T: Object>(object: &dyn Object) -> bool {
    object.as_any().is::<T>()
}

/// Defaults of objects of one type, as the registry calls them.
pub(super) fn defaults<T: Object>(fill: fn(&mut T)) -> CodeDefaults {
    Arc::new(move |object| {
        if let Some(typed) = changeable::<T>(object) {
            fill(typed);
        }
    })
}

/// A cell of objects of one type, as Tables call it; of others it is empty.
pub(super) fn cell<T: Object>(cell: fn(&T) -> Cell) -> CellFunction {
    Arc::new(move |object| shared(object).map_or(Cell::Null, cell))
}

/// The same of the condition of a row.
pub(super) fn row_condition<T: Object>(condition: fn(&T) -> Option<RowCondition>) -> ConditionFunction {
    Arc::new(move |object| shared(object).and_then(condition))
}

/// A strategy of one type, as the registry calls it.
pub(super) struct Typed<S>(pub S);

fn shared<T: Object>(object: &dyn Object) -> Option<&T> {
    let typed = object.downcast_ref();
    if typed.is_none() {
        tracing::error!("{}", mismatch::<T>(object));
    }
    typed
}

fn changeable<T: Object>(object: &mut dyn Object) -> Option<&mut T> {
    if !is_of::<T>(object) {
        tracing::error!("{}", mismatch::<T>(object));
    }
    object.downcast_mut()
}

/// The new and the old object of a change; an old one that is of another type counts as a mismatch too.
fn pair<'a, T: Object>(new: &'a mut dyn Object, old: &'a dyn Object) -> Option<(&'a mut T, &'a T)> {
    Some((changeable(new)?, shared(old)?))
}

fn mismatch<T>(object: &dyn Object) -> String {
    format!(
        "the rules for {} can't be asked about a {}",
        type_name::<T>(),
        object.gvk()
    )
}

fn fault<T>(object: &dyn Object) -> ErrorList {
    FieldError::internal(&Path::root(), mismatch::<T>(object)).into()
}

fn refusal<'a, T, R: 'a>(object: &dyn Object) -> Answer<'a, R> {
    let error = StatusError::internal_error(mismatch::<T>(object));
    Box::pin(std::future::ready(Err(error)))
}

impl<S: Strategy<Object: Sized>> Typed<S> {
    /// What rules say of a change.
    fn of_change(
        &self,
        new: &dyn Object,
        old: &dyn Object,
        rules: impl FnOnce(&S, &S::Object, &S::Object) -> ErrorList,
    ) -> ErrorList {
        match (shared(new), shared(old)) {
            (Some(new), Some(old)) => rules(&self.0, new, old),
            _ => fault::<S::Object>(new),
        }
    }
}

impl<S: Strategy<Object: Sized>> Strategy for Typed<S> {
    type Object = dyn Object;

    fn authorize<'a>(
        &'a self,
        context: &'a Context,
        new: &'a dyn Object,
        old: Option<&'a dyn Object>,
    ) -> Option<Answer<'a, ()>> {
        match (shared(new), old.map(shared)) {
            (Some(new), None) => self.0.authorize(context, new, None),
            (Some(new), Some(Some(old))) => self.0.authorize(context, new, Some(old)),
            _ => Some(refusal::<S::Object, _>(new)),
        }
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let (Some(new), old) = (shared(write.new), write.old.map(shared)) else {
            return Some(refusal::<S::Object, _>(write.new));
        };
        if matches!(old, Some(None)) {
            return Some(refusal::<S::Object, _>(write.new));
        }
        let (part, old) = (write.part, old.flatten());
        self.0.confirm(context, Confirming { part, new, old }, faulty)
    }

    fn reserve<'a>(&'a self, context: &'a Context, write: Reserving<'a>) -> Option<Answer<'a, Box<dyn Reservation>>> {
        let Reserving { part, new, old } = write;
        if !is_of::<S::Object>(new) || old.is_some_and(|old| !is_of::<S::Object>(old)) {
            return Some(refusal::<S::Object, _>(new));
        }
        let (new, old) = (changeable(new)?, old.and_then(shared));
        self.0.reserve(context, Reserving { part, new, old })
    }

    fn frees(&self, context: &Context, object: &dyn Object) -> Option<Box<dyn Reservation>> {
        self.0.frees(context, shared(object)?)
    }

    fn decorate(&self, object: &mut dyn Object) {
        if let Some(object) = changeable(object) {
            self.0.decorate(object);
        }
    }

    fn prepare_for_create(&self, context: &Context, object: &mut dyn Object) {
        if let Some(object) = changeable(object) {
            self.0.prepare_for_create(context, object);
        }
    }

    fn as_written(&self, object: &dyn Object) -> Option<Box<dyn Object>> {
        self.0.as_written(shared(object)?)
    }

    fn keeps_new_status(&self) -> bool {
        self.0.keeps_new_status()
    }

    fn prepare_for_update(&self, context: &Context, new: &mut dyn Object, old: &dyn Object) {
        if let Some((new, old)) = pair(new, old) {
            self.0.prepare_for_update(context, new, old);
        }
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut dyn Object, old: &dyn Object) {
        if let Some((new, old)) = pair(new, old) {
            self.0.prepare_for_status_update(context, new, old);
        }
    }

    fn prepare_for_subresource(&self, context: &Context, name: &str, new: &mut dyn Object, old: &dyn Object) {
        if let Some((new, old)) = pair(new, old) {
            self.0.prepare_for_subresource(context, name, new, old);
        }
    }

    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let new = shared(new);
        new.map(|new| self.0.warnings(new, old.and_then(shared)))
            .unwrap_or_default()
    }

    fn validate(&self, context: &Context, new: &dyn Object, old: Option<&dyn Object>) -> ErrorList {
        match (shared(new), old.map(shared)) {
            (Some(new), None) => self.0.validate(context, new, None),
            (Some(new), Some(Some(old))) => self.0.validate(context, new, Some(old)),
            _ => fault::<S::Object>(new),
        }
    }

    fn prepared_validation(&self) -> Option<LocalBoxFuture<'_, ()>> {
        self.0.prepared_validation()
    }

    fn long_validation(&self, new: &dyn Object, old: Option<&dyn Object>) -> Option<LongValidation> {
        match old {
            Some(old) => self.0.long_validation(shared(new)?, Some(shared(old)?)),
            None => self.0.long_validation(shared(new)?, None),
        }
    }

    fn validate_change(&self, context: &Context, new: &dyn Object, old: &dyn Object) -> ErrorList {
        self.of_change(new, old, |rules, new, old| rules.validate_change(context, new, old))
    }

    fn validate_subresource(&self, context: &Context, name: &str, new: &dyn Object, old: &dyn Object) -> ErrorList {
        self.of_change(new, old, |rules, new, old| {
            rules.validate_subresource(context, name, new, old)
        })
    }

    fn validate_status_update(&self, context: &Context, new: &dyn Object, old: &dyn Object) -> ErrorList {
        self.of_change(new, old, |rules, new, old| {
            rules.validate_status_update(context, new, old)
        })
    }

    fn versioned_annotations(&self) -> &'static [&'static str] {
        self.0.versioned_annotations()
    }

    fn defaults_metadata(&self) -> bool {
        self.0.defaults_metadata()
    }

    fn settled(&self) -> Option<LocalBoxFuture<'_, ()>> {
        self.0.settled()
    }

    fn order_of_fields(&self) -> &'static [&'static str] {
        self.0.order_of_fields()
    }

    fn fill_bookmark(&self, object: &mut dyn Object) {
        if let Some(object) = changeable(object) {
            self.0.fill_bookmark(object);
        }
    }

    fn grace_seconds(&self, object: &dyn Object, options: &DeleteOptions) -> Option<i64> {
        self.0.grace_seconds(shared(object)?, options)
    }

    fn begin_deletion(&self, context: &Context, object: &mut dyn Object) -> bool {
        changeable(object).is_some_and(|object| self.0.begin_deletion(context, object))
    }

    fn prepare_for_deletion(&self, object: &mut dyn Object) {
        if let Some(object) = changeable(object) {
            self.0.prepare_for_deletion(object);
        }
    }

    fn is_deletion_settled(&self, object: &dyn Object) -> bool {
        shared(object).is_some_and(|object| self.0.is_deletion_settled(object))
    }

    fn has_dependents(&self) -> bool {
        self.0.has_dependents()
    }

    fn refuses_deletion(&self, name: &str) -> Option<&'static str> {
        self.0.refuses_deletion(name)
    }

    fn deletion_warning(&self, options: &DeleteOptions) -> Option<&'static str> {
        self.0.deletion_warning(options)
    }

    fn failed_precondition(&self, what: &str, wanted: &str, found: &str) -> Option<String> {
        self.0.failed_precondition(what, wanted, found)
    }

    fn may_vanish(&self, object: &dyn Object) -> bool {
        shared(object).is_some_and(|object| self.0.may_vanish(object))
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        self.0.reset_fields(part)
    }

    fn is_indexed(&self) -> bool {
        self.0.is_indexed()
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.0.time_to_live()
    }

    fn orphans_by_default(&self) -> bool {
        self.0.orphans_by_default()
    }
}
