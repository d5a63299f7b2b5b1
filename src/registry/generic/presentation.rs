//! Objects as Tables and metadata alone show them.

use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::table::Row;

use super::Endpoint;

/// An object on its way into a Table or cut down to its metadata: the hub version, as far as those show it, and the
/// version of the path where that is another and wanted.
pub struct Presented {
    hub: Box<dyn Object>,
    versioned: Option<Box<dyn Object>>,
}

impl Presented {
    /// `versioned`: paths are read in the version of the path, or the whole object is shown.
    pub fn new(endpoint: &Endpoint, mut hub: Box<dyn Object>, versioned: bool) -> Result<Presented, StatusError> {
        let hidden = endpoint.resource.strategy.versioned_annotations();
        let same = endpoint.kind.gvk() == endpoint.resource.hub.gvk() && hidden.is_empty();
        let versioned = match versioned && !same {
            true => Some(endpoint.resource.from_hub(&endpoint.kind, hub.clone_object())?),
            false => None,
        };
        for name in hidden {
            hub.meta_mut().annotations.remove(*name);
        }
        Ok(Presented { hub, versioned })
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        self.hub.meta()
    }

    /// What a row of a Table is made of.
    pub fn row(&self) -> Row<'_> {
        Row {
            versioned: self.versioned.as_deref().unwrap_or(&*self.hub),
            ..Row::of(&*self.hub)
        }
    }
}
