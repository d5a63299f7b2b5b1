//! `meta.k8s.io/v1` Tables: what `kubectl get` shows of objects, written straight into JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::jsonpath::{self, JsonPath, PathError};
use crate::meta::v1::ObjectMeta;
use crate::protobuf::Mask;
use crate::reflect::object::{Kind, Object};
use crate::reflect::time::Time;
use crate::reflect::{LeafKind, MessageDesc, Name, Value};
use crate::scheme::ColumnDesc;

mod age;
mod write;

use age::{UNKNOWN as UNKNOWN_AGE, elapsed};
pub use age::{age, human_duration};
pub use write::{IncludeObject, RowTemplate, TableWriter, write_partial_metadata, write_partial_protobuf};

/// A value in a row. None depends on when it is made, so that rows can be kept.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
    /// The time from `since` until the row is shown, as [`human_duration`], between two texts: `3 (5m ago)`.
    Elapsed {
        before: String,
        since: Time,
        after: &'static str,
    },
}

impl Cell {
    /// The time since `then`; `<unknown>` for the zero time.
    pub fn age(then: Time) -> Cell {
        match then.is_zero() {
            true => UNKNOWN_AGE.into(),
            false => Cell::elapsed(then),
        }
    }

    /// The time since `since`, whatever that is.
    pub fn elapsed(since: Time) -> Cell {
        Cell::Elapsed {
            before: String::new(),
            since,
            after: "",
        }
    }

    /// What is shown of it at a time: never [`Cell::Elapsed`].
    pub fn at(self, now: Time) -> Cell {
        match self {
            Cell::Elapsed { before, since, after } => format!("{before}{}{after}", elapsed(since, now)).into(),
            cell => cell,
        }
    }
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

/// Makes a cell that no path can say, of an object of the hub version. It sees an object without managed fields, and of
/// kinds for which [`CellFunctions::read`] was called no more than is told there.
pub type CellFunction = Arc<dyn Fn(&dyn Object) -> Cell + Send + Sync>;

/// Something that clients may know of a row as a whole, such as that its object has done its work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowCondition {
    pub ty: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
}

/// The condition of an object's row, if it has one.
pub type ConditionFunction = Arc<dyn Fn(&dyn Object) -> Option<RowCondition> + Send + Sync>;

/// The code behind the rows of one kind: cell functions by the name that its definition gives them, and what else no
/// definition says.
#[derive(Clone)]
pub struct CellFunctions {
    by_name: BTreeMap<&'static str, CellFunction>,
    condition: Option<ConditionFunction>,
    reads: Option<&'static [&'static str]>,
}

impl Default for CellFunctions {
    /// With `age`, the time since the object was created, and `created`, the time when it was.
    fn default() -> CellFunctions {
        let mut functions = CellFunctions {
            by_name: BTreeMap::new(),
            condition: None,
            reads: None,
        };
        functions.register(AGE, Arc::new(|object| Cell::age(object.meta().creation_timestamp)));
        functions.register(
            CREATED,
            Arc::new(|object| created(object.meta().creation_timestamp).into()),
        );
        functions
    }
}

impl CellFunctions {
    /// Adds a function; false: one of that name was there, whose place it takes.
    pub fn register(&mut self, name: &'static str, function: CellFunction) -> bool {
        self.by_name.insert(name, function).is_none()
    }

    /// Sets what says the condition of a row; false: something did before.
    pub fn set_condition(&mut self, function: ConditionFunction) -> bool {
        self.condition.replace(function).is_none()
    }

    /// Says all that the functions of the columns and the condition look at, as paths of JSON without the elements of
    /// lists; the rest of the object need not be read for them. Worth it where there are many large objects. False: it
    /// was said before.
    pub fn read(&mut self, paths: &'static [&'static str]) -> bool {
        self.reads.replace(paths).is_none()
    }

    pub fn get(&self, name: &str) -> Option<CellFunction> {
        self.by_name.get(name).cloned()
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
    #[error("the cells of {kind} read {path:?}, which is no field")]
    Reads { kind: Name, path: &'static str },
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
    reads: Option<&'static [&'static str]>,
    /// Kinds without columns of their own have null for no rows.
    bare: bool,
}

