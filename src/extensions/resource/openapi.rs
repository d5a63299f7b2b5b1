//! The OpenAPI definitions of custom resources.

use std::sync::Arc;

use keelson_machinery::reflect::Name;
use keelson_registry::OwnDefinitions;
use serde_json::json;

use super::Schema;

/// Those of one version.
pub struct VersionDefinitions {
    pub schema: Option<Arc<Schema>>,
    /// Of the definition of an object.
    pub name: Name,
}

impl OwnDefinitions for VersionDefinitions {
    fn definitions(&self) -> Vec<u8> {
        let schema = self
            .schema
            .as_ref()
            .and_then(|schema| serde_json::from_slice(&schema.text).ok());
        let schema: serde_json::Value = schema.unwrap_or_else(|| json!({"type": "object"}));
        json!({self.name.as_str(): schema}).to_string().into_bytes()
    }
}
