//! The rules of custom resources, by the version in which one is asked for.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use keelson_api::apiextensions_k8s_io::v1::CustomResourceSubresourceScale;
use keelson_base::cooperative::aside;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::jsonpath::nested;
use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::status::StatusError;
use keelson_machinery::structural::Validator;
use keelson_machinery::validation::labels::qualified_name;
use keelson_registry::outcome::Answer;
use keelson_registry::{Context, Strategy};

use super::Shared;
use crate::schemas::Schema;

/// The largest number of replicas, since a Scale shows them in 32 bits.
const MAX_REPLICAS: i64 = i32::MAX as i64;

/// How long requests wait for a definition to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a schema whose validator takes more than a millisecond to make.
const LONG_SCHEMA: usize = 4 << 10;

/// Finalizers without a domain that Kubernetes itself has.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// The rules of one version.
pub struct CustomResource {
    pub shared: Arc<Shared>,
    pub group: String,
    pub plural: String,
    pub scale: Option<CustomResourceSubresourceScale>,
    /// `None`: the version has none.
    pub schema: Option<Arc<Schema>>,
    /// What its objects are.
    pub gvk: Gvk,
    /// By the schema, once there are objects.
    pub validator: Arc<OnceLock<Validator>>,
}

impl Strategy for CustomResource {
    type Object = dyn Object;

    fn settled(&self) -> Option<LocalBoxFuture<'_, ()>> {
        if !*self.shared.ahead.borrow() {
            return None;
        }
        let mut ahead = self.shared.ahead.subscribe();
        Some(Box::pin(async move {
            // Who writes the definition may be at its end.
            let _ = tokio::time::timeout(PATIENCE, ahead.wait_for(|ahead| !ahead)).await;
        }))
    }

    fn authorize<'a>(
        &'a self,
        _context: &'a Context,
        new: &'a dyn Object,
        old: Option<&'a dyn Object>,
    ) -> Option<Answer<'a, ()>> {
        if old.is_some() || !self.shared.ending.load(Ordering::Acquire) {
            return None;
        }
        let why = "create not allowed while custom resource definition is terminating";
        let refused = StatusError::forbidden(&self.group, &self.plural, &new.meta().name, why);
        Some(Box::pin(std::future::ready(Err(refused))))
    }

    /// A write to the status leaves all metadata as it is.
    fn prepare_for_status_update(&self, _context: &Context, new: &mut dyn Object, old: &dyn Object) {
        let managed = std::mem::take(&mut new.meta_mut().managed_fields);
        let version = std::mem::take(&mut new.meta_mut().resource_version);
        let meta = new.meta_mut();
        meta.clone_from(old.meta());
        meta.managed_fields = managed;
        meta.resource_version = version;
    }

    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let had = old.map_or(&[][..], |old| &old.meta().finalizers);
        let added = new
            .meta()
            .finalizers
            .iter()
            .filter(|finalizer| !had.contains(finalizer));
        let added: BTreeSet<&String> = added.collect();
        added
            .into_iter()
            .flat_map(|finalizer| odd_finalizer(finalizer))
            .collect()
    }

    fn prepared_validation(&self) -> Option<LocalBoxFuture<'_, ()>> {
        let schema = self.schema.as_ref()?;
        if schema.text.len() < LONG_SCHEMA || self.validator.get().is_some() {
            return None;
        }
        let (made, schema, gvk) = (self.validator.clone(), schema.clone(), self.gvk.clone());
        Some(Box::pin(aside(move || {
            made.get_or_init(|| {
                let validator = Validator::new(schema.parsed(), &gvk);
                validator.compile_rules();
                validator
            });
        })))
    }

    fn validate(&self, context: &Context, new: &dyn Object, old: Option<&dyn Object>) -> ErrorList {
        self.faults(context, new, old)
    }

    fn validate_status_update(&self, context: &Context, new: &dyn Object, old: &dyn Object) -> ErrorList {
        let mut errors = ErrorList::new();
        if let Some(validator) = self.validator() {
            validator.status(new.as_reflect(), old.as_reflect(), &mut errors);
        }
        errors.extend(self.scale_status_faults(new));
        self.invariant_faults(context, new, Some(old), &mut errors);
        errors
    }
}

