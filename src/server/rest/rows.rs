//! Tables made of what is ready in memory: rows whose times are filled in, and what they show of their objects.

use bytes::BufMut;
use keelson_machinery::env::Clock;
use keelson_machinery::meta::v1::ListMeta;
use keelson_machinery::object::MetaVersion;
use keelson_machinery::status::StatusError;
use keelson_machinery::table::{IncludeObject, TableWriter};
use keelson_machinery::time::Time;
use keelson_registry::Endpoint;
use keelson_registry::cache::Shape;
use keelson_storage::{Entry, Revision};

use super::renditions::write_object;

/// How the rows of one answer, or of one event, are shown.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub version: MetaVersion,
    pub include: IncludeObject,
    now: Time,
}

impl Rows {
    pub fn new(version: MetaVersion, include: IncludeObject, clock: &dyn Clock) -> Rows {
        Rows {
            version,
            include,
            now: clock.now(),
        }
    }

    /// Everything up to the rows.
    pub fn head(&self, endpoint: &Endpoint, meta: &ListMeta, headers: bool, out: &mut Vec<u8>) {
        let writer = TableWriter {
            columns: &endpoint.columns,
            include: self.include,
            headers,
            api_version: self.version.api_version(),
            now: self.now,
        };
        writer.begin(meta, out);
    }

    /// A row; `gone` is the revision at which its object went, if it is gone.
    pub fn row(
        &self,
        endpoint: &Endpoint,
        entry: &Entry,
        gone: Option<Revision>,
        out: &mut impl BufMut,
    ) -> Result<(), StatusError> {
        endpoint.row(entry, gone)?.write(self.now, out);
        match self.include {
            IncludeObject::None => out.put_slice(b"null"),
            IncludeObject::Metadata => out.put_slice(&endpoint.plain(entry, Shape::Metadata(self.version), gone)?),
            IncludeObject::Object => write_object(endpoint, &endpoint.plain(entry, Shape::Json, gone)?, out),
        }
        out.put_u8(b'}');
        Ok(())
    }

    /// A Table of one row. `headers`: it names its columns.
    pub fn single(
        &self,
        endpoint: &Endpoint,
        entry: &Entry,
        gone: Option<Revision>,
        headers: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), StatusError> {
        let meta = ListMeta {
            resource_version: gone.unwrap_or(entry.mod_revision).to_string(),
            ..ListMeta::default()
        };
        self.head(endpoint, &meta, headers, out);
        out.push(b'[');
        self.row(endpoint, entry, gone, out)?;
        out.extend_from_slice(b"]}");
        Ok(())
    }
}
