//! OpenAPI documents of everything that is served: v2 in one piece, v3 per group/version.
//!
//! The documents are made from the schemes alone and equal those of kube-apiserver but for descriptions of paths and
//! parameters. They are made on first use, once, written piece by piece, and kept compressed.

mod definitions;
mod operations;
mod parameters;
mod paths;
mod protobuf;
mod serve;
mod v2;
mod v3;

use std::collections::BTreeSet;
use std::io::{self, Write};

pub use definitions::DefinitionsError;
pub use serve::OpenApi;

use keelson_machinery::scheme::Scheme;
use serde_json::Value;

use self::definitions::{Definitions, GroupVersion};
use self::paths::Section;
use crate::discovery::Served;

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

/// All documents in one model; what they are written from.
pub struct Documents {
    info: Info,
    sections: Vec<Section>,
    definitions: Definitions,
    /// Every group/version that a request may name.
    known: BTreeSet<GroupVersion<'static>>,
}

impl Documents {
    /// Of what `served` says, with the definitions of `schemes`.
    pub fn new(schemes: &[&'static Scheme], served: &Served, info: Info) -> Result<Documents, DefinitionsError> {
        let versions = schemes.iter().flat_map(|s| s.groups).flat_map(|group| {
            let versions = group.versions.iter();
            versions.map(|version| (group.name, version.version))
        });
        let known = versions.chain([("", "v1")]).chain(info.known.iter().copied());
        Ok(Documents {
            known: known.collect(),
            sections: paths::sections(served, info.issuer),
            definitions: definitions::load(schemes)?,
            info,
        })
    }

    /// Writes the OpenAPI v2 document as JSON.
    pub fn v2(&self, out: &mut dyn Write) -> io::Result<()> {
        v2::write(self, out)
    }

    /// The OpenAPI v2 document in protobuf, as clients of Kubernetes ask for it.
    pub fn v2_protobuf(&self) -> io::Result<Vec<u8>> {
        protobuf::v2(self)
    }

    /// Names of the OpenAPI v3 documents, the last part of their URLs: `api/v1`, `apis/apps/v1`, `version` ….
    pub fn v3_names(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|section| section.name.as_str())
    }

    /// Writes one OpenAPI v3 document as JSON; `false` if there is none of that name.
    pub fn v3(&self, name: &str, out: &mut dyn Write) -> io::Result<bool> {
        match self.section(name) {
            Some(section) => v3::write(self, section, out).map(|()| true),
            None => Ok(false),
        }
    }

    /// One OpenAPI v3 document in protobuf; `None` if there is none of that name.
    pub fn v3_protobuf(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let section = self.section(name);
        section.map(|section| protobuf::v3(self, section)).transpose()
    }

    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
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
