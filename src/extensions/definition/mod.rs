//! CustomResourceDefinition: defaults, what clients may not set, the mark of a deletion that deletes objects first.

mod approval;
mod validation;

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinition, CustomResourceDefinitionCondition};
use keelson_machinery::field::{ErrorList, Path};
use keelson_registry::{Context, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use approval::Approval;

use crate::conditions::{self, API_APPROVAL, CLEANUP_FINALIZER, TERMINATING, condition};

/// Registers the code of definitions.
pub fn register(code: &mut KindCode) {
    code.kind::<CustomResourceDefinition>()
        .strategy(CustomResourceDefinitionStrategy)
        .defaults(defaults)
        .metadata_checks(MetadataChecks {
            create: true,
            whole_first: false,
            standard_finalizers: false,
            update: RepeatedChecks::CHANGE,
            status: RepeatedChecks::CHANGE,
        });
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

    fn validate(&self, _context: &Context, object: &CustomResourceDefinition) -> ErrorList {
        validation::create(object)
    }

    fn validate_update(
        &self,
        _context: &Context,
        new: &CustomResourceDefinition,
        old: &CustomResourceDefinition,
    ) -> ErrorList {
        validation::update(new, old)
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
