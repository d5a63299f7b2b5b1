//! The OpenAPI definitions of custom resources.

use std::sync::Arc;

use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::Name;
use keelson_machinery::structural::{OpenApi, OpenApiVersion};
use keelson_registry::{OpenApiForm, OwnDefinitions};

use super::Schema;

/// Those of one version: of its objects, and of lists of them.
pub struct VersionDefinitions {
    pub gvk: Gvk,
    pub list_kind: String,
    pub plural: String,
    pub schema: Option<Arc<Schema>>,
    /// Objects hold fields that the schema does not have.
    pub preserves: bool,
    /// Paths that objects are selected by.
    pub selectable: Vec<Name>,
}

impl OwnDefinitions for VersionDefinitions {
    fn definitions(&self, form: OpenApiForm) -> Vec<u8> {
        let schema = self.schema.as_deref();
        let openapi = OpenApi {
            gvk: &self.gvk,
            list_kind: &self.list_kind,
            plural: &self.plural,
            schema: schema.map(|schema| (&*schema.parsed, &schema.text[..])),
            preserve_unknown_fields: self.preserves,
            selectable_fields: &self.selectable,
        };
        openapi.definitions(match form {
            OpenApiForm::V2 => OpenApiVersion::V2,
            OpenApiForm::V3 => OpenApiVersion::V3,
        })
    }
}
