//! `meta.k8s.io/v1` Tables: what `kubectl get` shows of objects, written straight into JSON.

use std::collections::BTreeMap;

use crate::field::text::json_string;
use crate::jsonpath::{self, JsonPath, PathError};
use crate::meta::v1::{ListMeta, ObjectMeta};
use crate::object::Object;
use crate::reflect::{LeafKind, Value};
use crate::scheme::{ColumnDesc, KindDesc};
use crate::time::Time;

mod age;

pub use age::{age, human_duration};

/// A value in a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<i64> for Cell {
    fn from(v: i64) -> Cell {
        Cell::Integer(v)
    }
}

impl From<i32> for Cell {
    fn from(v: i32) -> Cell {
        Cell::Integer(i64::from(v))
    }
}

/// Makes a cell that no path can say; `now` is the time of the request.
pub type CellFunction = fn(&dyn Object, now: Time) -> Cell;

/// Cell functions by the name that definitions give them.
#[derive(Clone)]
pub struct CellFunctions {
    by_name: BTreeMap<&'static str, CellFunction>,
}

impl Default for CellFunctions {
    /// With `age`, the time since the object was created.
    fn default() -> CellFunctions {
        let mut functions = CellFunctions {
            by_name: BTreeMap::new(),
        };
        functions.register("age", |object, now| age(object.meta().creation_timestamp, now).into());
        functions
    }
}

impl CellFunctions {
    /// Adds a function, or takes the place of the one of that name.
    pub fn register(&mut self, name: &'static str, function: CellFunction) {
        self.by_name.insert(name, function);
    }

    pub fn get(&self, name: &str) -> Option<CellFunction> {
        self.by_name.get(name).copied()
    }
}

/// A column that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("column {column:?} of {kind}: path {path:?}: {source}")]
    Path {
        kind: String,
        column: String,
        path: String,
        source: PathError,
    },
    #[error("column {column:?} of {kind}: no cell function is called {function:?}")]
    Function {
        kind: String,
        column: String,
        function: String,
    },
}

/// What the columns that every kind has say of themselves.
#[derive(Clone, Default, Debug)]
pub struct Descriptions {
    pub name: String,
    pub creation_timestamp: String,
}

/// The columns of a kind, ready to make rows.
pub struct TableColumns {
    columns: Vec<Column>,
}

struct Column {
    name: String,
    ty: &'static str,
    format: &'static str,
    description: String,
    priority: i32,
    source: Source,
}

enum Source {
    Name,
    Created,
    Path(JsonPath),
    Function(CellFunction),
}

impl TableColumns {
    /// The columns of a kind: those of its definition, after the name; `Name` and `Age` if it has none.
    pub fn new(
        kind: &KindDesc,
        functions: &CellFunctions,
        descriptions: &Descriptions,
    ) -> Result<TableColumns, TableError> {
        let mut columns = Vec::with_capacity(kind.columns.len() + 1);
        if kind.columns.iter().all(|c| c.path != NAME_PATH) {
            columns.push(name_column(descriptions));
        }
        for desc in kind.columns {
            columns.push(column(kind, desc, functions, descriptions)?);
        }
        if kind.columns.is_empty() {
            columns.push(Column {
                name: "Age".to_owned(),
                ty: "date",
                format: "",
                description: descriptions.creation_timestamp.clone(),
                priority: 0,
                source: Source::Function(|object, now| date(object.meta().creation_timestamp, now)),
            });
        }
        Ok(TableColumns { columns })
    }

    /// `Name` and `Created At`: what is shown of a resource that has no printer at all.
    pub fn created_at(descriptions: &Descriptions) -> TableColumns {
        let created = Column {
            name: "Created At".to_owned(),
            ty: "date",
            format: "",
            description: descriptions.creation_timestamp.clone(),
            priority: 0,
            source: Source::Created,
        };
        TableColumns {
            columns: vec![name_column(descriptions), created],
        }
    }

    /// The cells of one object.
    pub fn cells(&self, object: &dyn Object, now: Time) -> Vec<Cell> {
        self.columns.iter().map(|column| column.cell(object, now)).collect()
    }

