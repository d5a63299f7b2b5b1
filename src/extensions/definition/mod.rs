//! CustomResourceDefinition: defaults, what clients may not set, the mark of a deletion that deletes objects first.

mod approval;
mod validation;

use keelson_api::apiextensions_k8s_io::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition, JSONSchemaProps,
};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_machinery::union::{OrArray, OrBool};
use keelson_registry::{ChangeOrder, Context, KindCode, LongValidation, MetadataChecks, RepeatedChecks, Strategy};

use approval::Approval;

use crate::conditions::{self, API_APPROVAL, CLEANUP_FINALIZER, TERMINATING, condition};

/// Registers the code of definitions.
pub fn register(code: &mut KindCode) {
    code.kind::<CustomResourceDefinition>()
        .strategy(CustomResourceDefinitionStrategy)
        .defaults(defaults)
        .metadata_checks(MetadataChecks {
            create: true,
            order: ChangeOrder::ChangeFirst,
            standard_finalizers: false,
            update: RepeatedChecks::CHANGE,
            status: RepeatedChecks::CHANGE,
            subresource: RepeatedChecks::CHANGE,
        });
}

/// The definition that an object of the resource is.
///
/// # Errors
/// It is something else.
pub fn into_definition(object: Box<dyn Object>) -> Result<CustomResourceDefinition, StatusError> {
    let object = object as Box<dyn Reflect>;
    match object.into_any().downcast() {
        Ok(definition) => Ok(*definition),
        Err(_) => Err(StatusError::internal_error("a definition is of another type")),
    }
}

/// The rules of definitions.
struct CustomResourceDefinitionStrategy;

impl Strategy for CustomResourceDefinitionStrategy {
    type Object = CustomResourceDefinition;

    fn prepare_for_create(&self, _context: &Context, object: &mut CustomResourceDefinition) {
        add_stored_version(object);
    }

    fn prepare_for_update(
        &self,
        _context: &Context,
        new: &mut CustomResourceDefinition,
        _old: &CustomResourceDefinition,
    ) {
        add_stored_version(new);
    }

    fn warnings(&self, new: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>) -> Vec<String> {
        let formats = validation::new_formats(new, old);
        let told = formats.iter().map(|format| format!("unrecognized format {format:?}"));
        told.collect()
    }

    fn validate(
        &self,
        _context: &Context,
        new: &CustomResourceDefinition,
        old: Option<&CustomResourceDefinition>,
    ) -> ErrorList {
        match old {
            None => validation::create(new),
            Some(old) => validation::update(new, old),
        }
    }

    fn long_validation(
        &self,
        new: &CustomResourceDefinition,
        old: Option<&CustomResourceDefinition>,
    ) -> Option<LongValidation> {
        if !is_long(new) {
            return None;
        }
        let (new, old) = (new.clone(), old.cloned());
        Some(Box::new(move || match &old {
            Some(old) => validation::update(&new, old),
            None => validation::create(&new),
        }))
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &CustomResourceDefinition,
        _old: &CustomResourceDefinition,
    ) -> ErrorList {
        validation::status(new)
    }