struct Column {
    name: String,
    ty: Name,
    format: Name,
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
                ty: Name::new_static("date"),
                format: Name::default(),
                description: descriptions.creation_timestamp.clone(),
                priority: 0,
                hidden: false,
                source: Source::Function(Arc::new(|object| date(object.meta().creation_timestamp))),
            });
        }
        Ok(TableColumns {
            columns,
            condition: functions.condition.clone(),
            reads: functions.reads,
            bare: described.iter().any(|c| c.function == CREATED),
        })
    }

    /// The cells of one row.
    pub fn cells<'a>(&'a self, row: &'a Row<'_>) -> impl Iterator<Item = Cell> + 'a {
        self.columns.iter().map(|column| column.cell(row))
    }

    /// What of an encoded object of the hub version the rows are made of; `None`: of all. The error is a path of
    /// [`CellFunctions::read`] that leads to no field.
    pub fn mask(&self, hub: &MessageDesc) -> Result<Option<Mask>, TableError> {
        match self.reads {
            _ if self.reads_whole_metadata() => Ok(None),
            Some(paths) if !self.read_paths() => {
                let always = ["metadata.name", "metadata.creationTimestamp"];
                let paths: Vec<_> = paths.iter().copied().chain(always).collect();
                let mask = Mask::only(hub, &paths).map_err(|path| TableError::Reads {
                    kind: hub.name.clone(),
                    path,
                })?;
                Ok(Some(mask))
            }
            _ => Ok(Some(Mask::without(hub, MANAGED_FIELDS))),
        }
    }

    fn reads_whole_metadata(&self) -> bool {
        let plain = |path: &JsonPath| path.avoids(MANAGED_FIELDS);
        self.columns
            .iter()
            .any(|c| matches!(&c.source, Source::Path(path) if !plain(path)))
    }

    /// Whether some cells are read at paths of the version that is shown, not of the hub alone.
    pub fn read_paths(&self) -> bool {
        self.columns.iter().any(|c| matches!(c.source, Source::Path(_)))
    }
}

/// Large, and shown in no cell.
const MANAGED_FIELDS: &str = "metadata.managedFields";
const NAME: &str = "Name";
const NAME_PATH: &str = ".metadata.name";
/// Functions that every kind has.
const AGE: &str = "age";
const CREATED: &str = "created";

fn name_column(descriptions: &Descriptions) -> Column {
    Column {
        name: NAME.to_owned(),
        ty: Name::new_static("string"),
        format: Name::new_static("name"),
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
        let parsed = JsonPath::parse(&desc.path).map_err(|source| TableError::Path {
            kind: kind.to_owned(),
            column: desc.name.to_string(),
            path: desc.path.to_string(),
            source,
        })?;
        Source::Path(parsed)
    } else {
        let function = functions.get(&desc.function).ok_or_else(|| TableError::Function {
            kind: kind.to_owned(),
            column: desc.name.to_string(),
            function: desc.function.to_string(),
        })?;
        Source::Function(function)
    };
    let description = match (desc.description.as_str(), &source) {
        ("", _) if desc.name == NAME => descriptions.name.clone(),
        ("", Source::Age) => descriptions.creation_timestamp.clone(),
        ("", Source::Function(_)) if desc.function == CREATED => descriptions.creation_timestamp.clone(),
        ("", Source::Path(_)) => format!("Custom resource definition column (in JSONPath format): {}", desc.path),
        (text, _) => text.to_owned(),
    };
    Ok(Column {
        name: desc.name.to_string(),
        ty: desc.ty.clone(),
        format: desc.format.clone(),
        description,
        priority: desc.priority,
        hidden: desc.hidden,
        source,
    })
}

impl Column {
    fn cell(&self, row: &Row<'_>) -> Cell {
        match &self.source {
            Source::Name => row.metadata.name.as_str().into(),
            Source::Age => Cell::age(row.metadata.creation_timestamp),
            Source::Function(function) => row.hub.map_or(Cell::Null, |hub| function(hub)),
            Source::Path(path) => match path.first(row.versioned.as_reflect()) {
                Some(value) => path_cell(&self.ty, value),
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
fn path_cell(ty: &str, value: Value<'_>) -> Cell {
    match (ty, value) {
        // As Go's templates show a nil.
        ("string", Value::Null) => Cell::from("<no value>"),
        (_, Value::Absent | Value::Null) => Cell::Null,
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
            date_text(&jsonpath::scalar_text(value).unwrap_or_default())
        }
        ("date", Value::Str("" | "null")) => Cell::age(Time::default()),
        ("date", Value::Str(text)) => date_text(text),
        ("integer", Value::Int64(v)) => Cell::Integer(v),
        // Truncates, as the API does.
        ("integer", value) => jsonpath::number(value).map_or(Cell::Null, |v| Cell::Integer(v as i64)),
        ("number", value) => jsonpath::number(value).map_or(Cell::Null, Cell::Number),
        _ => Cell::Null,
    }
}

fn date_text(text: &str) -> Cell {
    match (text, Time::parse(text)) {
        ("", _) => Cell::Null,
        (_, Ok(time)) => Cell::age(time),
        (_, Err(_)) => "<invalid>".into(),
    }
}

fn date(time: Time) -> Cell {
    if time.is_zero() { Cell::Null } else { Cell::age(time) }
}

#[cfg(test)]
mod tests;
