//! Events of a watch, written as the client wants them.

use std::sync::Arc;

use keelson_machinery::env::Clock;
use keelson_machinery::meta::v1::{ListMeta, ObjectMeta};
use keelson_machinery::object::MetaVersion;
use keelson_machinery::object::{Object, api_version};
use keelson_machinery::status::StatusError;
use keelson_machinery::table::{IncludeObject, Row, TableColumns, TableWriter, write_partial_metadata};
use keelson_machinery::{json, protobuf};
use keelson_registry::Endpoint;
use keelson_registry::cache::Shape as Ready;
use keelson_registry::presentation::Presented;
use keelson_storage::{Entry, Revision};

use super::output::{needs_version, write_metadata};
use super::renditions::write_object;
use super::rows::Rows;
use crate::negotiate::{Accepted, Format, Shape};

/// The annotation of the bookmark that ends the events of the initial state.
pub(super) const INITIAL_END: &str = "k8s.io/initial-events-end";

pub(super) const PARTIAL_METADATA: &str = "PartialObjectMetadata";

fn is_marked(metadata: &ObjectMeta) -> bool {
    metadata.annotations.contains_key(INITIAL_END)
}

/// How events of one watch are written.
pub(super) struct Encoder {
    accepted: Accepted,
    include: IncludeObject,
    /// Only the first Table names its columns.
    named_columns: bool,
    columns: Arc<TableColumns>,
    clock: Arc<dyn Clock>,
    gave_up: bool,
}

impl Encoder {
    pub(super) fn new(
        endpoint: &Endpoint,
        accepted: Accepted,
        include: IncludeObject,
        clock: Arc<dyn Clock>,
    ) -> Encoder {
        Encoder {
            accepted,
            include,
            named_columns: false,
            columns: endpoint.columns.clone(),
            clock,
            gave_up: false,
        }
    }