impl CustomResource {
    fn validator(&self) -> Option<&Validator> {
        let schema = self.schema.as_ref()?;
        let make = || Validator::new(schema.parsed(), &self.gvk);
        Some(self.validator.get_or_init(make))
    }

    /// Faults of a whole object, which takes the place of `old`.
    fn faults(&self, context: &Context, new: &dyn Object, old: Option<&dyn Object>) -> ErrorList {
        let mut errors = ErrorList::new();
        if let Some(validator) = self.validator() {
            validator.values(new.as_reflect(), old.map(|old| old.as_reflect()), &mut errors);
        }
        errors.extend(self.scale_faults(new));
        errors.extend(self.scale_status_faults(new));
        if let Some(validator) = self.validator() {
            validator.embedded(new.as_reflect(), &mut errors);
        }
        self.invariant_faults(context, new, old, &mut errors);
        errors
    }

    /// Appends what is said of lists and by rules; these come last, since some errors keep them from being looked at.
    fn invariant_faults(&self, context: &Context, new: &dyn Object, old: Option<&dyn Object>, errors: &mut ErrorList) {
        let Some(validator) = self.validator() else { return };
        let (new, old) = (new.as_reflect(), old.map(|old| old.as_reflect()));
        validator.unique(new, old, errors);
        let mut warnings = Vec::new();
        validator.rules(new, old, errors, &mut warnings);
        for warning in warnings {
            context.warn(warning);
        }
    }

    fn scale_faults(&self, object: &dyn Object) -> ErrorList {
        match &self.scale {
            Some(scale) => replicas_fault(object, &scale.spec_replicas_path).into_iter().collect(),
            None => ErrorList::default(),
        }
    }

    fn scale_status_faults(&self, object: &dyn Object) -> ErrorList {
        let Some(scale) = &self.scale else {
            return ErrorList::default();
        };
        let replicas = replicas_fault(object, &scale.status_replicas_path);
        let selector = scale.label_selector_path.as_ref().and_then(|path| {
            let fault = nested::text(object.as_reflect(), path).err()?;
            Some(FieldError::invalid(&Path::new(path.clone()), "", fault.to_string()))
        });
        replicas.into_iter().chain(selector).collect()
    }
}

fn replicas_fault(object: &dyn Object, path: &str) -> Option<FieldError> {
    let fault = |number: i64, text: String| Some(FieldError::invalid(&Path::new(path.to_owned()), number, text));
    match nested::int64(object.as_reflect(), path) {
        Err(why) => fault(0, why.to_string()),
        Ok(Some(number @ ..0)) => fault(number, "should be a non-negative integer".to_owned()),
        Ok(Some(number)) if number > MAX_REPLICAS => {
            fault(number, format!("should be less than or equal to {MAX_REPLICAS}"))
        }
        Ok(_) => None,
    }
}

/// What is odd about the name of a new finalizer.
fn odd_finalizer(name: &str) -> Vec<String> {
    let told = |text: &str| format!("metadata.finalizers: {name:?}: {text}");
    let mut odd: Vec<String> = qualified_name(name).iter().map(|text| told(text)).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let with_path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        odd.push(told(&format!(
            "prefer a domain-qualified finalizer name{with_path} to avoid accidental conflicts with other finalizer \
             writers"
        )));
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::odd_finalizer;

    #[test]
    fn finalizers_without_a_domain_are_odd() {
        let text = |words: &str| {
            format!(
                "prefer a domain-qualified finalizer name{words} to avoid accidental conflicts with other finalizer writers"
            )
        };
        for (name, told) in [
            ("example.com/a", vec![]),
            ("orphan", vec![]),
            ("a", vec![format!("metadata.finalizers: \"a\": {}", text(""))]),
            (
                "a.example.com",
                vec![format!(
                    "metadata.finalizers: \"a.example.com\": {}",
                    text(" including a path (/)")
                )],
            ),
        ] {
            assert_eq!(odd_finalizer(name), told);
        }
        assert_eq!(odd_finalizer("A B").len(), 2);
    }
}
