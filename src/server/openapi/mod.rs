//! OpenAPI documents of everything that is served: v2 in one piece, v3 per group/version.
//!
//! The documents are made from the catalog alone and equal those of kube-apiserver but for descriptions of paths and
//! parameters. They are made when they are asked for and kept compressed, v3 by version, v2 in pieces by version: a
//! kind that comes or goes costs what belongs to its versions.

mod definitions;
mod operations;
mod parameters;
mod paths;
mod protobuf;
mod schemas;
mod sections;
mod serve;
mod v2;
mod v3;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

pub use definitions::DefinitionsError;
pub use schemas::{KindSchema, Schemas};
pub use serve::OpenApi;

use keelson_machinery::env::Clock;
use keelson_machinery::scheme::Scheme;
use serde_json::Value;

use self::definitions::{BuildDefinitions, GroupVersion};
use self::sections::Part;
use crate::discovery::{Catalog, Served};
use crate::document::Document;

/// What the documents say of the whole.
#[derive(Clone, Debug)]
pub struct Info {
    /// `Kubernetes`.
    pub title: String,
    /// Version of the API: major and minor version of the server, `1.36`.
    pub version: String,
    /// The server answers the requests of OpenID Connect for the issuer of service account tokens.
    pub issuer: bool,
    /// Group/versions that are known without a definition: requests may name them, nothing serves them.
    pub known: &'static [(&'static str, &'static str)],
}

/// The documents of what a catalog says.
pub struct Documents {
    model: Model,
    v2: [v2::Joined; 2],
    v3: v3::Single,
}

/// What documents are made of.
struct Model {
    info: Info,
    catalog: Arc<dyn Catalog>,
    definitions: BuildDefinitions,
    /// Every group/version that a request may name.
    known: BTreeSet<GroupVersion<'static>>,
    clock: Arc<dyn Clock>,
}

/// The forms of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    Json,
    Protobuf,
}

/// A document, and when it was made.
struct Made {
    document: Document,
    /// Seconds since 1970.
    at: i64,
}

/// What is kept of the documents' parts: under the name and the generation.
type Kept<T> = crate::document::Kept<(String, u64), T>;

impl Model {
    fn parts<'s>(&self, served: &'s Served) -> Vec<Part<'s>> {
        sections::parts(served, self.info.issuer)
    }

    fn made(&self, document: Document) -> Made {
        Made {
            document,
            at: self.clock.now().unix_seconds(),
        }
    }
}

impl Documents {
    /// Of what `catalog` says, with the definitions of `schemes`. Nothing is made yet.
    pub fn new(schemes: &[&'static Scheme], catalog: Arc<dyn Catalog>, info: Info, clock: Arc<dyn Clock>) -> Documents {
        let versions = schemes.iter().flat_map(|s| s.groups).flat_map(|group| {
            let versions = group.versions.iter();
            versions.map(|version| (group.name, version.version))
        });
        let known = versions.chain([("", "v1")]).chain(info.known.iter().copied());
        Documents {
            model: Model {
                known: known.collect(),
                definitions: BuildDefinitions::new(schemes),
                info,
                catalog,
                clock,
            },
            v2: [Encoding::Json, Encoding::Protobuf].map(v2::Joined::new),
            v3: v3::Single::default(),
        }
    }

    /// Writes the OpenAPI v2 document as JSON.
    pub fn v2(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.whole(Encoding::Json)?.document.unpacked()?)
    }

    /// The OpenAPI v2 document in protobuf, as clients of Kubernetes ask for it.
    pub fn v2_protobuf(&self) -> io::Result<Vec<u8>> {
        Ok(self.whole(Encoding::Protobuf)?.document.unpacked()?.into())
    }

    /// Names of the OpenAPI v3 documents, the last part of their URLs: `api/v1`, `apis/apps/v1`, `version` ….
    pub fn v3_names(&self) -> Vec<String> {
        let served = self.model.catalog.served();
        self.model.parts(&served).into_iter().map(|part| part.name).collect()
    }

    /// Writes one OpenAPI v3 document as JSON; `false` if there is none of that name.
    pub fn v3(&self, name: &str, out: &mut dyn Write) -> io::Result<bool> {
        match self.v3.json(&self.model, name)? {
            Some(made) => out.write_all(&made.document.unpacked()?).map(|()| true),
            None => Ok(false),
        }
    }

    /// One OpenAPI v3 document in protobuf; `None` if there is none of that name.
    pub fn v3_protobuf(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let made = self.v3.protobuf(&self.model, name)?;
        made.map(|made| Ok(made.document.unpacked()?.into())).transpose()
    }

    fn whole(&self, encoding: Encoding) -> io::Result<Arc<Made>> {
        let [json, protobuf] = &self.v2;
        match encoding {
            Encoding::Json => json.document(&self.model),
            Encoding::Protobuf => protobuf.document(&self.model),
        }
    }
}

impl From<DefinitionsError> for io::Error {
    fn from(error: DefinitionsError) -> io::Error {
        io::Error::other(error)
    }
}

/// Writes `"name":`, after a comma unless it is the `first` member.
fn key(out: &mut dyn Write, first: &mut bool, name: &str) -> io::Result<()> {
    if !std::mem::take(first) {
        out.write_all(b",")?;
    }
    serde_json::to_writer(&mut *out, name)?;
    out.write_all(b":")
}

/// Writes the object whose members `each` names one by one.
fn object(
    out: &mut dyn Write,
    each: impl FnOnce(&mut dyn FnMut(&str, &Value) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"{")?;
    let mut first = true;
    each(&mut |name, value| {
        key(out, &mut first, name)?;
        Ok(serde_json::to_writer(&mut *out, value)?)
    })?;
    out.write_all(b"}")
}
