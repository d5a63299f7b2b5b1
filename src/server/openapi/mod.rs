//! OpenAPI documents of everything that is served: v2 in one piece, v3 per group/version.
//!
//! The documents are made from the schemes alone and equal those of kube-apiserver but for descriptions of paths and
//! parameters. They are made on first use, once, and kept compressed.

mod definitions;
mod operations;
mod parameters;
mod paths;
mod protobuf;
mod serve;
mod v2;
mod v3;

pub use definitions::DefinitionsError;
pub use serve::OpenApi;

use keelson_machinery::scheme::Scheme;
use serde_json::Value;

use self::definitions::Definitions;
use self::paths::Section;
use crate::discovery::Served;

/// What the documents say of the whole.
#[derive(Clone, Debug)]
pub struct Info {
    /// `Kubernetes`.
    pub title: String,
    /// Version of the server, `v1.36.3`.
    pub version: String,
}

/// All documents in one model; what they are written from.
pub struct Documents {
    info: Info,
    sections: Vec<Section>,
    definitions: Definitions,
}

impl Documents {
    /// Of what `served` says, with the definitions of `schemes`.
    pub fn new(schemes: &[&'static Scheme], served: &Served, info: Info) -> Result<Documents, DefinitionsError> {
        Ok(Documents {
            info,
            sections: paths::sections(served),
            definitions: definitions::load(schemes)?,
        })
    }

    /// The OpenAPI v2 document.
    pub fn v2(&self) -> Value {
        v2::document(&self.info, &self.sections, &self.definitions)
    }

    /// The OpenAPI v2 document in protobuf, as clients of Kubernetes ask for it.
    pub fn v2_protobuf(&self) -> Vec<u8> {
        protobuf::encode(&self.v2())
    }

    /// Names of the OpenAPI v3 documents, the last part of their URLs: `api/v1`, `apis/apps/v1`, `version` ….
    pub fn v3_names(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|section| section.name.as_str())
    }

    /// One OpenAPI v3 document.
    pub fn v3(&self, name: &str) -> Option<Value> {
        let section = self.sections.iter().find(|section| section.name == name)?;
        Some(v3::document(&self.info, section, &self.definitions))
    }
}