    fn write_definitions(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, column) in self.columns.iter().enumerate() {
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

const NAME_PATH: &str = ".metadata.name";

fn name_column(descriptions: &Descriptions) -> Column {
    Column {
        name: "Name".to_owned(),
        ty: "string",
        format: "name",
        description: descriptions.name.clone(),
        priority: 0,
        source: Source::Name,
    }
}

fn column(
    kind: &KindDesc,
    desc: &ColumnDesc,
    functions: &CellFunctions,
    descriptions: &Descriptions,
) -> Result<Column, TableError> {
    let source = if desc.path == NAME_PATH {
        Source::Name
    } else if desc.function.is_empty() {
        let parsed = JsonPath::parse(desc.path).map_err(|source| TableError::Path {
            kind: kind.kind.to_owned(),
            column: desc.name.to_owned(),
            path: desc.path.to_owned(),
            source,
        })?;
        Source::Path(parsed)
    } else {
        let function = functions.get(desc.function).ok_or_else(|| TableError::Function {
            kind: kind.kind.to_owned(),
            column: desc.name.to_owned(),
            function: desc.function.to_owned(),
        })?;
        Source::Function(function)
    };
    let description = match (desc.description, &source) {
        ("", Source::Name) => descriptions.name.clone(),
        ("", Source::Function(_)) if desc.function == "age" => descriptions.creation_timestamp.clone(),
        ("", Source::Path(_)) => format!("Custom resource definition column (in JSONPath format): {}", desc.path),
        (text, _) => text.to_owned(),
    };
    Ok(Column {
        name: desc.name.to_owned(),
        ty: desc.ty,
        format: desc.format,
        description,
        priority: desc.priority,
        source,
    })
}

impl Column {
    fn cell(&self, object: &dyn Object, now: Time) -> Cell {
        match &self.source {
            Source::Name => object.meta().name.as_str().into(),
            Source::Created => object.meta().creation_timestamp.to_string().into(),
            Source::Function(function) => function(object, now),
            Source::Path(path) => match path.first(object.as_reflect()) {
                Some(value) => path_cell(self.ty, value, now),
                None => Cell::Null,
            },
        }
    }
}

/// A value as a cell of that type; null if it is no such value.
fn path_cell(ty: &str, value: Value<'_>, now: Time) -> Cell {
    match (ty, value) {
        (_, Value::Absent) => Cell::Null,
        ("string", value) => match jsonpath::scalar_text(value) {
            Some(text) => text.into_owned().into(),
            None => {
                let mut json = Vec::new();
                crate::validation::write_value(value, &mut json);
                String::from_utf8_lossy(&json).into_owned().into()
            }
        },
        ("boolean", Value::Bool(v)) => Cell::Bool(v),
        ("date", Value::Leaf(leaf)) if matches!(leaf.kind(), LeafKind::Time | LeafKind::MicroTime) => {
            date_text(&jsonpath::scalar_text(value).unwrap_or_default(), now)
        }
        ("date", Value::Str(text)) => date_text(text, now),
        ("integer", Value::Int64(v)) => Cell::Integer(v),
        // Truncates, as the API does.
        ("integer", value) => jsonpath::number(value).map_or(Cell::Null, |v| Cell::Integer(v as i64)),
        ("number", value) => jsonpath::number(value).map_or(Cell::Null, Cell::Number),
        _ => Cell::Null,
    }
}

fn date_text(text: &str, now: Time) -> Cell {
    match (text, Time::parse(text)) {
        ("", _) => Cell::Null,
        (_, Ok(time)) => age(time, now).into(),
        (_, Err(_)) => "<invalid>".into(),
    }
}

fn date(time: Time, now: Time) -> Cell {
    if time.is_zero() {
        Cell::Null
    } else {
        age(time, now).into()
    }
}

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
    /// A Table of a list; `metadata` is that of the list.
    pub fn write_list<'o>(
        &self,
        metadata: &ListMeta,
        objects: impl IntoIterator<Item = &'o dyn Object>,
        out: &mut Vec<u8>,
    ) {
        self.write_head(metadata, out);
        for (i, object) in objects.into_iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            self.write_row(object, out);
        }
        out.extend_from_slice(b"]}");
    }

    /// A Table of one object.
    pub fn write_object(&self, object: &dyn Object, out: &mut Vec<u8>) {
        let metadata = ListMeta {
            resource_version: object.meta().resource_version.clone(),
            ..ListMeta::default()
        };
        self.write_list(&metadata, [object], out);
    }

    /// Everything up to the first row. Rows follow, with commas between them, then `]}`.
    pub fn write_head(&self, metadata: &ListMeta, out: &mut Vec<u8>) {
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

    /// One row.
    pub fn write_row(&self, object: &dyn Object, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"cells\":[");
        for (i, cell) in self.columns.cells(object, self.now).iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write_cell(cell, out);
        }
        out.extend_from_slice(b"],\"object\":");
        match self.include {
            IncludeObject::None => out.extend_from_slice(b"null"),
            IncludeObject::Metadata => write_partial_metadata(object.meta(), self.api_version, out),
            IncludeObject::Object => crate::json::write_kind(object, out),
        }
        out.push(b'}');
    }
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

#[cfg(test)]
mod tests;
