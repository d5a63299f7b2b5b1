//! Tables as JSON.

use super::{Cell, Row, RowCondition, TableColumns};
use crate::field::text::json_string;
use crate::meta::v1::{ListMeta, ObjectMeta};
use crate::time::Time;

/// How much of the object stands in its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IncludeObject {
    None,
    /// As PartialObjectMetadata.
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// What `?includeObject=` says; see `validation::options::validate_table_options` for anything else.
    pub fn parse(text: &str) -> Option<IncludeObject> {
        match text {
            "None" => Some(IncludeObject::None),
            "" | "Metadata" => Some(IncludeObject::Metadata),
            "Object" => Some(IncludeObject::Object),
            _ => None,
        }
    }
}

/// Writes one Table.
pub struct TableWriter<'a> {
    pub columns: &'a TableColumns,
    pub include: IncludeObject,
    /// `false` for `noHeaders`: the events of a watch after the first.
    pub headers: bool,
    /// Of the Table and of the metadata in it: `meta.k8s.io/v1` or `meta.k8s.io/v1beta1`.
    pub api_version: &'a str,
    pub now: Time,
}

impl TableWriter<'_> {
    /// A Table; `metadata` is that of the list.
    pub fn write<'o>(&self, metadata: &ListMeta, rows: impl IntoIterator<Item = Row<'o>>, out: &mut Vec<u8>) {
        self.begin(metadata, out);
        for row in rows {
            self.row(&row, out);
        }
        self.end(out);
    }

    /// Everything up to the first row; any number of [`TableWriter::row`] follows, then [`TableWriter::end`].
    pub fn begin(&self, metadata: &ListMeta, out: &mut Vec<u8>) {
        write_kind("Table", self.api_version, out);
        out.extend_from_slice(b"\"metadata\":");
        crate::json::write(metadata, out);
        out.extend_from_slice(b",\"columnDefinitions\":");
        if self.headers {
            self.columns.write_definitions(out);
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"rows\":[");
    }

    /// The next row.
    pub fn row(&self, row: &Row<'_>, out: &mut Vec<u8>) {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"cells\":[");
        for (i, cell) in self.columns.cells(row, self.now).iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write_cell(cell, out);
        }
        out.push(b']');
        if let Some(condition) = row.hub.and_then(|hub| self.columns.condition?(hub)) {
            write_condition(&condition, out);
        }
        out.extend_from_slice(b",\"object\":");
        match self.include {
            IncludeObject::None => out.extend_from_slice(b"null"),
            IncludeObject::Metadata => write_partial_metadata(row.metadata, self.api_version, out),
            IncludeObject::Object => crate::json::write_kind(row.versioned, out),
        }
        out.push(b'}');
    }

    /// What follows the last row.
    pub fn end(&self, out: &mut Vec<u8>) {
        if self.columns.bare && out.last() == Some(&b'[') {
            out.pop();
            return out.extend_from_slice(b"null}");
        }
        out.extend_from_slice(b"]}");
    }
}

impl TableColumns {
    fn write_definitions(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, column) in self.columns.iter().filter(|c| !c.hidden).enumerate() {
            let mut text = String::from(if i > 0 { "," } else { "" });
            for (key, value) in [
                ("{\"name\":", column.name.as_str()),
                (",\"type\":", column.ty),
                (",\"format\":", column.format),
                (",\"description\":", &column.description),
            ] {
                text.push_str(key);
                json_string(value, &mut text);
            }
            text.push_str(&format!(",\"priority\":{}}}", column.priority));
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b']');
    }
}

fn write_condition(condition: &RowCondition, out: &mut Vec<u8>) {
    let mut text = String::from(",\"conditions\":[{");
    for (i, (key, value)) in [
        ("type", condition.ty),
        ("status", condition.status),
        ("reason", condition.reason),
        ("message", condition.message),
    ]
    .into_iter()
    .enumerate()
    {
        text.push_str(if i > 0 { ",\"" } else { "\"" });
        text.push_str(key);
        text.push_str("\":");
        json_string(value, &mut text);
    }
    text.push_str("}]");
    out.extend_from_slice(text.as_bytes());
}

/// `PartialObjectMetadata` of an object, as JSON.
pub fn write_partial_metadata(meta: &ObjectMeta, api_version: &str, out: &mut Vec<u8>) {
    write_kind("PartialObjectMetadata", api_version, out);
    out.extend_from_slice(b"\"metadata\":");
    crate::json::write(meta, out);
    out.push(b'}');
}

fn write_kind(kind: &str, api_version: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",").as_bytes());
}

fn write_cell(cell: &Cell, out: &mut Vec<u8>) {
    let text = match cell {
        Cell::Null => "null".to_owned(),
        Cell::Bool(v) => v.to_string(),
        Cell::Integer(v) => v.to_string(),
        Cell::Number(v) => crate::field::text::json_float(*v),
        Cell::Text(text) => {
            let mut quoted = String::with_capacity(text.len() + 2);
            json_string(text, &mut quoted);
            quoted
        }
    };
    out.extend_from_slice(text.as_bytes());
}
