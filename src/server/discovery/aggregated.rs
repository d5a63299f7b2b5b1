//! Aggregated discovery: all groups in one document, joined from a piece for each version, which is made once.

use std::io;
use std::sync::Arc;

use keelson_machinery::decode::DecodeError;
use keelson_machinery::meta::v1::APIGroupDiscoveryList;
use keelson_machinery::protobuf;
use serde_json::{Value, json};

use super::documents::aggregated_version;
use super::serve::read;
use super::{Served, ServedGroup, ServedVersion};
use crate::document::{Document, Joining, Kept, Newest, Piece};

pub(super) const JSON: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
pub(super) const YAML: &str = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
pub(super) const PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const API_VERSION: &str = "apidiscovery.k8s.io/v2";
const KIND: &str = "APIGroupDiscoveryList";
/// Number of the items of a list and of the versions of a group.
const MEMBERS: u32 = 2;

/// The document of the legacy group (`/api`) or of all others (`/apis`).
pub(super) struct Aggregated {
    legacy: bool,
    json: Newest<Document>,
    protobuf: Newest<Document>,
    /// By generation.
    versions: Kept<u64, Pieces>,
}

/// Why a document can't be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum PieceError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It can't be compressed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What both forms have of a version.
struct Pieces {
    json: Piece,
    /// With tag and length.
    protobuf: Piece,
}

impl Aggregated {
    pub(super) fn new(legacy: bool) -> Aggregated {
        Aggregated {
            legacy,
            json: Newest::default(),
            protobuf: Newest::default(),
            versions: Kept::default(),
        }
    }

    pub(super) fn json(&self, served: &Served) -> Result<Arc<Document>, PieceError> {
        self.json.get(served.generation, || {
            let document = self.join_json(served);
            let groups = self.groups(served).flat_map(|group| &group.versions);
            self.versions.retain(groups.map(|version| version.generation));
            document
        })
    }

    /// The tag is that of the JSON form.
    pub(super) fn protobuf(&self, served: &Served, json: &Document) -> Result<Arc<Document>, PieceError> {
        let make = || Ok(self.join_protobuf(served)?.encoding_of(json.hash()));
        self.protobuf.get(served.generation, make)
    }

    fn groups<'s>(&self, served: &'s Served) -> impl Iterator<Item = &'s Arc<ServedGroup>> {
        let legacy = self.legacy;
        served
            .groups
            .iter()
            .filter(move |group| group.name.is_empty() == legacy)
    }

    /// The metadata of a group.
    fn metadata(&self, group: &ServedGroup) -> Value {
        if self.legacy {
            json!({})
        } else {
            json!({"name": group.name.as_str()})
        }
    }

    fn join_json(&self, served: &Served) -> Result<Document, PieceError> {
        let mut out = Joining::new();
        let head = format!("{{\"kind\":\"{KIND}\",\"apiVersion\":\"{API_VERSION}\",\"metadata\":{{}},\"items\":[");
        out.bytes(head.as_bytes());
        for (n, group) in self.groups(served).enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let head = format!("{comma}{{\"metadata\":{},\"versions\":[", self.metadata(group));
            out.bytes(head.as_bytes());
            for (n, version) in group.versions.iter().enumerate() {
                if n > 0 {
                    out.bytes(b",");
                }
                out.piece(&self.pieces(version)?.json);
            }
            out.bytes(b"]}");
        }
        out.bytes(b"]}\n");
        Ok(out.finish(JSON))
    }

    fn join_protobuf(&self, served: &Served) -> Result<Document, PieceError> {
        let mut groups = Vec::new();
        let mut length = 0;
        let list = encoded(&json!({"metadata": {}, "items": []}))?;
        for group in self.groups(served) {
            let members = group.versions.iter().map(|version| self.pieces(version));
            let members = members.collect::<Result<Vec<_>, _>>()?;
            let head = encoded(&json!({"metadata": {}, "items": [{"metadata": self.metadata(group)}]}))?;
            let metadata = protobuf::field(&head, MEMBERS).unwrap_or_default().to_vec();
            let len = members
                .iter()
                .fold(metadata.len(), |len, pieces| len + pieces.protobuf.len());
            length += protobuf::tagged_len(MEMBERS, len);
            groups.push((len, metadata, members));
        }
        let mut out = Joining::new();
        let mut head = Vec::new();
        protobuf::begin_envelope(API_VERSION, KIND, list.len() + length, &mut head);
        head.extend(list);
        for (len, metadata, members) in groups {
            protobuf::write_tag_len(MEMBERS, len, &mut head);
            head.extend(metadata);
            out.bytes(&std::mem::take(&mut head));
            members.iter().for_each(|pieces| out.piece(&pieces.protobuf));
        }
        protobuf::end_envelope(&mut head);
        out.bytes(&head);
        Ok(out.finish(PROTOBUF))
    }

    fn pieces(&self, version: &ServedVersion) -> Result<Arc<Pieces>, PieceError> {
        self.versions.get(version.generation, || {
            let value = aggregated_version(version);
            let list = encoded(&json!({"metadata": {}, "items": [{"metadata": {}, "versions": [&value]}]}))?;
            let group = protobuf::field(&list, MEMBERS).unwrap_or_default();
            let encoded = protobuf::field(group, MEMBERS).unwrap_or_default();
            let mut member = Vec::new();
            protobuf::write_tag_bytes(MEMBERS, encoded, &mut member);
            Ok(Pieces {
                json: Piece::new(value.to_string().as_bytes())?,
                protobuf: Piece::new(&member)?,
            })
        })
    }
}

/// A list in protobuf, without its envelope.
fn encoded(value: &Value) -> Result<Vec<u8>, DecodeError> {
    let (mut list, mut out) = (APIGroupDiscoveryList::default(), Vec::new());
    read(value, &mut list)?;
    protobuf::write_message(&list, &mut out);
    Ok(out)
}
