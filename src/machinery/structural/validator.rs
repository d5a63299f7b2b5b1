//! Validators: what a schema says of whole objects, and of their status alone.

use std::sync::Arc;

use super::correlate;
use super::rules::{Evaluation, check_rules, compile_all};
use super::schema::{JsonSchema, Keywords};
use super::validate::{check_embedded, check_unique, check_values};
use super::view::{TypeMeta, View};
use crate::field::{BadValue, ErrorList, ErrorType, FieldError, Path};
use crate::reflect::Reflect;
use crate::reflect::object::Gvk;

/// What is said where rules can't be looked at.
const BLOCKED: &str = "some validation rules were not checked because the object was invalid; \
    correct the existing errors to complete validation";

/// Cost that all rules of one object may take together.
const BUDGET: u64 = 10_000_000;

/// Whether an error keeps rules from being evaluated.
fn blocks(error: &FieldError) -> bool {
    use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// The validator of a kind's objects.
#[derive(Debug)]
pub struct Validator {
    schema: Arc<JsonSchema>,
    ty: TypeMeta,
}

impl Validator {
    pub fn new(schema: Arc<JsonSchema>, gvk: &Gvk) -> Validator {
        Validator {
            schema,
            ty: TypeMeta::of(gvk),
        }
    }

    /// Compiles all rules now that would else be compiled by the first object that has their values.
    pub fn compile_rules(&self) {
        compile_all(&self.schema, true);
    }

    /// The schema that it validates by.
    pub fn schema(&self) -> &JsonSchema {
        &self.schema
    }

    /// Appends what the schema says of the values of an object: types, bounds, what has to be there. `old` is the
    /// object that it takes the place of: values that did not change are not objected to.
    pub fn values(&self, new: &dyn Reflect, old: Option<&dyn Reflect>, errors: &mut ErrorList) {
        let (new, old) = (self.view(new), old.map(|old| self.view(old)));
        check_values(&self.schema, &new, old.as_ref(), &Path::root(), errors);
    }

    /// As [`Validator::values`], of the status alone, if there is one.
    pub fn status(&self, new: &dyn Reflect, old: &dyn Reflect, errors: &mut ErrorList) {
        let (new, old) = (self.view(new), self.view(old));
        let status = new.as_object().and_then(|object| object.get("status"));
        if let (Some(schema), Some(status)) = (self.schema.property("status"), status) {
            let old = correlate::member(&self.schema, Some(&old), "status");
            check_values(schema, &status, old.as_ref(), &Path::new("status"), errors);
        }
    }

    /// Appends what is wrong with the types and metadata of embedded resources.
    pub fn embedded(&self, new: &dyn Reflect, errors: &mut ErrorList) {
        check_embedded((&self.schema, false), &self.view(new), &Path::root(), errors);
    }

    /// Appends what stands twice in lists of type set and map, unless there was something of that kind in `old` too.
    pub fn unique(&self, new: &dyn Reflect, old: Option<&dyn Reflect>, errors: &mut ErrorList) {
        let found = self.repeated(new);
        if !found.is_empty() && old.is_none_or(|old| self.repeated(old).is_empty()) {
            errors.extend(found);
        }
    }

    /// Appends what rules say of an object: errors, and warnings of what broke a rule before and has not changed.
    /// Nothing is evaluated if `errors` has some that expressions could stumble over.
    pub fn rules(
        &self,
        new: &dyn Reflect,
        old: Option<&dyn Reflect>,
        errors: &mut ErrorList,
        warnings: &mut Vec<String>,
    ) {
        if !self.schema.has(Keywords::RULES_BELOW) {
            return;
        }
        if errors.iter().any(blocks) {
            errors.push(FieldError::invalid(&Path::root(), BadValue::null(), BLOCKED));
            return;
        }
        let (new, old) = (self.view(new), old.map(|old| self.view(old)));
        let evaluation = Evaluation {
            root: &Path::root(),
            is_resource: true,
            budget: BUDGET,
            ratchets: true,
        };
        let outcome = check_rules(&self.schema, &new, old.as_ref(), &evaluation);
        errors.extend(outcome.errors);
        warnings.extend(outcome.warnings);
    }

    fn repeated(&self, object: &dyn Reflect) -> ErrorList {
        let mut errors = ErrorList::new();
        check_unique(&self.schema, &self.view(object), &Path::root(), &mut errors);
        errors
    }

    fn view<'a>(&'a self, object: &'a dyn Reflect) -> View<'a> {
        View::root(object, &self.ty)
    }
}