    /// An event came that cannot be written as asked for: nothing more follows.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Appends the frame of an object; `gone` is the revision at which it went, if it is gone.
    pub(super) fn event(
        &mut self,
        endpoint: &Endpoint,
        kind: &str,
        entry: &Entry,
        gone: Option<Revision>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatusError> {
        match (self.accepted.shape, self.accepted.format) {
            (Shape::Object, Format::Protobuf) => {
                let bytes = endpoint.plain(entry, Ready::Protobuf, gone)?;
                let version = api_version(&endpoint.kind.group, &endpoint.kind.version);
                let object = protobuf::wrap(&version, &endpoint.kind.kind, &bytes);
                protobuf::write_watch_frame(kind, &object, out);
                Ok(())
            }
            (Shape::Object, _) => {
                let bytes = endpoint.plain(entry, Ready::Json, gone)?;
                out.reserve(bytes.len() + FRAME_ROOM);
                begin_frame(kind, out);
                write_object(endpoint, &bytes, out);
                out.extend_from_slice(END_OF_FRAME);
                Ok(())
            }
            (Shape::PartialMetadata(version), Format::Protobuf) => {
                let bytes = endpoint.plain(entry, Ready::MetadataProtobuf, gone)?;
                let object = protobuf::wrap(version.api_version(), PARTIAL_METADATA, &bytes);
                protobuf::write_watch_frame(kind, &object, out);
                Ok(())
            }
            (Shape::PartialMetadata(version), _) => {
                let bytes = endpoint.plain(entry, Ready::Metadata(version), gone)?;
                self.frame(kind, &bytes, out);
                Ok(())
            }
            (Shape::Table(version), _) => {
                let include = self.included(endpoint, entry, version)?;
                let rows = Rows::new(version, include, &*self.clock);
                let begin = out.len();
                begin_frame(kind, out);
                let written = rows.single(endpoint, entry, gone, !self.named_columns, out);
                if written.is_err() {
                    out.truncate(begin);
                    return written;
                }
                self.named_columns = true;
                out.extend_from_slice(END_OF_FRAME);
                Ok(())
            }
            // No event is a list, and kube-apiserver has no event for this error.
            (Shape::PartialMetadataList(_), _) => {
                self.gave_up = true;
                Ok(())
            }
        }
    }

    /// What rows show of this object: never nothing of one with the mark of the initial state's end in its metadata.
    fn included(&self, endpoint: &Endpoint, entry: &Entry, version: MetaVersion) -> Result<IncludeObject, StatusError> {
        if self.include != IncludeObject::None {
            return Ok(self.include);
        }
        let metadata = endpoint.plain(entry, Ready::Metadata(version), None)?;
        // Labels and values may have these words too, but hardly ever do.
        let may_be_marked = metadata
            .windows(INITIAL_END.len())
            .any(|part| part == INITIAL_END.as_bytes());
        let marked = may_be_marked && is_marked(&endpoint.resource.decode_metadata(entry)?);
        Ok(if marked {
            IncludeObject::Metadata
        } else {
            IncludeObject::None
        })
    }

    /// Appends the frame of an object of the hub version.
    pub(super) fn object_event(
        &mut self,
        endpoint: &Endpoint,
        kind: &str,
        object: Box<dyn Object>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatusError> {
        let mut body = Vec::with_capacity(1024);
        let protobuf = self.accepted.format == Format::Protobuf;
        match self.accepted.shape {
            Shape::Object => {
                let object = endpoint.resource.from_hub(&endpoint.kind, object)?;
                match protobuf {
                    true => body = protobuf::encode(&*object),
                    false => json::write_kind(&*object, &mut body),
                }
            }
            Shape::Table(version) => {
                let versioned = needs_version(&self.columns, self.include);
                let shown = Presented::new(endpoint, object, versioned)?;
                self.table(version, shown.row(), &mut body);
            }
            Shape::PartialMetadata(version) => {
                let shown = Presented::new(endpoint, object, false)?;
                if protobuf {
                    let mut part = Vec::new();
                    write_metadata(shown.metadata(), &mut part);
                    body = protobuf::wrap(version.api_version(), PARTIAL_METADATA, &part);
                } else {
                    write_partial_metadata(shown.metadata(), version.api_version(), &mut body);
                }
            }
            // No event is a list, and kube-apiserver has no event for this error.
            Shape::PartialMetadataList(_) => {
                self.gave_up = true;
                return Ok(());
            }
        }
        self.frame(kind, &body, out);
        Ok(())
    }

    fn table(&mut self, version: MetaVersion, row: Row<'_>, out: &mut Vec<u8>) {
        let metadata = ListMeta {
            resource_version: row.metadata.resource_version.clone(),
            ..ListMeta::default()
        };
        // The mark of the initial state's end is in the metadata, and so never left out.
        let include = match self.include {
            IncludeObject::None if is_marked(row.metadata) => IncludeObject::Metadata,
            include => include,
        };
        let writer = TableWriter {
            columns: &self.columns,
            include,
            headers: !std::mem::replace(&mut self.named_columns, true),
            api_version: version.api_version(),
            now: self.clock.now(),
        };
        writer.write(&metadata, [row], out);
    }

    /// Appends the frame of an error, which is a Status whatever the objects are shown as.
    pub(super) fn error(&self, error: &StatusError, out: &mut Vec<u8>) {
        let status = error.to_status();
        let mut body = Vec::new();
        match self.accepted.format {
            Format::Protobuf => body = protobuf::encode(&status),
            _ => json::write_kind(&status, &mut body),
        }
        self.frame("ERROR", &body, out);
    }

    fn frame(&self, kind: &str, body: &[u8], out: &mut Vec<u8>) {
        if self.accepted.format == Format::Protobuf {
            protobuf::write_watch_frame(kind, body, out);
            return;
        }
        begin_frame(kind, out);
        out.extend_from_slice(body);
        out.extend_from_slice(END_OF_FRAME);
    }
}

/// Room for what stands around an object in a frame of JSON.
const FRAME_ROOM: usize = 256;
/// Ends a frame of JSON.
const END_OF_FRAME: &[u8] = b"}\n";

fn begin_frame(kind: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}
