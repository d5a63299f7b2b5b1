//! `meta.k8s.io/v1` Tables: what `kubectl get` shows of objects, written straight into JSON.

use std::collections::BTreeMap;

use crate::jsonpath::{self, JsonPath, PathError};
use crate::meta::v1::ObjectMeta;
use crate::object::{Kind, Object};
use crate::reflect::{LeafKind, Value};
use crate::scheme::ColumnDesc;
use crate::time::Time;

mod age;
mod write;

pub use age::{age, human_duration};
pub use write::{IncludeObject, TableWriter, write_partial_metadata};

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

impl From<bool> for Cell {
    fn from(v: bool) -> Cell {
        Cell::Bool(v)
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

/// Something that clients may know of a row as a whole, such as that its object has done its work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowCondition {
    pub ty: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
}

/// The condition of an object's row, if it has one.
pub type ConditionFunction = fn(&dyn Object) -> Option<RowCondition>;

/// Cell functions by the name that definitions give them.
#[derive(Clone)]
pub struct CellFunctions {
    by_name: BTreeMap<&'static str, CellFunction>,
    conditions: BTreeMap<&'static str, ConditionFunction>,
}

impl Default for CellFunctions {
    /// With `age`, the time since the object was created, and `created`, the time when it was.
    fn default() -> CellFunctions {
        let mut functions = CellFunctions {
            by_name: BTreeMap::new(),
            conditions: BTreeMap::new(),
        };
        functions.register(AGE, |object, now| age(object.meta().creation_timestamp, now).into());
        functions.register(CREATED, |object, _| created(object.meta().creation_timestamp).into());
        functions
    }
}

impl CellFunctions {
    /// Adds a function, or takes the place of the one of that name.
    pub fn register(&mut self, name: &'static str, function: CellFunction) {
        self.by_name.insert(name, function);
    }

    /// Sets what says the condition of rows of a kind.
    pub fn register_condition(&mut self, kind: &'static str, function: ConditionFunction) {
        self.conditions.insert(kind, function);
    }

    pub fn get(&self, name: &str) -> Option<CellFunction> {
        self.by_name.get(name).copied()
    }
}

/// One object of a Table.
#[derive(Clone, Copy)]
pub struct Row<'o> {
    /// Shown with the row, unless the whole object is.
    pub metadata: &'o ObjectMeta,
    /// What cell functions see: the hub version. `None` for kinds that are no resources; their functions give nothing.
    pub hub: Option<&'o dyn Object>,
    /// What paths lead into, and what is shown as the whole object: the version that the client asked for.
    pub versioned: &'o dyn Kind,
}

impl<'o> Row<'o> {
    /// A row of an object whose version is the hub.
    pub fn of(object: &'o dyn Object) -> Row<'o> {
        Row {
            metadata: object.meta(),
            hub: Some(object),
            versioned: object,
        }
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
    condition: Option<ConditionFunction>,
    /// Kinds without columns of their own have null for no rows.
    bare: bool,
}

struct Column {
    name: String,
    ty: &'static str,
    format: &'static str,
    description: String,
    priority: i32,
    hidden: bool,
    source: Source,
}

enum Source {
    Name,
    Age,
    Path(JsonPath),
    Function(CellFunction),
}

impl TableColumns {
    /// The columns that the definition of `kind` has, after the name; `Name` and `Age` if it has none.
    pub fn new(
        kind: &str,
        described: &[ColumnDesc],
        functions: &CellFunctions,
        descriptions: &Descriptions,
    ) -> Result<TableColumns, TableError> {
        let mut columns = Vec::with_capacity(described.len() + 1);
        if described.iter().all(|c| c.path != NAME_PATH && c.name != NAME) {
            columns.push(name_column(descriptions));
        }
        for desc in described {
            columns.push(column(kind, desc, functions, descriptions)?);
        }
        if described.is_empty() {
            columns.push(Column {
                name: "Age".to_owned(),
                ty: "date",
                format: "",
                description: descriptions.creation_timestamp.clone(),
                priority: 0,
                hidden: false,
                source: Source::Function(|object, now| date(object.meta().creation_timestamp, now)),
            });
        }
        Ok(TableColumns {
            columns,
            condition: functions.conditions.get(kind).copied(),
            bare: described.iter().any(|c| c.function == CREATED),
        })
    }

    /// The cells of one row.
    pub fn cells(&self, row: &Row<'_>, now: Time) -> Vec<Cell> {
        self.columns.iter().map(|column| column.cell(row, now)).collect()
    }

    /// Whether some cells are read at paths of the version that is shown, not of the hub alone.
    pub fn read_paths(&self) -> bool {
        self.columns.iter().any(|c| matches!(c.source, Source::Path(_)))
    }
}

const NAME: &str = "Name";
const NAME_PATH: &str = ".metadata.name";
/// Functions that every kind has.
const AGE: &str = "age";
const CREATED: &str = "created";

fn name_column(descriptions: &Descriptions) -> Column {
    Column {
        name: NAME.to_owned(),
        ty: "string",
        format: "name",
        description: descriptions.name.clone(),
        priority: 0,
        hidden: false,
        source: Source::Name,
    }
}

fn column(
    kind: &str,
    desc: &ColumnDesc,
    functions: &CellFunctions,
    descriptions: &Descriptions,
) -> Result<Column, TableError> {
    let source = if desc.path == NAME_PATH {
        Source::Name
    } else if desc.function == AGE {
        Source::Age
    } else if desc.function.is_empty() {
        let parsed = JsonPath::parse(desc.path).map_err(|source| TableError::Path {
            kind: kind.to_owned(),
            column: desc.name.to_owned(),
            path: desc.path.to_owned(),
            source,
        })?;
        Source::Path(parsed)
    } else {
        let function = functions.get(desc.function).ok_or_else(|| TableError::Function {
            kind: kind.to_owned(),
            column: desc.name.to_owned(),
            function: desc.function.to_owned(),
        })?;
        Source::Function(function)
    };
    let description = match (desc.description, &source) {
        ("", _) if desc.name == NAME => descriptions.name.clone(),
        ("", Source::Age) => descriptions.creation_timestamp.clone(),
        ("", Source::Function(_)) if desc.function == CREATED => descriptions.creation_timestamp.clone(),
        ("", Source::Path(_)) => format!("Custom resource definition column (in JSONPath format): {}", desc.path),
        (text, _) => text.to_owned(),
    };
    Ok(Column {
        name: desc.name.to_owned(),
        ty: desc.ty,
        format: desc.format,
        description,
        priority: desc.priority,
        hidden: desc.hidden,
        source,
    })
}

impl Column {
    fn cell(&self, row: &Row<'_>, now: Time) -> Cell {
        match &self.source {
            Source::Name => row.metadata.name.as_str().into(),
            Source::Age => age(row.metadata.creation_timestamp, now).into(),
            Source::Function(function) => row.hub.map_or(Cell::Null, |hub| function(hub, now)),
            Source::Path(path) => match path.first(row.versioned.as_reflect()) {
                Some(value) => path_cell(self.ty, value, now),
                None => Cell::Null,
            },
        }
    }
}

/// A point in time as text; the zero time is that of Go.
fn created(time: Time) -> String {
    if time.is_zero() {
        "0001-01-01T00:00:00Z".to_owned()
    } else {
        time.to_string()
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

#[cfg(test)]
mod tests;
