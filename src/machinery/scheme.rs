//! The build-time scheme: static tables that the code generator writes, one per crate with definitions.

use crate::object::{Gvk, Kind, Object};
use crate::reflect::{MessageDesc, Reflect};

/// Everything that one build of definitions yields.
pub struct Scheme {
    /// Ordered as discovery lists them: by group priority, then version priority, both descending.
    pub groups: &'static [GroupDesc],
    /// Kinds without a resource of their own that bodies, queries and lists use (DeleteOptions, Scale, Status …).
    pub types: &'static [TypeDesc],
    /// Deflated JSON: `{"<definition>": <OpenAPI v3 schema>}` for every message of the build.
    pub definitions: &'static [u8],
    /// Descriptions of `metadata.name` and `metadata.creationTimestamp`, for the columns that every kind has.
    pub name_description: &'static str,
    pub creation_description: &'static str,
}

pub struct GroupDesc {
    /// "" is the legacy group.
    pub name: &'static str,
    pub priority: i32,
    /// Preferred first.
    pub versions: &'static [VersionDesc],
}

pub struct VersionDesc {
    pub version: &'static str,
    pub priority: i32,
    /// Served without being asked for.
    pub enabled: bool,
    /// False: objects may be stored in it, but it cannot be switched on.
    pub served: bool,
    pub kinds: &'static [KindDesc],
}

/// A kind that has no resource of its own.
pub struct TypeDesc {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// What a Table shows of it, where a subresource answers with it; none: there is no Table.
    pub columns: &'static [ColumnDesc],
    pub new: fn() -> Box<dyn Kind>,
    pub message: fn() -> &'static MessageDesc,
}

/// Takes an object of one version to another.
pub type Convert = fn(Box<dyn Object>) -> Result<Box<dyn Object>, ConvertError>;

/// A kind with a resource.
pub struct KindDesc {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub list_kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub verbs: &'static [&'static str],
    pub subresources: &'static [SubresourceDesc],
    pub columns: &'static [ColumnDesc],
    /// This version is the one written to the store.
    pub storage: bool,
    /// This version is the one that strategies see.
    pub hub: bool,
    /// Path below the store's prefix, `services/specs`, `apps.example.com/widgets`; no slash at either end.
    pub storage_path: &'static str,
    pub names: NameRule,
    pub generation: bool,
    pub create_on_update: bool,
    pub conditional_update: bool,
    pub returns_deleted: bool,
    /// What field selectors may use beside metadata.name and metadata.namespace: dotted JSON paths of the hub version,
    /// or `label=path`, `label=path|path`.
    pub selectable_fields: &'static [&'static str],
    /// Text of a warning that every answer carries; empty for kinds that are not deprecated.
    pub deprecation: &'static str,
    /// Nothing is stored: code registered with the server says what the verbs do.
    pub unstored: bool,
    /// Stored as JSON, not as protobuf.
    pub stored_as_json: bool,
    /// The kind of another group whose objects these are too: it has the stored and the hub version.
    pub same_as: Option<Gvk>,
    pub message: fn() -> &'static MessageDesc,
    pub new: fn() -> Box<dyn Object>,
    /// To the hub version; the same object for the hub itself.
    pub to_hub: Convert,
    /// From the hub version.
    pub from_hub: Convert,
}

impl KindDesc {
    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk {
            group: self.group,
            version: self.version,
            kind: self.kind,
        }
    }
}

pub struct SubresourceDesc {
    pub name: &'static str,
    /// Group, version and kind of the body; that of the parent when empty.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: &'static [&'static str],
    /// Of "scale": `.spec.replicas`, `.status.replicas`, `.status.selector`.
    pub spec_replicas_path: &'static str,
    pub status_replicas_path: &'static str,
    pub label_selector_path: &'static str,
    /// Code talks with the client itself; the verbs stand for methods, the kind is that of the options in the query.
    pub connect: bool,
    /// Group, version and kind of the options in the query; all empty where there are none.
    pub options: [&'static str; 3],
    /// Paths below it belong to it too.
    pub subpaths: bool,
    /// Media type of answers that are no objects; empty where they are.
    pub produces: &'static str,
}

pub struct ColumnDesc {
    pub name: &'static str,
    pub ty: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    pub priority: i32,
    /// JSON path of the cell; empty where `function` says it.
    pub path: &'static str,
    pub function: &'static str,
    /// The cells stand in the rows of a Table, which does not describe the column.
    pub hidden: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameRule {
    DnsSubdomain,
    DnsLabel,
    Dns1035Label,
    PathSegment,
}

/// A conversion that failed: which kind, and why.
#[derive(Debug, thiserror::Error)]
#[error("converting {from} to {to}: {reason}")]
pub struct ConvertError {
    pub from: String,
    pub to: String,
    pub reason: String,
}

impl ConvertError {
    /// A conversion of a `From` that failed.
    pub fn new<From: Kind + Default>(to: &str, reason: String) -> ConvertError {
        ConvertError {
            from: From::default().gvk().to_string(),
            to: to.to_owned(),
            reason,
        }
    }
}

/// The typed object of a conversion to `to`; an error if it is of another type.
pub fn downcast<T: Kind + Default>(object: Box<dyn Object>, to: &str) -> Result<T, ConvertError> {
    let found = object.gvk();
    match Reflect::into_any(object as Box<dyn Reflect>).downcast::<T>() {
        Ok(typed) => Ok(*typed),
        Err(_) => Err(ConvertError::new::<T>(to, format!("the object is a {found}"))),
    }
}
