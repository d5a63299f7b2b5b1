//! Writes to the status of definitions.

use keelson_api::apiextensions_k8s_io::v1::CustomResourceDefinition;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_registry::controller::ControllerContext;

use crate::DEFINITIONS;
use crate::definition::into_definition;

/// Changes a definition as it was read, through its status. `None`: it has changed meanwhile or is gone, so that what
/// was to be written is out of date; whoever follows it is told.
///
/// # Errors
/// The store fails, or the definition is refused.
pub async fn write(
    context: &ControllerContext,
    read: &CustomResourceDefinition,
    change: impl Fn(&mut CustomResourceDefinition, Time),
) -> Result<Option<CustomResourceDefinition>, StatusError> {
    let version = &read.metadata.resource_version;
    write_if(
        context,
        read,
        |current| current.metadata.resource_version == *version,
        change,
    )
    .await
}

/// As [`write`], to a definition of the same name that `fits`, whatever else has changed in it.
///
/// # Errors
/// The store fails, or the definition is refused.
pub async fn write_if(
    context: &ControllerContext,
    read: &CustomResourceDefinition,
    fits: impl Fn(&CustomResourceDefinition) -> bool,
    change: impl Fn(&mut CustomResourceDefinition, Time),
) -> Result<Option<CustomResourceDefinition>, StatusError> {
    let (group, plural) = (&DEFINITIONS.group, &DEFINITIONS.resource);
    let definitions = context.client().objects(group, plural, "");
    let definitions = definitions.ok_or_else(|| StatusError::internal_error("the server has no definitions"))?;
    let definitions = definitions.subresource("status")?;
    let (meta, now) = (&read.metadata, context.now());
    let mut updater = |current: Option<&dyn Object>| {
        let current = current.and_then(|current| current.downcast_ref::<CustomResourceDefinition>());
        let mut new = current
            .filter(|current| fits(current))
            .cloned()
            .ok_or_else(|| definitions.resource.not_found(&meta.name))?;
        change(&mut new, now);
        Ok(Box::new(new) as Box<dyn Object>)
    };
    match definitions.update(&meta.name, &mut updater).await {
        Ok(written) => into_definition(written).map(Some),
        Err(error) if matches!(error.code, 404 | 409) => Ok(None),
        Err(error) => Err(error),
    }
}