    /// Its objects are deleted before it.
    fn begin_deletion(&self, context: &Context, object: &mut CustomResourceDefinition) -> bool {
        let meta = &mut object.metadata;
        if meta.deletion_timestamp.is_some() {
            return false;
        }
        meta.deletion_timestamp = Some(context.now.truncate_to_seconds());
        if !meta.finalizers.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
            meta.finalizers.push(CLEANUP_FINALIZER.to_owned());
        }
        let text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let pending = condition(TERMINATING, true, "InstanceDeletionPending", text);
        conditions::set(&mut object.status.conditions, pending, context.now);
        true
    }

    fn failed_precondition(&self, what: &str, wanted: &str, found: &str) -> Option<String> {
        Some(format!(
            "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        ))
    }
}

/// What is said of a definition in a group of Kubernetes itself; `None`: it is in another one.
pub fn approval_condition(definition: &CustomResourceDefinition) -> Option<CustomResourceDefinitionCondition> {
    if !approval::is_protected(&definition.spec.group) {
        return None;
    }
    let (approval, why) = approval::state(&definition.metadata.annotations);
    let reason = match approval {
        Approval::Invalid => "InvalidAnnotation",
        Approval::Missing => "MissingAnnotation",
        Approval::Approved => "ApprovedAnnotation",
        Approval::Bypassed => "UnapprovedAnnotation",
    };
    Some(condition(API_APPROVAL, approval == Approval::Approved, reason, why))
}

/// Whether the authorities of its webhook, if it names some, can be read.
pub fn has_ca_bundle(definition: &CustomResourceDefinition) -> bool {
    let conversion = definition.spec.conversion.as_deref();
    let webhook = conversion.and_then(|conversion| conversion.webhook.as_deref());
    let client = webhook.and_then(|webhook| webhook.client_config.as_deref());
    let bundle = client.map_or(&[][..], |client| &client.ca_bundle);
    bundle.is_empty() || validation::webhook::ca_bundle(bundle, &Path::root()).is_empty()
}

/// Versions, columns, schemas and rules from which on the validation of a definition takes more than a millisecond.
const MANY_PARTS: usize = 200;

/// Whether a definition has so many parts that its validation takes long.
fn is_long(definition: &CustomResourceDefinition) -> bool {
    let schemas = definition
        .spec
        .versions
        .iter()
        .filter_map(|version| version.schema.as_deref());
    let mut schemas = schemas.filter_map(|schema| schema.open_apiv3_schema.as_deref());
    let columns = definition
        .spec
        .versions
        .iter()
        .map(|version| version.additional_printer_columns.len());
    let own = definition.spec.versions.len() + columns.sum::<usize>();
    let mut left = MANY_PARTS.saturating_sub(own);
    own > MANY_PARTS || schemas.any(|schema| has_more_parts(schema, &mut left))
}

/// Counts schemas and rules down; true when there are more.
fn has_more_parts(schema: &JSONSchemaProps, left: &mut usize) -> bool {
    let own = 1 + schema.x_validations.len();
    if own > *left {
        return true;
    }
    *left -= own;
    let values = match &schema.additional_properties {
        Some(OrBool::Message(values)) => Some(&**values),
        _ => None,
    };
    let items = match &schema.items {
        Some(OrArray::Message(items)) => Some(&**items),
        _ => None,
    };
    let alternatives = schema.all_of.iter().chain(&schema.any_of).chain(&schema.one_of);
    let alternatives = alternatives.chain(schema.not.as_deref());
    let properties = schema.properties.values().map(|schema| &**schema);
    let mut below = properties.chain(values).chain(items).chain(alternatives);
    below.any(|schema| has_more_parts(schema, left))
}

/// The version that is stored from now on, if it was not before; the list only grows.
fn add_stored_version(definition: &mut CustomResourceDefinition) {
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    let known = &mut definition.status.stored_versions;
    if let Some(version) = stored.filter(|version| !known.contains(&version.name)) {
        known.push(version.name.clone());
    }
}

/// Defaults in code of definitions.
fn defaults(definition: &mut CustomResourceDefinition) {
    let names = &mut definition.spec.names;
    if names.singular.is_empty() {
        names.singular = names.kind.to_lowercase();
    }
    if names.list_kind.is_empty() && !names.kind.is_empty() {
        names.list_kind = format!("{}List", names.kind);
    }
    if definition.status.stored_versions.is_empty() {
        add_stored_version(definition);
    }
}

/// What is wrong with a definition that a client makes, a line each.
#[cfg(test)]
pub fn faults_of_new(definition: &mut CustomResourceDefinition) -> Vec<String> {
    defaults(definition);
    add_stored_version(definition);
    validation::create(definition).iter().map(ToString::to_string).collect()
}

#[cfg(test)]
pub mod tests;
