//! Tables as JSON.

use bytes::BufMut;

use super::{Cell, Row, RowCondition, TableColumns, elapsed};
use crate::field::text::json_string;
use crate::meta::v1::{ListMeta, ObjectMeta};
use crate::reflect::time::Time;

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
        out.extend_from_slice(b",\"rows\":");
    }

    /// The next row.
    pub fn row(&self, row: &Row<'_>, out: &mut Vec<u8>) {
        out.push(if out.ends_with(b":") { b'[' } else { b',' });
        self.columns.template(row).write(self.now, out);
        match self.include {
            IncludeObject::None => out.extend_from_slice(b"null"),
            IncludeObject::Metadata => write_partial_metadata(row.metadata, self.api_version, out),
            IncludeObject::Object => crate::json::write_kind(row.versioned, out),
        }
        out.push(b'}');
    }

    /// What follows the last row.
    pub fn end(&self, out: &mut Vec<u8>) {
        let text = if out.ends_with(b":") {
            self.columns.no_rows()
        } else {
            "]"
        };
        out.extend_from_slice(text.as_bytes());
        out.push(b'}');
    }
}

/// A row without its object, whole but for the times that have passed: those are filled in when it is shown.
pub struct RowTemplate {
    text: Box<[u8]>,
    /// Where in the text times stand, in ascending order, and since when they run.
    gaps: Box<[(usize, Time)]>,
}

impl RowTemplate {
    /// Appends the row up to its object, which is to follow, and a brace.
    pub fn write(&self, now: Time, out: &mut impl BufMut) {
        let mut done = 0;
        for (at, since) in &self.gaps {
            out.put_slice(self.text.get(done..*at).unwrap_or_default());
            match elapsed(*since, now).as_bytes() {
                [b'<', word @ .., b'>'] => {
                    out.put_slice(b"\\u003c");
                    out.put_slice(word);
                    out.put_slice(b"\\u003e");
                }
                text => out.put_slice(text),
            }
            done = *at;
        }
        out.put_slice(self.text.get(done..).unwrap_or_default());
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> usize {
        self.text.len() + size_of_val(&*self.gaps)
    }
}

impl TableColumns {
    /// The row of an object.
    pub fn template(&self, row: &Row<'_>) -> RowTemplate {
        let (mut text, mut gaps) = (String::with_capacity(256), Vec::new());
        text.push_str("{\"cells\":[");
        for (i, cell) in self.cells(row).enumerate() {
            if i > 0 {
                text.push(',');
            }
            write_cell(&cell, &mut text, &mut gaps);
        }
        text.push(']');
        if let Some(condition) = row.hub.and_then(|hub| self.condition.as_ref()?(hub)) {
            write_condition(&condition, &mut text);
        }
        text.push_str(",\"object\":");
        RowTemplate {
            text: text.into_bytes().into(),
            gaps: gaps.into(),
        }
    }

    /// What a Table shows where rows stand, if there are none.
    pub fn no_rows(&self) -> &'static str {
        if self.bare { "null" } else { "[]" }
    }

    fn write_definitions(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, column) in self.columns.iter().filter(|c| !c.hidden).enumerate() {
            let mut text = String::from(if i > 0 { "," } else { "" });
            for (key, value) in [
                ("{\"name\":", column.name.as_str()),
                (",\"type\":", &column.ty),
                (",\"format\":", &column.format),
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

fn write_condition(condition: &RowCondition, text: &mut String) {
    text.push_str(",\"conditions\":[{");
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
        json_string(value, text);
    }
    text.push_str("}]");
}

/// `PartialObjectMetadata` of an object, as JSON.
pub fn write_partial_metadata(meta: &ObjectMeta, api_version: &str, out: &mut Vec<u8>) {
    write_kind("PartialObjectMetadata", api_version, out);
    out.extend_from_slice(b"\"metadata\":");
    crate::json::write(meta, out);
    out.push(b'}');
}

/// `PartialObjectMetadata` of an object, as a protobuf message without its envelope; `metadata`: the encoded
/// ObjectMeta.
pub fn write_partial_protobuf(metadata: &[u8], out: &mut Vec<u8>) {
    const METADATA: u32 = 1;
    crate::protobuf::write_tag_bytes(METADATA, metadata, out);
}

fn write_kind(kind: &str, api_version: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",").as_bytes());
}

fn write_cell(cell: &Cell, out: &mut String, gaps: &mut Vec<(usize, Time)>) {
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        Cell::Integer(v) => out.push_str(&v.to_string()),
        Cell::Number(v) => out.push_str(&crate::field::text::json_float(*v)),
        Cell::Text(text) => json_string(text, out),
        Cell::Elapsed { before, since, after } => {
            json_string(before, out);
            // The text goes on where its closing quote stands.
            out.pop();
            gaps.push((out.len(), *since));
            let begin = out.len();
            json_string(after, out);
            out.remove(begin);
        }
    }
}
