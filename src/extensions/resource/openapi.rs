//! The OpenAPI definitions of custom resources.

use std::io::Read;
use std::sync::{Arc, OnceLock};

use flate2::read::ZlibDecoder;

use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::Name;
use keelson_machinery::structural::{OpenApi, OpenApiTexts, OpenApiVersion};
use keelson_registry::{OpenApiForm, OwnDefinitions};

use serde_json::value::RawValue;
use serde_json::{Value, from_slice, from_str};

use crate::schemas::Schema;

/// The definitions of the build may be this large.
const MAX_BYTES: u64 = 64 << 20;
/// A built-in kind that says of its fields what all of them say.
const EXAMPLE: &str = "io.k8s.api.core.v1.ConfigMap";

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
        let parsed = schema.map(Schema::parsed);
        let openapi = OpenApi {
            gvk: &self.gvk,
            list_kind: &self.list_kind,
            plural: &self.plural,
            schema: parsed.as_deref().zip(schema.map(|schema| &schema.text[..])),
            preserve_unknown_fields: self.preserves,
            selectable_fields: &self.selectable,
            texts: texts(),
        };
        openapi.definitions(match form {
            OpenApiForm::V2 => OpenApiVersion::V2,
            OpenApiForm::V3 => OpenApiVersion::V3,
        })
    }
}

/// What built-in kinds say of the fields that every kind has. Read once, when the first document is made.
fn texts() -> &'static OpenApiTexts {
    static TEXTS: OnceLock<OpenApiTexts> = OnceLock::new();
    TEXTS.get_or_init(|| said().unwrap_or_default())
}

fn said() -> Option<OpenApiTexts> {
    let mut text = Vec::new();
    let definitions = ZlibDecoder::new(keelson_api::SCHEME.definitions);
    definitions.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let all: std::collections::HashMap<String, &RawValue> = from_slice(&text).ok()?;
    let object: Value = from_str(all.get(EXAMPLE)?.get()).ok()?;
    let said = |field: &str| {
        let text = object["properties"][field]["description"].as_str();
        text.map(str::to_owned)
    };
    let (kind, metadata) = (said("kind")?, said("metadata")?);
    let list_metadata = of_lists(&kind, &metadata)?;
    Some(OpenApiTexts {
        api_version: said("apiVersion")?,
        kind,
        metadata,
        list_metadata,
    })
}

/// What is said of the metadata of lists: what is said of that of objects, with a reference to the page on kinds.
fn of_lists(kind: &str, metadata: &str) -> Option<String> {
    let (said, _) = metadata.split_once(". ")?;
    let (_, address) = kind.split_once("More info: ")?;
    Some(format!("{}. More info: {address}", said.replace("object's", "list")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_say_what_is_said() {
        assert!(said().is_some_and(|texts| texts != OpenApiTexts::default()));
        let told = of_lists(
            "Kind is a name. More info: page#kinds",
            "Standard object's metadata. More info: page",
        );
        assert_eq!(told.as_deref(), Some("Standard list metadata. More info: page#kinds"));
    }
}
